"""A conversation inside your own program. Scripted ports stand in for your board, recogniser and voice."""

import anyio

from voicechart.adapters.responders import PatternCompanion
from voicechart.engines import CascadeEngine, CascadePorts, PublicEvent, Session
from voicechart.engines.testing import ScriptedDevice, ScriptedRecognizer, ScriptedSynthesizer, SoundIsSpeech
from voicechart.statecharts import Conversation

ports = CascadePorts(ScriptedDevice(), ScriptedRecognizer(), PatternCompanion(), ScriptedSynthesizer(), SoundIsSpeech())
session = Session(Conversation("kitchen"), CascadeEngine(ports))


def follow(event: PublicEvent) -> None:
    print(session.conversation.configuration, "·", event.type)
    if event.type == "session.ready":
        session.submit_text("What time is it?")
    if event.type == "playback.drained":
        session.close()


session.public.listen(follow)
anyio.run(session.run)
