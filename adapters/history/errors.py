"""Errors of the durable history. Each says what to do."""

from __future__ import annotations


class HistoryError(Exception):
    """The store cannot be used: unreadable, of a newer version, busy, or the disk is full."""
