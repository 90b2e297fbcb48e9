"""Who may ask: hosts, origins, the token, sessions of browsers, and how often.

A page of another origin is a stranger even on this machine, and so is a name that somebody else's DNS made point here:
what counts is the `Host` and the `Origin` that the browser states. A token is compared in constant time. `EventSource`
cannot send one, so a browser trades it once for a cookie that scripts cannot read and other sites cannot send.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import urlsplit

from .errors import ApiError

COOKIE = "voicechart_session"
SESSION_S = 43_200
MAX_SESSIONS = 256
MAX_CLIENTS = 4_096
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that is bound there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """Raises `ApiError` for what is not allowed."""

    def __init__(
        self,
        *,
        host: str,
        token: str | None = None,
        origins: Iterable[str] = (),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token = token
        self._origins = frozenset(origins)
        self._hosts = LOOPBACK_NAMES | {host.lower()} | {urlsplit(origin).hostname or "" for origin in self._origins}
        self._any_address = host in ("0.0.0.0", "::")
        self._now_s = now_s
        self._sessions: OrderedDict[str, float] = OrderedDict()

    @property
    def needs_token(self) -> bool:
        return self._token is not None

    def check_host(self, host: str | None) -> None:
        """Against names of others that point here."""
        name = _name_of(host or "")
        if name in self._hosts or (self._any_address and _is_address(name)):
            return
        raise ApiError(403, "wrong_host", "this server is not known under that name; add it to web.origins to allow it")

    def check_origin(self, origin: str | None, host: str | None, fetch_site: str | None) -> None:
        """Against pages of others."""
        if origin is None:
            if fetch_site == "cross-site":
                raise ApiError(403, "wrong_origin", "this is a request of another site's page")
            return
        same = host is not None and origin in (f"http://{host}", f"https://{host}")
        if not same and origin not in self._origins:
            raise ApiError(
                403, "wrong_origin", "pages of that origin may not ask here; add it to web.origins to allow it"
            )

    def check_token(self, authorization: str | None, cookie: str | None) -> None:
        """Either the token itself or the session that was traded for it."""
        if self._token is None or self._is_session(_session_of(cookie)):
            return
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(given.strip()):
            return
        message = "send the token as 'Authorization: Bearer …', or trade it for a cookie at /api/session"
        if authorization:
            message = "that is not the token"
        raise ApiError(401, "token_required", message, headers={"www-authenticate": 'Bearer realm="voicechart"'})

    def is_token(self, given: str) -> bool:
        """In constant time."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def open_session(self) -> str:
        """A new session of a browser; the oldest one goes when there are too many."""
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self._now_s() + SESSION_S
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _is_session(self, session: str | None) -> bool:
        if session is None:
            return False
        ends_at = self._sessions.get(session)
        if ends_at is not None and ends_at <= self._now_s():
            del self._sessions[session]
            return False
        return ends_at is not None


class RateLimit:
    """A bucket of tokens for each client. `per_minute` refill it, `burst` is what it holds."""

    def __init__(self, per_minute: int, burst: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_minute / 60
        self._burst = burst
        self._now_s = now_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Raises `ApiError` when the client asks too often."""
        now = self._now_s()
        left, at = self._buckets.pop(client, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_s)
        self._buckets[client] = (left - 1 if left >= 1 else left, now)
        while len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait_s = max(1, -(-(1 - left) // self._per_s))
            raise ApiError(
                429,
                "too_many_requests",
                f"you ask too often; wait {wait_s:.0f} s",
                headers={"retry-after": f"{wait_s:.0f}"},
                retry_after_s=int(wait_s),
            )


def _session_of(cookie: str | None) -> str | None:
    try:
        found = SimpleCookie(cookie or "").get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _name_of(host: str) -> str:
    """Without port and brackets, in small letters; empty for what is no host."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
