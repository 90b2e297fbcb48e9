"""The conversation every case starts from: open, connected, silent."""

from __future__ import annotations

import pytest

from voicechart.statecharts.testing import ScriptedConversation


@pytest.fixture
def script() -> ScriptedConversation:
    return ScriptedConversation().opened()
