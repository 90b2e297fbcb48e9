"""A conversation inside your own program: hand in what happens, see what is decided."""

import anyio

from voicechart.adapters.responders import PatternCompanion
from voicechart.engines import CascadeEngine, CascadePorts, Session
from voicechart.engines.testing import ScriptedDevice, ScriptedRecognizer, ScriptedSynthesizer, SoundIsSpeech
from voicechart.statecharts import Conversation
from voicechart.statecharts.facts import TextSubmitted


async def main() -> None:
    # Scripted ports stand in for your board, recogniser and voice; voicechart.adapters has real ones.
    device, recognizer, synthesizer = ScriptedDevice(), ScriptedRecognizer(), ScriptedSynthesizer()
    ports = CascadePorts(device, recognizer, PatternCompanion(), synthesizer, SoundIsSpeech())
    session = Session(Conversation("kitchen"), CascadeEngine(ports))
    with session.public.subscribe() as subscription:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run)
            async for event in subscription.events():
                print(session.conversation.configuration, "·", event.type)
                if event.type == "session.ready":
                    session.report(TextSubmitted(at=session.clock.now_ns(), text="What time is it?"))
                if event.type == "playback.drained":
                    session.close()


anyio.run(main)
