"""What a part needs and is not installed, as a problem of the configuration."""

from __future__ import annotations

from ..configuration import ConfigurationRefused, Problem
from ..providers.installed import missing_modules


def require(path: str, extra: str | None, *modules: str) -> None:
    """Raises `ConfigurationRefused` at the configuration's `path` when one of the modules is not installed."""
    if missing := missing_modules(*modules):
        how = f": pip install 'voicechart[{extra}]'" if extra is not None else ""
        raise ConfigurationRefused(Problem(path, f"needs {', '.join(missing)}, which is not installed{how}"))
