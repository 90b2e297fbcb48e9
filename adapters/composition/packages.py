"""Which packages a part needs, and whether they are there. Nothing is imported to find out."""

from __future__ import annotations

from importlib.util import find_spec

from ..configuration import ConfigurationRefused, Problem


def are_installed(*modules: str) -> bool:
    """Whether every one of these could be imported."""
    return all(map(_is_installed, modules))


def require(path: str, extra: str, *modules: str) -> None:
    """Raises `ConfigurationRefused` at the configuration's `path` when one of the modules is not installed."""
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        message = f"needs {', '.join(missing)}, which is not installed: pip install 'voicechart[{extra}]'"
        raise ConfigurationRefused(Problem(path, message))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # Of a dotted name the package above is imported, which may not be there either.
        return False
