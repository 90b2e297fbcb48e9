"""A spoken conversation on scripted ports, served on a real socket: captions, tools and what was heard, without a
model, a microphone or a loudspeaker.

Time passes as it does: whoever says something of a second takes a second. Needs the extra `web`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from pydantic import BaseModel

from ...engines import Session, SideEffects, TextPorts, Tool
from ...engines.background import BackgroundTasks
from ...engines.ports import GenerationRequest
from ...engines.reports import (
    GenerationEnded,
    GenerationReport,
    RecognitionEnded,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    ToolCallProposed,
)
from ...engines.testing import (
    HANDS_FREE,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    Step,
    says,
)
from ...statecharts import Conversation, SeededIds
from ..web.conversations import new_session_epoch
from ..web.hosting import hosting, text_session
from ..web.options import WebOptions

FORECAST = (
    "In Lisbon it is sunny, with twenty-three degrees and a light wind from the sea. "
    "Tomorrow clouds come in from the west, and by the evening it may rain. "
    "Over the weekend the sun is back, and it gets warmer day by day. "
    "I have put the whole forecast on your list."
)
CHINESE = "当然。从前，海边有一座小镇，镇上住着一位修钟的老人。他的店里挂满了钟，可是没有两只走得一样。"  # noqa: RUF001 - Chinese has commas of its own
VOICE = 1_000
SILENCE_MS = 700
_HOP_SAMPLES = 1_600


class City(BaseModel):
    city: str


def hears_anew(*hypotheses: str) -> Script[RecognitionReport]:
    """One segment whose every hypothesis replaces the former one, 100 ms of sound apart; the last one is the final."""
    steps: list[Step[RecognitionReport]] = [
        Step(SegmentHypothesis("s1", number, text), written_samples=number * _HOP_SAMPLES)
        for number, text in enumerate(hypotheses, 1)
    ]
    steps.append(Step(SegmentFinal("s1", len(hypotheses) + 1, hypotheses[-1]), input_finished=True))
    steps.append(Step(RecognitionEnded(), input_finished=True))
    return Script(steps)


def answers(request: GenerationRequest) -> Script[GenerationReport]:
    """A forecast by way of two tools to who asks in a spoken turn, then a word; Chinese to who writes it."""
    asked = request.messages[-1]
    if any("\u4e00" <= letter <= "\u9fff" for letter in asked.text):
        return Script(says(CHINESE, token_ms=30))
    if asked.role == "tool":
        return Script(says(FORECAST, token_ms=15))
    if "weather" in asked.text:
        calls = [
            Step(ToolCallProposed("c1", "weather", '{"city": "Lisbon"}')),
            Step(ToolCallProposed("c2", "write_to_list", '{"city": "Lisbon"}')),
        ]
        return Script([*calls, Step(GenerationEnded(awaits_tools=True))])
    return Script(says("All right, I stop.", token_ms=15))


class SpokenRehearsal(Rehearsal):
    """A device at which nobody has said anything yet. The background task runs until `let_go` is set."""

    def __init__(self) -> None:
        self.let_go = anyio.Event()
        self.device = ScriptedDevice()
        recognizer = ScriptedRecognizer(
            hears_anew(
                "what's",
                "what's the",
                "what's the whether",
                "what's the weather in",
                "what's the weather in listen",
                "what's the weather in Lisbon",
            ),
            hears_anew("stop", "stop please"),
        )
        super().__init__(
            device=self.device,
            recognizer=recognizer,
            responder=ScriptedResponder(answers=answers),
            synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=25)),
            tools=(
                Tool("weather", "Tells the weather.", City, self._weather, side_effects=SideEffects.NONE),
                Tool("write_to_list", "Writes.", City, self._write_to_list, background=True),
            ),
            tasks=BackgroundTasks(),
            conversation=Conversation(
                "kitchen", policies=HANDS_FREE, ids=SeededIds("kitchen"), session_epoch=new_session_epoch()
            ),
        )

    async def speak(self, duration_ms: int) -> None:
        """Say the next thing that the recogniser has a script for, then be silent until the turn is over."""
        await self.device.microphone.listen(duration_ms, VOICE)
        await self.device.microphone.listen(SILENCE_MS)

    async def until_heard(self, units: int) -> None:
        """Until so many units of the first reply have been played."""

        def is_heard() -> bool:
            voiced = self.of("speech.unit_synthesized")
            moved = self.of("playback.progress")
            if len(voiced) < units or not moved:
                return False
            played: int = moved[-1].as_json()["payload"]["played_samples"] or 0
            return played > voiced[units - 1].as_json()["payload"]["end_sample"]

        await self.until_true(is_heard)

    async def _weather(self, city: City) -> str:
        await anyio.sleep(0.3)
        return "sunny"

    async def _write_to_list(self, city: City) -> str:
        await self.let_go.wait()
        return "written"


@dataclass(frozen=True)
class SpokenSite:
    """Where it is watched, and what happens at the device."""

    address: str
    rehearsal: SpokenRehearsal


@asynccontextmanager
async def spoken_site(options: WebOptions | None = None) -> AsyncGenerator[SpokenSite]:
    """The rehearsal, served, with conversations in writing beside it."""
    rehearsal = SpokenRehearsal()
    ports = TextPorts(ScriptedResponder(answers=answers), is_shared=True)

    def open_text(name: str) -> Session:
        return text_session(name, ports, HANDS_FREE)

    options = options or WebOptions(port=0)
    async with hosting(rehearsal.session, "voice", options, open_text) as server, rehearsal.running():
        yield SpokenSite(server.address, rehearsal)
        rehearsal.let_go.set()
