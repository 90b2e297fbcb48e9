"""Voices over the network."""
