"""What a native model said is known item by item, and its words answer by answer."""

from __future__ import annotations

import pytest

from voicechart.adapters.demo.native_witness import WitnessedModel
from voicechart.audio.formats import AudioFrame
from voicechart.engines.ports import SpeechUnit
from voicechart.engines.realtime import RealtimeRequest
from voicechart.engines.realtime.reports import AnswerAudio, AnswerEnded, AnswerText
from voicechart.engines.testing import REALTIME_FORMAT, ScriptedRealtimeModel
from voicechart.statecharts.actions import Stamp, StartGeneration

pytestmark = pytest.mark.anyio


def audio(answer_id: str, item_id: str, value: int, samples: int = 2) -> AnswerAudio:
    return AnswerAudio(answer_id, item_id, AudioFrame(bytes([value, 0]) * samples, REALTIME_FORMAT))


async def test_items_become_units_and_the_words_of_an_answer_count_with_its_last_item() -> None:
    inner = ScriptedRealtimeModel()
    model = WitnessedModel(inner)
    assert (model.capabilities, model.output_format) == (inner.capabilities, inner.output_format)
    model.note(StartGeneration(Stamp(1, 1), "run1", "r1", "a1", ("t1",), 1, 1))
    session = await model.open(RealtimeRequest())
    reports = (
        *(
            AnswerText("a1.1", "Let me see. "),
            audio("a1.1", "i1", 1),
            audio("a1.1", "i2", 2),
            AnswerEnded("a1.1", True),
        ),
        *(AnswerText("a1.2", "It is noon."), audio("a1.2", "i3", 3, samples=3), AnswerEnded("a1.2")),
    )
    inner.session.tell(*reports)
    await session.aclose()
    assert [report async for report in session.reports()][: len(reports)] == list(reports)
    (reply,) = model.voiced
    assert reply.response_id == "r1"
    assert list(reply.units.values()) == [
        SpeechUnit(0, "i1", 0, 0),
        SpeechUnit(1, "i2", 0, 12),
        SpeechUnit(2, "i3", 12, 23),
    ]
    assert reply.ranges == {0: (0, 2), 1: (2, 4), 2: (4, 7)}
    assert bytes(reply.pcm) == b"\x01\x00" * 2 + b"\x02\x00" * 2 + b"\x03\x00" * 3


async def test_what_the_engine_asks_reaches_the_model() -> None:
    inner = ScriptedRealtimeModel()
    session = await WitnessedModel(inner).open(RealtimeRequest())
    await session.begin_utterance("u1")
    await session.commit_utterance("u1")
    await session.discard_utterance("u2")
    await session.submit_text("hello")
    await session.submit_outputs(())
    await session.respond("a1.1")
    session.cancel("a1.1", "enough")
    await session.truncate("i1", 20)
    assert [asked[0] for asked in inner.session.asked] == [
        *("begin", "commit", "discard", "text", "respond", "cancel", "truncate")
    ]
