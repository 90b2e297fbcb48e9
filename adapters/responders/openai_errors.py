"""What a refused or failed HTTP request means for the conversation."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pydantic import ValidationError

from ...statecharts.errors import ErrorScope, ScopedError
from .chat_assembly import error_code, generation_error
from .openai_wire import ErrorResponse

MAX_RETRY_AFTER_MS = 60_000
NEVER_WORKS_AGAIN = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})
"""Codes that come with 429 but are no matter of waiting."""


def refused(status: int, retry_after: str | None, body: bytes, now: datetime | None = None) -> ScopedError:
    """The error for an HTTP status that is not 200. `retry_after`: that header; `body`: as much as was read of it."""
    code = _provider_code(body)
    detail = f"HTTP {status}, {code}"
    if status in (401, 403):
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return generation_error("auth_refused", message, scope=ErrorScope.SESSION)
    if status == 404:
        message = f"the provider knows no such model or address ({detail}); check base_url and model"
        return generation_error("not_found", message, scope=ErrorScope.SESSION)
    if code in NEVER_WORKS_AGAIN:
        message = f"the provider's account cannot be used ({detail}); check its plan and billing"
        return generation_error("quota_exhausted", message, scope=ErrorScope.SESSION)
    if status == 429:
        wait_ms = _retry_after_ms(retry_after, now or datetime.now(UTC))
        message = f"the provider asks to slow down ({detail}); it is tried again later"
        return generation_error("rate_limited", message, retryable=True, retry_after_ms=wait_ms)
    if status in (408, 409, 425) or status >= 500:
        wait_ms = _retry_after_ms(retry_after, now or datetime.now(UTC))
        message = f"the provider cannot answer now ({detail}); it is tried again later"
        return generation_error("provider_unavailable", message, retryable=True, retry_after_ms=wait_ms)
    message = f"the provider refuses the request ({detail}); check the model's options and the tools' schemas"
    return generation_error("request_refused", message)


def _provider_code(body: bytes) -> str:
    try:
        return error_code(ErrorResponse.model_validate_json(body).error)
    except ValidationError:
        return "no code given"


def _retry_after_ms(header: str | None, now: datetime) -> int | None:
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
