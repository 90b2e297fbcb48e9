"""The table `web`: whether and to whom the conversation is served over HTTP."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from ...engines.public_events import Visibility
from .problems import Problem


def _host(text: str) -> str:
    if not text or any(character.isspace() or character in "/@?#[]" for character in text):
        raise ValueError('must be a host name or an address, such as "127.0.0.1"')
    return text


def _origin(text: str) -> str:
    url = urlsplit(text)
    if (
        url.scheme not in ("http", "https")
        or not url.hostname
        or text != f"{url.scheme}://{url.netloc}"
        or url.username
    ):
        raise ValueError('is no origin: write scheme, host and port only, such as "https://panel.example:8443"')
    return text


Host = Annotated[str, AfterValidator(_host)]
Origin = Annotated[str, AfterValidator(_origin)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class WebSettings(BaseModel):
    """Text, captions and events over HTTP (the extra `web`). No sound crosses it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    enabled: bool = False
    """The daemon serves its conversation; `voicechart serve` does in any case."""
    host: Host = "127.0.0.1"
    """Beyond this machine only with token_env."""
    port: int = Field(default=8420, ge=0, le=65_535)
    """0: any free one; the log and the command say which."""
    token_env: VariableName | None = None
    """The environment variable that holds the token; None where no token is asked."""
    origins: tuple[Origin, ...] = Field(default=(), max_length=32)
    """Other origins whose pages may ask, and under whose names the server is known."""
    observers_see: frozenset[Visibility] = frozenset({Visibility.USER, Visibility.SPEECH})
    """Which events are served."""
    on_owner_disconnect: Literal["cancel", "continue"] = "cancel"
    """What becomes of a run whose connection goes."""
    show_chart: bool = True
    """The chart's newest macrosteps are served, redacted."""
    chart_text_shown: bool = False
    """There, too, what people say is served as it is."""
    max_conversations: int = Field(default=16, ge=0, le=1_000)
    """In writing, beside the foreground one."""
    idle_s: int = Field(default=1_800, ge=1, le=604_800)
    """Until one that nobody uses is closed."""
    max_observers: int = Field(default=256, ge=1, le=10_000)
    requests_per_minute: int = Field(default=240, ge=1, le=100_000)
    """Of one client."""
    burst: int = Field(default=60, ge=1, le=10_000)
    max_body_bytes: int = Field(default=65_536, ge=1_024, le=1_048_576)
    max_text_chars: int = Field(default=8_000, ge=1, le=100_000)
    keep_alive_s: int = Field(default=15, ge=1, le=300)
    replay_events: int = Field(default=2_048, ge=1, le=100_000)
    """How far back a client that comes back may lie."""
    replay_bytes: int = Field(default=1_048_576, ge=1_024, le=268_435_456)
    waiting_events: int = Field(default=1_024, ge=1, le=100_000)
    """What may wait for one slow observer."""
    waiting_bytes: int = Field(default=262_144, ge=1_024, le=67_108_864)


def problems_of_web(settings: WebSettings) -> tuple[Problem, ...]:
    """What is right alone and wrong together."""
    if settings.token_env is None and not _is_loopback(settings.host):
        message = (
            "is needed where others can reach the server: name an environment variable that holds a long random text, "
            'or leave host at "127.0.0.1"'
        )
        return (Problem("web.token_env", message),)
    return ()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
