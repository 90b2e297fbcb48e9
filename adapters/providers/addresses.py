"""Which addresses a provider may be reached at without encryption."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_this_machine(host: str) -> bool:
    """Whether `host` (a name, or an IPv4 or IPv6 address without brackets) is the loopback interface."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def is_protected(url: str) -> bool:
    """Whether what goes to `url` is encrypted, or never leaves this machine."""
    parts = urlsplit(url)
    return parts.scheme in ("https", "wss") or is_this_machine(parts.hostname or "")
