"""Identities: who mints them and why they can be replayed.

An identity is a string minted from a kind and a counter that lives in the chart's context, so that undoing a macrostep
undoes the minting too, and the same facts always mint the same identities. What makes them unique between
conversations is the seed, which the embedder chooses (a random one in production, a fixed one in tests).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol


class IdSource(Protocol):
    """Turns a kind ("turn", "run", "response" …) and an ordinal into an identity; a pure function."""

    def mint(self, kind: str, ordinal: int) -> str: ...


@dataclass(frozen=True, slots=True)
class SeededIds:
    """`turn-3-9f2c41d0`: readable, unique for a seed, the same on every replay."""

    seed: str = ""

    def mint(self, kind: str, ordinal: int) -> str:
        """The identity of the `ordinal`-th thing that was minted."""
        digest = blake2b(f"{self.seed}/{kind}/{ordinal}".encode(), digest_size=4).hexdigest()
        return f"{kind}-{ordinal}-{digest}"
