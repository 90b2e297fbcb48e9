"""What differs between two configurations, by name: values may be what people keep to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from .settings import Configuration

_ABSENT = object()


def changed_keys(before: Configuration, after: Configuration) -> tuple[str, ...]:
    """The dotted keys that differ, in the order of the alphabet."""
    return tuple(sorted(set(_differences("", before.model_dump(), after.model_dump()))))


def _differences(path: str, before: object, after: object) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, object]", before), cast("dict[str, object]", after)
        for key in old.keys() | new.keys():
            yield from _differences(f"{path}.{key}" if path else key, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif before != after:
        yield path
