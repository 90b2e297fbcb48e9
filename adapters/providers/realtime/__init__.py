"""Models that hear and speak by themselves, over one connection."""
