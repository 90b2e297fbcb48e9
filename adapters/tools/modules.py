"""Tools that Python modules define, by the name of where they stand: `package.module:TOOLS`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import cast

from ...engines import Tool


class ModuleRefused(ValueError):
    """What a configuration names is not there, or holds no tools. Its text says what to change."""


def load_modules(places: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of every place, in order. Imports the modules, which runs them. Raises `ModuleRefused`."""
    return tuple(tool for place in places for tool in _load(place))


def _load(place: str) -> Iterable[Tool]:
    module_name, _, attribute = place.partition(":")
    if not module_name or not attribute:
        raise ModuleRefused(f"{place!r} is no place of tools: write package.module:NAME")
    try:
        module = import_module(module_name)
    except Exception as error:
        # A module may raise whatever it likes; the operator has to see what.
        raise ModuleRefused(f"{place}: importing it failed ({type(error).__name__}: {error})") from error
    found = getattr(module, attribute, None)
    if isinstance(found, Tool):
        return (found,)
    if not isinstance(found, Iterable):
        raise ModuleRefused(f"{place}: there is no tool, and no list of tools, of that name")
    tools = tuple(cast("Iterable[object]", found))
    if not all(isinstance(tool, Tool) for tool in tools):
        raise ModuleRefused(f"{place}: holds something that is no voicechart.engines.Tool")
    return cast("tuple[Tool, ...]", tools)
