"""Loading of packages that only an extra installs."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError

SILENCED = {"ORT_DISABLE_TELEMETRY": "1"}
"""What packages read when they are imported. Otherwise ONNX Runtime (1.32.0 for Linux) keeps a session file in the
temporary folder and holds a client that reports usage to its vendor: here nothing does, unless the operator says so.
"""


def required(module: str, extra: str, stage: str) -> ModuleType:
    """The imported `module`, or `PortError` "missing_package" that says which extra brings it."""
    for name, value in SILENCED.items():
        os.environ.setdefault(name, value)
    try:
        return import_module(module)
    except ImportError as missing:
        message = f"cannot import {missing.name or module}; install it with: pip install 'voicechart[{extra}]'"
        raise PortError(ScopedError("missing_package", stage, ErrorScope.SESSION, message)) from missing
