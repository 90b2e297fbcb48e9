"""Pinned definitions: what an operator has read and approved of each tool of each server.

A server may change what its tools are called, what they say of themselves and what they take at any time, and a model
believes what it reads there. So the definitions are kept in a lock file beside the configuration, to be read, committed
and compared; what is not in it is not offered, and what differs from it is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

MAX_DEFINITION_BYTES = 32_768
MAX_TOOLS = 128
"""Of one server."""
MAX_LOCK_BYTES = 4_194_304


class PinsRefused(ValueError):
    """The lock file cannot be used. Its text says what to do."""


class Definition(BaseModel):
    """What a server says of a tool, as far as it matters to a model or to whoever approves it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str | None = None
    description: str = ""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None

    @property
    def digest(self) -> str:
        """SHA-256 over a form that does not depend on the order of names."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def size_bytes(self) -> int:
        return len(self.model_dump_json().encode())


class Pin(BaseModel):
    """An approved definition, with its digest for whoever compares two files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    definition: Definition


class _Lock(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    servers: dict[str, tuple[Pin, ...]]


Pins = Mapping[str, tuple[Definition, ...]]
"""By the name of the server."""


def read_pins(path: Path) -> Pins:
    """Nothing where there is no file yet. Raises `PinsRefused`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_LOCK_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PinsRefused(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_LOCK_BYTES:
        raise PinsRefused(f"{path} is larger than {MAX_LOCK_BYTES} bytes: this is no lock file of tools")
    try:
        lock = _Lock.model_validate_json(data)
    except ValidationError as error:
        raise PinsRefused(f"{path} is no lock file of tools: {error.errors()[0]['msg']}; write it anew") from error
    for name, pins in lock.servers.items():
        for pin in pins:
            if pin.definition.digest != pin.sha256:
                raise PinsRefused(f"{path}: the definition of {pin.definition.name} of {name} was edited; pin it anew")
    return {name: tuple(pin.definition for pin in pins) for name, pins in lock.servers.items()}


def written_pins(pins: Pins) -> bytes:
    """The content of a lock file."""
    servers = {name: tuple(_pin(definition) for definition in pins[name]) for name in sorted(pins)}
    return (_Lock(servers=servers).model_dump_json(indent=2, exclude_none=True) + "\n").encode()


def changes(pinned: Iterable[Definition], live: Iterable[Definition]) -> dict[str, str]:
    """What became of each tool since it was pinned: "same", "changed", "new" or "gone"."""
    before = {definition.name: definition.digest for definition in pinned}
    after = {definition.name: definition.digest for definition in live}
    found = {name: _change(before.get(name), digest) for name, digest in after.items()}
    return {**found, **{name: "gone" for name in before if name not in after}}


def _change(before: str | None, after: str) -> str:
    if before is None:
        return "new"
    return "same" if before == after else "changed"


def _pin(definition: Definition) -> Pin:
    return Pin(sha256=definition.digest, definition=definition)
