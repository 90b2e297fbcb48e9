"""How the interface says no: one shape for every error, with a code for programs and a sentence for people."""

from __future__ import annotations

from typing import Any

from .wire import compact


class ApiError(Exception):
    """An answer other than the wished one. `fields` are added to the error object."""

    def __init__(
        self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None, **fields: object
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}
        self.fields = fields

    def as_json(self) -> dict[str, Any]:
        """`{"error": {"code", "message", …}}`."""
        return {"error": {"code": self.code, "message": self.message, **self.fields}}

    @property
    def body(self) -> bytes:
        return compact(self.as_json()) + b"\n"


CODES: dict[int, str] = {
    400: "bad_request",
    401: "token_required",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
    500: "internal_error",
    503: "unavailable",
}
"""The code of an error that has no better one."""
