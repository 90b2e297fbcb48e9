"""The pytest plugin: fixtures for whoever writes a policy or extends the chart.

It comes with the package (entry point `pytest11`): no import and no configuration is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..conversation import Conversation, ConversationChart
    from ..policies import Policies

    CheckedConversation = Callable[..., Conversation]


@pytest.fixture
def checked_conversation() -> CheckedConversation:
    """Makes conversations on which every broken invariant raises: `checked_conversation(policies, definition)`."""
    from ..conversation import Conversation, ConversationChart
    from ..invariants import Checker

    def make(policies: Policies | None = None, definition: type[ConversationChart] = ConversationChart) -> Conversation:
        conversation = Conversation("checked", policies=policies, definition=definition)
        Checker(conversation)
        return conversation

    return make


@pytest.fixture
def check_conversation() -> Callable[..., None]:
    """`voicechart.statecharts.testing.properties.check_conversation`: any facts, in any order, every invariant."""
    from .properties import check_conversation

    return check_conversation
