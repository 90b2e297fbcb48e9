"""What an HTTP status means for the conversation."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.providers.generation import GENERATION
from voicechart.adapters.providers.refusals import MAX_RETRY_AFTER_MS, NO_CODE, http_refusal, provider_code
from voicechart.statecharts.errors import ErrorScope

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "code", "scope", "retryable"),
    [
        (401, "auth_refused", ErrorScope.SESSION, False),
        (403, "auth_refused", ErrorScope.SESSION, False),
        (404, "not_found", ErrorScope.SESSION, False),
        (400, "request_refused", ErrorScope.RESPONSE, False),
        (302, "request_refused", ErrorScope.RESPONSE, False),
        (408, "provider_unavailable", ErrorScope.RESPONSE, True),
        (429, "rate_limited", ErrorScope.RESPONSE, True),
        (500, "provider_unavailable", ErrorScope.RESPONSE, True),
        (503, "provider_unavailable", ErrorScope.RESPONSE, True),
    ],
)
def test_a_status_says_how_far_the_error_reaches_and_whether_to_try_again(
    status: int, code: str, scope: ErrorScope, retryable: bool
) -> None:
    error = http_refusal(GENERATION, status, None)
    assert (error.code, error.scope, error.retryable, error.stage) == (code, scope, retryable, "generation")
    assert str(status) in error.message


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        (None, None),
        ("2", 2_000),
        ("0.5", 500),
        ("-3", 0),
        ("60", MAX_RETRY_AFTER_MS),
        ("61", MAX_RETRY_AFTER_MS),
        ("Mon, 30 Nov 2026 12:00:07 GMT", 7_000),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("nan", None),
        ("inf", MAX_RETRY_AFTER_MS),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_capped(header: str | None, wait_ms: int | None) -> None:
    assert http_refusal(GENERATION, 429, header, now=NOW).retry_after_ms == wait_ms


def test_an_exhausted_quota_is_not_tried_again() -> None:
    code = provider_code(b'{"error": {"code": "insufficient_quota", "message": "pay"}}')
    error = http_refusal(GENERATION, 429, "1", code)
    assert (error.code, error.retryable, error.scope) == ("quota_exhausted", False, ErrorScope.SESSION)


def test_the_providers_code_is_shown_and_its_words_are_not() -> None:
    body = b'{"error": {"code": "invalid_api_key", "message": "Incorrect API key provided: sk-123"}}'
    message = http_refusal(GENERATION, 401, None, provider_code(body)).message
    assert "invalid_api_key" in message
    assert "sk-123" not in message


def test_a_code_that_is_no_identifier_is_not_shown() -> None:
    assert "sk-123" not in provider_code(b'{"error": {"code": "key sk-123 is wrong", "type": null}}')


@pytest.mark.parametrize("key", ["sk-planted-0123456789", "sk-proj-aB3dE5fG7", "4f9d1c27aa", "AIzaSyD8x7Qw"])
def test_a_code_that_may_be_an_echo_of_the_key_is_not_shown(key: str) -> None:
    assert provider_code(f'{{"error": {{"code": "{key}", "type": "{key}"}}}}'.encode()) == NO_CODE


@pytest.mark.parametrize("code", ["insufficient_quota", "NET-0001", "Throttling.RateQuota", "E1001", "4008"])
def test_codes_as_vendors_have_them_are_shown(code: str) -> None:
    assert provider_code(f'{{"error": {{"code": "{code}"}}}}'.encode()) == code


@given(st.integers(300, 599), st.none() | st.text(max_size=30), st.binary(max_size=60))
def test_any_refusal_is_understood(status: int, retry_after: str | None, body: bytes) -> None:
    error = http_refusal(GENERATION, status, retry_after, provider_code(body), NOW)
    assert error.stage == "generation"
    assert error.retry_after_ms is None or 0 <= error.retry_after_ms <= MAX_RETRY_AFTER_MS
