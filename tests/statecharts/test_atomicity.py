"""A broken guard, action or observer leaves no half-taken transaction: the fact might as well not have come."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import pytest

from voicechart.statecharts import Conversation, ConversationChart, Policies
from voicechart.statecharts.chart import Selection
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.errors import ChartError
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation

if TYPE_CHECKING:
    from voicechart.statecharts.actions import Action

POLICIES = Policies(interruption=HANDS_FREE)


class Fuse:
    """Blows once armed."""

    armed = False

    def blow(self) -> None:
        if self.armed:
            raise ZeroDivisionError("a programming error")


def broken(method: str, fuse: Fuse, *, late: bool) -> type[ConversationChart]:
    """A chart whose `method` raises, before it does anything or after all it does."""
    sound: Callable[..., Any] = getattr(ConversationChart, method)

    def unsound(self: ConversationChart, *arguments: object, **named: object) -> object:
        if not late:
            fuse.blow()
        result = sound(self, *arguments, **named)
        if late:
            fuse.blow()
        return result

    def unsound_rule(self: ConversationChart) -> object:
        return unsound(self)

    takes_nothing = len(inspect.signature(sound).parameters) == 1
    body = {method: unsound_rule if takes_nothing else unsound}
    # The library knows a chart class by its name.
    return type(f"Broken{method}{late}", (ConversationChart,), body)


def conversing(definition: type[ConversationChart], selection: Selection) -> ScriptedConversation:
    conversation = Conversation("twin", policies=POLICIES, definition=definition, selection=selection)
    script = ScriptedConversation(conversation=conversation).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    script.model_calls_tool("look-up")
    script.user_starts_speaking()
    return script


def barge_in(script: ScriptedConversation) -> tuple[Action, ...]:
    return script.hears("stop it", revision=1)


def finish(script: ScriptedConversation) -> None:
    """Everything that follows."""
    barge_in(script)
    script.finishes_saying("stop it")
    script.speaker_has_stopped(21_000)
    script.model_acknowledges_cancel()
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)


FIRST_MICROSTEP = ("interruption_is_accepted", "carry_out_interruption", "invalidate_output", "revise_hypothesis")
LATER_MICROSTEPS = ("cancel_reply", "cancel_calls", "stop_output", "start_timer", "publish")


@pytest.mark.parametrize("selection", get_args(Selection))
@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize("method", FIRST_MICROSTEP + LATER_MICROSTEPS)
def test_a_barge_in_that_breaks_anywhere_is_undone_as_a_whole(method: str, late: bool, selection: Selection) -> None:
    fuse = Fuse()
    script = conversing(broken(method, fuse, late=late), selection)
    twin = conversing(ConversationChart, selection)
    before = script.conversation.snapshot()

    fuse.armed = True
    with pytest.raises(ChartError, match=r"TranscriptUpdated was undone in ready/speech/tools/playing") as failure:
        barge_in(script)
    fuse.armed = False

    assert isinstance(failure.value.__cause__, ZeroDivisionError)
    assert script.conversation.snapshot() == before == twin.conversation.snapshot()
    finish(script)
    finish(twin)
    assert script.conversation.snapshot() == twin.conversation.snapshot()
    assert [entry.actions for entry in script.record.entries] == [entry.actions for entry in twin.record.entries]


def test_a_fact_that_cannot_be_told_apart_is_undone_before_its_first_microstep() -> None:
    fuse = Fuse()
    script = conversing(broken("begin", fuse, late=True), "indexed")
    before = script.conversation.snapshot()
    fuse.armed = True
    with pytest.raises(ChartError):
        barge_in(script)
    assert script.conversation.snapshot() == before


def test_an_action_decided_before_the_epoch_moved_undoes_the_macrostep() -> None:
    fuse = Fuse()

    class Hasty(ConversationChart):
        def interruption_is_accepted(self) -> bool:
            accepted = super().interruption_is_accepted()
            if accepted and fuse.armed:
                self.start_timer(TimerKind.CONNECT, 1)
            return accepted

    script = conversing(Hasty, "indexed")
    before = script.conversation.snapshot()
    fuse.armed = True
    with pytest.raises(ChartError, match="was decided before the epoch moved"):
        barge_in(script)
    assert script.conversation.snapshot() == before


def test_an_observer_that_raises_undoes_the_macrostep_whose_actions_nobody_gets() -> None:
    script = conversing(ConversationChart, "indexed")
    before = script.conversation.snapshot()

    def broken_observer(_: object) -> None:
        raise OSError("no space left on device")

    leave = script.conversation.observe(broken_observer)
    with pytest.raises(ChartError, match="no space left on device"):
        barge_in(script)
    assert script.conversation.snapshot() == before
    leave()
    barge_in(script)
    assert script.conversation.configuration.playback == "stopped"


def test_an_interrupt_from_the_keyboard_undoes_the_macrostep_and_stays_what_it_is() -> None:
    script = conversing(ConversationChart, "indexed")
    before = script.conversation.snapshot()

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    leave = script.conversation.observe(interrupted)
    with pytest.raises(KeyboardInterrupt):
        barge_in(script)
    leave()
    assert script.conversation.snapshot() == before
    barge_in(script)
    assert script.conversation.configuration.playback == "stopped"
