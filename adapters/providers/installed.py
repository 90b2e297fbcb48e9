"""Which packages are there. Nothing is imported to find out."""

from __future__ import annotations

from importlib.util import find_spec


def missing_modules(*modules: str) -> tuple[str, ...]:
    """Those of `modules` that could not be imported."""
    return tuple(module for module in modules if not _is_installed(module))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # Of a dotted name the package above is imported, which may not be there either.
        return False
