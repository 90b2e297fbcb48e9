"""Providers: everything that can answer, hear or speak from outside, one file (or folder) each.

    responders/    models: text and tools
    recognizers/   speech to text
    synthesizers/  text to speech
    realtime/      models that hear and speak by themselves

The name of a file is the `kind` that a configuration writes, with `_` for `-`; its `PROVIDER` says the rest. Adding a
provider is described in `docs/guide/providers.md`.
"""

from .declaration import (
    FilePath,
    HttpUrl,
    Provider,
    ProviderSettings,
    SecretMissing,
    Secrets,
    VariableName,
    WebSocketUrl,
)

__all__ = [
    "FilePath",
    "HttpUrl",
    "Provider",
    "ProviderSettings",
    "SecretMissing",
    "Secrets",
    "VariableName",
    "WebSocketUrl",
]
