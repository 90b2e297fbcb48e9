"""Speech recognition over the network."""
