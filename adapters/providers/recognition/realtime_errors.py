"""The errors of OpenAI's realtime protocol and of those that speak like it."""

from __future__ import annotations

from ....engines.reports import RecognitionErrored
from ..refusals import NEVER_WORKS_AGAIN, shown_code
from .dialect import STAGE, Incoming, failed


class RealtimeError(Incoming):
    """The `error` of a message."""

    type: str | None = None
    code: str | None = None
    event_id: str | None = None


class RealtimeErrorMessage(Incoming):
    """`error`, and `…transcription.failed`."""

    error: RealtimeError


def meaning(vendor: str, error: RealtimeError) -> RecognitionErrored:
    """An error that the service sends in the session. Nothing of this protocol is worth going on without."""
    code = shown_code(error.code) or shown_code(error.type) or "no code given"
    detail = f"{vendor}, {code}"
    if code in ("invalid_api_key", "authentication_error", "permission_denied"):
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return failed("auth_refused", message, session=True)
    if code in NEVER_WORKS_AGAIN:
        message = f"the provider's account cannot be used ({detail}); check its plan and billing"
        return failed("quota_exhausted", message, session=True)
    if code == "model_not_found":
        return failed("not_found", f"the provider knows no such model ({detail}); check model", session=True)
    if code.startswith("rate_limit"):
        return failed("rate_limited", f"the provider asks to slow down ({detail}); it is tried again", retryable=True)
    if error.type == "invalid_request_error" and code != "session_expired":
        message = f"the provider refuses the request ({detail}); check the options of this provider"
        return RecognitionErrored(STAGE.error("request_refused", message))
    return failed("provider_failed", f"the provider failed ({detail}); it is tried again", retryable=True)
