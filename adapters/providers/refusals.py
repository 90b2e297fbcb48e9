"""What a provider's refusal means for the conversation: the same rules over HTTP and WebSocket.

Errors of the key or the account are never retried, an overloaded provider is, and `Retry-After` is honoured up to a
minute. What a provider writes goes into a message only through `sanitised` or `provider_code`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

from pydantic_core import from_json

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError

MAX_RETRY_AFTER_MS = 60_000
MAX_SHOWN_CHARS = 200
SHORTEST_SECRET_CHARS = 4
NO_CODE = "no code given"

NEVER_WORKS_AGAIN = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})
"""Codes that come with 429 but are no matter of waiting."""

_WORD = r"(?:[A-Za-z]{1,40}[0-9]{0,4}|[0-9]{1,6})"
_CODE = re.compile(rf"(?=.{{1,64}}$){_WORD}?(?:[_.\-]{_WORD}?)*")
"""Words and small numbers. What digits are mixed into is no name of anything, but may be an echo of the key."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the errors of one port arise, and how far they reach unless they say otherwise."""

    name: str
    """The `stage` of `ScopedError`: "recognition", "generation", "synthesis", "connection"."""
    scope: ErrorScope = ErrorScope.RESPONSE

    def error(
        self,
        code: str,
        message: str,
        *,
        scope: ErrorScope | None = None,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        partial_output: bool = False,
    ) -> ScopedError:
        """An error of this stage. `scope`: where it reaches further than usual."""
        return ScopedError(code, self.name, scope or self.scope, message, retryable, retry_after_ms, partial_output)

    def failure(self, code: str, message: str, *, retryable: bool = False) -> PortError:
        """The exception for `error`."""
        return PortError(self.error(code, message, retryable=retryable))

    def bad_setting(self, message: str) -> PortError:
        """The exception for a setting that cannot work: the session cannot begin."""
        return PortError(self.error("bad_setting", message, scope=ErrorScope.SESSION))


def http_refusal(
    stage: Stage, status: int, retry_after: str | None, code: str = NO_CODE, now: datetime | None = None
) -> ScopedError:
    """The error for an HTTP status that is no success.

    `retry_after`: that header. `code`: the provider's own, already safe to show (`provider_code`). `now`: for a
    `Retry-After` that is a date.
    """
    detail = f"HTTP {status}, {code}"
    wait_ms = retry_after_ms(retry_after, now or datetime.now(UTC))
    session = ErrorScope.SESSION
    if status in (401, 403):
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return stage.error("auth_refused", message, scope=session)
    if status == 404:
        message = f"the provider knows no such model or address ({detail}); check base_url and model"
        return stage.error("not_found", message, scope=session)
    if status == 402 or code in NEVER_WORKS_AGAIN:
        message = f"the provider's account cannot be used ({detail}); check its plan and billing"
        return stage.error("quota_exhausted", message, scope=session)
    if status == 429:
        message = f"the provider asks to slow down ({detail}); it is tried again later"
        return stage.error("rate_limited", message, retryable=True, retry_after_ms=wait_ms)
    if status in (408, 409, 425) or status >= 500:
        message = f"the provider cannot answer now ({detail}); it is tried again later"
        return stage.error("provider_unavailable", message, retryable=True, retry_after_ms=wait_ms)
    message = f"the provider refuses the request ({detail}); check the options of this provider"
    return stage.error("request_refused", message)


def retry_after_ms(header: str | None, now: datetime) -> int | None:
    """Seconds or an HTTP date (RFC 9110, section 10.2.3), at most a minute; None when absent or unreadable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp()
    if seconds != seconds:  # NaN
        return None
    return round(min(max(seconds, 0.0) * 1_000, MAX_RETRY_AFTER_MS))


def provider_code(body: bytes) -> str:
    """The provider's own error code in a JSON body, as far as it is safe to show: an identifier, never free text.

    Looks for `code`, `type`, `err_code` (Deepgram), `status` (ElevenLabs) and `error_code`, in the body itself and in
    its `error` or `detail`.
    """
    try:
        value: object = from_json(body)
    except ValueError:
        return NO_CODE
    if not _is_object(value):
        return NO_CODE
    outer = cast("dict[str, object]", value)
    inner = [cast("dict[str, object]", part) for part in (outer.get("error"), outer.get("detail")) if _is_object(part)]
    for place in (*inner, outer):
        for key in ("code", "type", "err_code", "error_code", "status"):
            if (code := shown_code(place.get(key))) is not None:
                return code
    return NO_CODE


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def shown_code(value: object) -> str | None:
    """`value` where it is a short identifier or a number, and so safe to show."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return text if _CODE.fullmatch(text) else None


def sanitised(text: str, secrets: Iterable[str] = ()) -> str:
    """What may be shown of a provider's free text: one line of at most 200 characters, printable, without `secrets`.

    A secret of fewer than 4 characters is not looked for: it would blank out ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET_CHARS:
            text = text.replace(secret, "…")
    shown = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return shown if len(shown) <= MAX_SHOWN_CHARS else f"{shown[: MAX_SHOWN_CHARS - 1]}…"
