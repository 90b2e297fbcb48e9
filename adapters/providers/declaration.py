"""What a provider's file declares about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationInfo

from ...statecharts.capabilities import (
    RealtimeCapabilities,
    RecognizerCapabilities,
    ResponderCapabilities,
    SynthesizerCapabilities,
)

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
"""The name of an environment variable. Settings hold names of secrets, never secrets."""


def _http(text: str) -> str:
    return _address(text, "https", "http")


def _websocket(text: str) -> str:
    return _address(text, "wss", "ws")


def _address(text: str, secure: str, plain: str) -> str:
    url = urlsplit(text)
    if url.scheme not in (secure, plain) or not url.hostname:
        raise ValueError(f"must begin with {secure}:// (or {plain}:// on your own machine)")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("holds no user, query or fragment; a key stands in the environment")
    return text.rstrip("/")


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """A relative path is meant from where the configuration stands: a daemon is started anywhere."""
    folder: Path | None = info.context
    return path if folder is None else folder / path.expanduser()


HttpUrl = Annotated[str, AfterValidator(_http)]
WebSocketUrl = Annotated[str, AfterValidator(_websocket)]
FilePath = Annotated[Path, AfterValidator(_beside_the_file)]


class ProviderSettings(BaseModel):
    """One record of a configuration: immutable; unknown keys and silent conversions are refused.

    A subclass begins with `kind: Literal["…"]`.
    """

    # A refused value may be a secret that somebody wrote into the wrong place.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    kind: Any  # a text; `Any`, because a subclass narrows it to its own literals


class SecretMissing(LookupError):
    """A setting names an environment variable that is not set, or is empty. `key` is the setting, never a value."""

    def __init__(self, key: str) -> None:
        # Not by the variable's name: somebody may have written the secret itself there.
        super().__init__("the environment variable that it names is not set, or is empty")
        self.key = key


class Secrets:
    """The environment, as a provider may read it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def read(self, key: str, variable: str) -> str:
        """The secret in `variable`, which the setting `key` names. Raises `SecretMissing`."""
        secret = self._environment.get(variable, "").strip()
        if not secret:
            raise SecretMissing(key)
        return secret

    def read_optional(self, key: str, variable: str | None) -> str | None:
        """None where the settings name no variable. Raises `SecretMissing` as `read` does."""
        return None if variable is None else self.read(key, variable)


class Prepared(Protocol):
    """What every port of a provider can do: `check-config --connect` asks no more of it."""

    async def prepare(self) -> None: ...
    async def aclose(self) -> None: ...


Offered = RecognizerCapabilities | ResponderCapabilities | SynthesizerCapabilities | RealtimeCapabilities

S = TypeVar("S", bound=ProviderSettings)
P = TypeVar("P", bound=Prepared)


@dataclass(frozen=True, slots=True)
class Provider(Generic[S, P]):
    """The `PROVIDER` of a provider's file: how its record looks, and what it makes."""

    title: str
    """For people: "Anthropic Messages"."""
    settings: type[S]
    make: Callable[[S, Secrets], P]
    """The port, neither loaded nor connected. Raises `SecretMissing`, and `PortError` for a bad setting."""
    describe: Callable[[S], str]
    """One line for people: which model where; never a secret."""
    modules: tuple[str, ...] = ()
    """Top-level modules that it needs and the core does not bring."""
    modules_of: Callable[[S], tuple[str, ...]] | None = None
    """The same for one record, where that depends on it: a path may replace packaged weights."""
    extra: str | None = None
    """The extra of this package that installs them."""
    offers: Offered | None = None
    """What it can do at best, before a record says which model; the port's own `capabilities` are what counts."""
