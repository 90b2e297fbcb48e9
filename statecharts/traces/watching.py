"""Values that tell which of their parts were looked at."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

Looks = tuple[tuple[str, object], ...]
"""What was looked at: a dotted name and the value there."""


def watched(value: object, name: str, seen: dict[str, object]) -> Any:  # noqa: ANN401 - it stands for any value
    """A stand-in for a dataclass that writes into `seen` what is read of it, down to what is no dataclass."""
    return _Watched(value, name, seen)


class _Watched:
    """Passes for the value in `isinstance` and comparisons; methods run on the value itself, unwatched."""

    __slots__ = ("_watched_name", "_watched_seen", "_watched_value")

    def __init__(self, value: object, name: str, seen: dict[str, object]) -> None:
        self._watched_value = value
        self._watched_name = name
        self._watched_seen = seen

    @property
    def __class__(self) -> Any:  # noqa: ANN401  # pyright: ignore[reportIncompatibleMethodOverride] - never set
        return type(self._watched_value)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a part of any value
        part = getattr(self._watched_value, name)
        if callable(part):
            return part
        path = f"{self._watched_name}.{name}" if self._watched_name else name
        if is_dataclass(part):
            return _Watched(part, path, self._watched_seen)
        self._watched_seen[path] = part
        return part

    def __eq__(self, other: object) -> bool:
        return self._watched_value == (other._watched_value if type(other) is _Watched else other)

    def __hash__(self) -> int:
        return hash(self._watched_value)
