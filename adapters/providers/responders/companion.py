"""The offline pattern companion."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....engines.ports import Responder
from ....statecharts.capabilities import ResponderCapabilities
from ..declaration import Provider, ProviderSettings, Secrets


class CompanionSettings(ProviderSettings):
    kind: Literal["companion"]
    token_ms: float = Field(default=30.0, ge=0, le=1_000)


def _make(settings: CompanionSettings, secrets: Secrets) -> Responder:
    from ...responders.companion import PatternCompanion

    return PatternCompanion(token_ms=settings.token_ms)


PROVIDER = Provider(
    title="Pattern companion, offline",
    settings=CompanionSettings,
    make=_make,
    describe=lambda settings: "pattern companion",
    offers=ResponderCapabilities(text_deltas=True),
)
