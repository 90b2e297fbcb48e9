"""Conversations to start a test from."""

from __future__ import annotations

import pytest

from voicechart.statecharts.testing import Reached, ScriptedConversation


@pytest.fixture
def script() -> ScriptedConversation:
    """Open, connected, silent; speech may interrupt."""
    return ScriptedConversation().opened()


@pytest.fixture
def unopened() -> ScriptedConversation:
    """Nothing has happened."""
    return ScriptedConversation()


@pytest.fixture
def reached() -> Reached:
    return Reached()
