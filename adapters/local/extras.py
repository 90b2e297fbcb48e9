"""Loading of packages that only an extra installs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError


def required(module: str, extra: str, stage: str) -> ModuleType:
    """The imported `module`, or `PortError` "missing_package" that says which extra brings it."""
    try:
        return import_module(module)
    except ImportError as missing:
        message = f"cannot import {missing.name or module}; install it with: pip install 'voicechart[{extra}]'"
        raise PortError(ScopedError("missing_package", stage, ErrorScope.SESSION, message)) from missing
