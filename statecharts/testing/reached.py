"""Conversations that have arrived somewhere, by the name of the state that matters there."""

from __future__ import annotations

from dataclasses import replace

from ..policies import Policies
from .clockwork import HANDS_FREE
from .script import ScriptedConversation

END_SAMPLE = 48_000
"""Where the reply ends: three units of one second."""


class Reached:
    """Each method tells a fresh conversation up to the state it is named after."""

    def opening(self) -> ScriptedConversation:
        script = ScriptedConversation()
        script.opens()
        return script

    def reconnecting(self) -> ScriptedConversation:
        script = ScriptedConversation().opened()
        script.connection_breaks()
        return script

    def closing(self) -> ScriptedConversation:
        script = self.cancelling()
        script.closes()
        return script

    def closed(self) -> ScriptedConversation:
        script = ScriptedConversation().opened()
        script.closes()
        return script

    def idle(self) -> ScriptedConversation:
        return ScriptedConversation().opened()

    def speech(self) -> ScriptedConversation:
        script = self.idle()
        script.user_starts_speaking(sample=0)
        return script

    def hypothesis(self) -> ScriptedConversation:
        script = self.speech()
        script.hears("what time")
        return script

    def discarded(self) -> ScriptedConversation:
        script = self.idle()
        script.makes_a_noise()
        return script

    def waiting(self) -> ScriptedConversation:
        """A turn was committed, and the model was asked."""
        script = self.idle()
        script.user_says("what time is it")
        return script

    def streaming(self) -> ScriptedConversation:
        script = self.waiting()
        script.model_starts_writing()
        return script

    def tools(self) -> ScriptedConversation:
        script = self.waiting()
        script.model_calls_tool("call-1")
        return script

    def cancelling(self) -> ScriptedConversation:
        script = self.streaming()
        script.user_presses_stop()
        return script

    def cancelled(self) -> ScriptedConversation:
        script = self.cancelling()
        script.model_acknowledges_cancel()
        return script

    def failed(self) -> ScriptedConversation:
        script = self.streaming()
        script.model_fails()
        return script

    def buffering(self) -> ScriptedConversation:
        script = self.streaming()
        script.audio_starts()
        return script

    def playing(self) -> ScriptedConversation:
        script = self.waiting()
        script.reply_is_playing((16_000, 32_000, END_SAMPLE), played_samples=20_000)
        return script

    def paused(self) -> ScriptedConversation:
        script = ScriptedConversation(Policies(interruption=replace(HANDS_FREE, pause_first=True))).opened()
        script.user_says("what time is it")
        script.reply_is_playing((16_000, 32_000, END_SAMPLE), played_samples=20_000)
        script.user_starts_speaking()
        return script

    def draining(self) -> ScriptedConversation:
        """Generation has completed, all audio exists."""
        script = self.playing()
        script.model_finishes()
        script.audio_ends(END_SAMPLE)
        return script

    def drained(self) -> ScriptedConversation:
        script = self.draining()
        script.speaker_drains(END_SAMPLE)
        return script

    def stopped(self) -> ScriptedConversation:
        """Interrupted and acknowledged; the receipt of the stop has not come."""
        script = self.playing()
        script.user_presses_stop()
        script.model_acknowledges_cancel()
        return script

    def everywhere(self) -> dict[str, ScriptedConversation]:
        """A fresh conversation in each of them."""
        names = [name for name in vars(Reached) if not name.startswith("_") and name != "everywhere"]
        return {name: getattr(self, name)() for name in names}
