"""What the errors of the protocol mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....statecharts.errors import ErrorScope, ScopedError
from ..refusals import NEVER_WORKS_AGAIN, NO_CODE, Stage, shown_code
from .wire import Fault

NOTHING_TO_CANCEL = "response_cancel_not_active"
ANOTHER_IS_ACTIVE = "conversation_already_has_active_response"
NOTHING_TO_COMMIT = "input_audio_buffer_commit_empty"
SESSION_EXPIRED = "session_expired"
REFUSED_KEY = frozenset({"invalid_api_key", "authentication_error", "permission_denied", "permission_error"})


@dataclass(frozen=True, slots=True)
class Meaning:
    """An error of the provider's, and whether the session can go on after it."""

    error: ScopedError
    ends_session: bool


def code_of(fault: Fault) -> str:
    """What is safe to show of it."""
    return shown_code(fault.code) or shown_code(fault.type) or NO_CODE


def meaning(vendor: str, fault: Fault, stage: Stage) -> Meaning:
    """The general meaning of an error in a session. Of one message's errors it is the cause in most cases."""
    code = code_of(fault)
    detail = f"{vendor}, {code}"
    session = ErrorScope.SESSION
    if code in REFUSED_KEY or fault.type in REFUSED_KEY:
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return Meaning(stage.error("auth_refused", message, scope=session), True)
    if code in NEVER_WORKS_AGAIN:
        message = f"the provider's account cannot be used ({detail}); check its plan and billing"
        return Meaning(stage.error("quota_exhausted", message, scope=session), True)
    if code == "model_not_found":
        message = f"the provider knows no such model ({detail}); check model"
        return Meaning(stage.error("not_found", message, scope=session), True)
    if code == SESSION_EXPIRED:
        message = f"the provider's session has reached its longest time ({detail}); another one is opened"
        return Meaning(stage.error("session_expired", message, scope=session, retryable=True), True)
    if code.startswith("rate_limit"):
        message = f"the provider asks to slow down ({detail}); it is tried again"
        return Meaning(stage.error("rate_limited", message, retryable=True), False)
    if fault.type == "invalid_request_error":
        message = f"the provider refuses the request ({detail}); check the options of this provider"
        return Meaning(stage.error("request_refused", message), False)
    message = f"the provider failed ({detail}); it is tried again"
    return Meaning(stage.error("provider_failed", message, retryable=True), False)


def of_session(error: ScopedError) -> ScopedError:
    """What ends a session ends all of it; what nobody could read may not come again in another one."""
    retryable = error.retryable or error.code == "provider_malformed"
    return replace(error, scope=ErrorScope.SESSION, retryable=retryable)
