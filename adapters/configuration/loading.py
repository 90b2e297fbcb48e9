"""From a file to a valid configuration, or to everything that is wrong with it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from ...statecharts.values import InterruptionSource, TurnAuthority
from .choices import problems_of_choices
from .problems import ConfigurationRefused, Problem
from .records import RECORD_REFUSED
from .settings import Configuration
from .web_settings import problems_of_web

MAX_FILE_BYTES = 256 * 1_024


def load_configuration(path: Path) -> Configuration:
    """Read and validate a file. Raises `ConfigurationRefused`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationRefused(Problem("", f"{path} cannot be read: {error.strerror}")) from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigurationRefused(
            Problem("", f"{path} is larger than {MAX_FILE_BYTES} bytes: this is no configuration")
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationRefused(Problem("", f"{path} is not UTF-8 text")) from error
    return parse_configuration(text, path.absolute().parent)


def parse_configuration(text: str, folder: Path | None = None) -> Configuration:
    """Validate TOML; relative paths are meant from `folder`. Raises `ConfigurationRefused`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationRefused(Problem("", f"this is not TOML: {error}")) from error
    try:
        # JSON, because only there does strict validation take names for enums and texts for paths.
        configuration = Configuration.model_validate_json(json.dumps(tables, default=str), context=folder)
    except ValidationError as error:
        raise ConfigurationRefused(*_problems(error)) from error
    if found := contradictions(configuration):
        raise ConfigurationRefused(*found)
    return configuration


def contradictions(configuration: Configuration) -> tuple[Problem, ...]:
    """Settings that are right alone and wrong together."""
    found = [*problems_of_choices(configuration), *problems_of_web(configuration.web)]
    policy, turn = configuration.interruption, configuration.turn
    by_speech = InterruptionSource.SPEECH in policy.sources
    if configuration.audio.echo_cancellation != "validated":
        reason = (
            "the device would hear its own voice and interrupt itself, because no echo cancellation is validated. "
            "Leave it out (the button still interrupts), or measure it on this board with `voicechart audio-check` and "
            'then write audio.echo_cancellation = "validated"'
        )
        if policy.full_duplex:
            found.append(Problem("interruption.full_duplex", reason))
        if by_speech:
            found.append(Problem("interruption.sources", f'"speech": {reason}'))
    elif by_speech and not policy.full_duplex:
        message = '"speech" cannot interrupt while the microphone is closed: write interruption.full_duplex = true too'
        found.append(Problem("interruption.sources", message))
    in_time = policy.sources & {InterruptionSource.BUTTON, InterruptionSource.PROVIDER}
    if configuration.realtime is not None and by_speech and not policy.min_duration_ms and not in_time:
        message = (
            "nothing would interrupt in time: with 0 only words do, and a native realtime model tells what was said "
            "when it is over; write how long somebody must speak, as in min_duration_ms = 350"
        )
        found.append(Problem("interruption.min_duration_ms", message))
    if reason := _nobody_ends_turns(turn.authority, configuration.realtime is not None):
        found.append(Problem("turn.authority", f"nothing in this daemon tells the end of a turn as {reason}"))
    telemetry = configuration.telemetry
    if telemetry.content and telemetry.endpoint is not None and not _is_private(telemetry.endpoint):
        message = "what people say would travel unencrypted: use https, or leave content out"
        found.append(Problem("telemetry.content", message))
    if configuration.mcp and configuration.tools.lock is None:
        message = 'the approved definitions of mcp servers need a file: lock = "mcp.lock.json"'
        found.append(Problem("tools.lock", message))
    return tuple(found)


def _nobody_ends_turns(authority: TurnAuthority, is_native: bool) -> str | None:
    """What a recogniser can do is known only when it is made, and what a board has only when it is connected."""
    match authority:
        case TurnAuthority.ENGINE if not is_native:
            return '"engine": only a native realtime model does, and realtime names none; leave it out, or write "vad"'
        case _:
            return None


def _is_private(address: str) -> bool:
    """Whether nobody on the way can read what is sent to this URL."""
    url = urlsplit(address)
    try:
        return url.scheme == "https" or ip_address(url.hostname or "").is_loopback
    except ValueError:
        return url.hostname == "localhost"


_FOREIGN_MICROPHONE = re.compile(r"mic|browser|phone|desktop|webrtc|input_device", re.IGNORECASE)
_ONLY_MICROPHONE = "the board microphone is the only voice input, and audio.endpoint names the service that owns it"
_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)
_SECRETS_ARE_ELSEWHERE = "a secret stands in the environment: name its variable in api_key_env"
_MESSAGES = {
    "extra_forbidden": "there is no such key",
    "unexpected_keyword_argument": "there is no such key",
    "missing": "is missing",
}


def _problems(error: ValidationError) -> tuple[Problem, ...]:
    return tuple(problem for found in error.errors(include_input=False) for problem in _told(found))


def _told(found: Mapping[str, Any], within: tuple[int | str, ...] = ()) -> Iterator[Problem]:
    location = (*within, *found["loc"])
    if found["type"] == RECORD_REFUSED:
        for nested in found["ctx"]["errors"]:
            yield from _told(nested, location)
    else:
        yield _problem(location, found["type"], found["msg"])


def _problem(location: tuple[int | str, ...], kind: str, text: str) -> Problem:
    path = ".".join(str(part) for part in location if part != "[key]")
    unknown = kind in ("extra_forbidden", "unexpected_keyword_argument")
    if unknown and _FOREIGN_MICROPHONE.search(str(location[-1])):
        return Problem(path, f"there is no such key; {_ONLY_MICROPHONE}")
    if unknown and _SECRET.search(str(location[-1])):
        return Problem(path, f"there is no such key; {_SECRETS_ARE_ELSEWHERE}")
    return Problem(path, _MESSAGES.get(kind, text.removeprefix("Value error, ")))
