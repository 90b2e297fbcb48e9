"""A whole conversation over a real socket in real time, with scripted parts: what it leaves, and how it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from voicechart.adapters.demo import Cast, NativeCast, Outcome, Plan, RehearsalFailed, Summary, rehearse, summarize
from voicechart.adapters.history import HistoryStore
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.audio.wav_reader import read_wav
from voicechart.engines import Tool
from voicechart.engines.reports import GenerationEnded, GenerationReport, ToolCallProposed
from voicechart.engines.testing import (
    Script,
    ScriptedRealtimeModel,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    Step,
    answers,
    hears,
    says,
)
from voicechart.statecharts.values import DeliveryStatus

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
STORY = "Once there was a clock in a town by the sea. It told a long story. Nobody listened to its end."
ANSWER = "It is noon."


class Loudness:
    """Takes whatever is loud for speech."""

    def __call__(self, pcm: bytes, /) -> float:
        return 1.0 if np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)).max() > 1_000 else 0.0

    def reset(self) -> None:
        """Nothing to forget."""


def tone(duration_ms: int = 600) -> AudioFrame:
    samples = np.arange(SPEECH_FORMAT.samples_for_ms(duration_ms))
    wave = 8_000 * np.sin(2 * np.pi * 300 * samples / SPEECH_FORMAT.sample_rate_hz)
    return AudioFrame(wave.astype("<i2").tobytes(), SPEECH_FORMAT)


def cast(*replies: str) -> Cast:
    return Cast(
        ScriptedRecognizer(*(Script(hears(f"question number {place} please")) for place in range(len(replies)))),
        ScriptedResponder(*(Script(says(reply, token_ms=40)) for reply in replies)),
        ScriptedSynthesizer(SpeechScript(ms_per_char=30)),
        Loudness(),
    )


def judged(outcome: Outcome) -> Summary:
    assert outcome.evidence is not None
    return summarize(outcome.evidence)


async def test_a_recording_spoken_into_a_reply_interrupts_it_and_is_answered(tmp_path: Path) -> None:
    plan = Plan((tone(), tone()), tmp_path / "out", barge_in_after_ms=600, deadline_s=30)
    summary = judged(await rehearse(plan, cast(STORY, ANSWER)))
    assert summary.problems == ()
    assert [reply.delivery for reply in summary.replies] == [DeliveryStatus.INTERRUPTED, DeliveryStatus.DELIVERED]
    assert summary.replies[0].heard_ms >= 600
    assert summary.replies[0].first_audio_before_generation_end
    assert summary.interruptions == 1
    assert read_wav(plan.heard_path).duration_ms == pytest.approx(summary.heard_ms, abs=0.1)


async def test_without_a_barge_in_the_next_recording_waits_for_the_end_of_the_reply(tmp_path: Path) -> None:
    plan = Plan((tone(), tone()), tmp_path, deadline_s=30)
    summary = judged(await rehearse(plan, cast("Good day.", ANSWER)))
    assert summary.problems == ()
    assert [reply.delivered for reply in summary.replies] == ["Good day.", ANSWER]
    assert summary.interruptions == 0
    assert summary.interruption_to_last_pcm_ms is None


async def test_a_recording_in_which_nobody_speaks_ends_without_a_turn(tmp_path: Path) -> None:
    silence = AudioFrame(bytes(SPEECH_FORMAT.bytes_for(8_000)), SPEECH_FORMAT)
    summary = judged(await rehearse(Plan((silence,), tmp_path, deadline_s=30), cast()))
    assert "no turn of the user was understood" in summary.problems


async def test_a_conversation_that_never_ends_is_given_up_with_an_error(tmp_path: Path) -> None:
    summary = judged(await rehearse(Plan((tone(),), tmp_path, deadline_s=2.5), cast(STORY)))
    assert summary.closed == "overran"
    assert summary.error is not None
    assert summary.error["code"] == "rehearsal_overran"
    assert not summary.ok


async def test_a_reply_that_fails_is_told_with_its_error(tmp_path: Path) -> None:
    parts = cast(STORY)
    failing = Cast(
        parts.recognizer,
        parts.responder,
        ScriptedSynthesizer(SpeechScript(ms_per_char=20, fails_at_unit=1)),
        Loudness(),
    )
    summary = judged(await rehearse(Plan((tone(),), tmp_path, deadline_s=30), failing))
    assert not summary.ok
    assert any("the script says so" in problem for problem in summary.problems)


async def test_a_place_that_cannot_be_written_is_refused_before_anybody_speaks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RehearsalFailed, match="choose another"):
        await rehearse(Plan((tone(),), tmp_path / "file" / "out"), cast(ANSWER))


async def test_a_recording_that_cannot_be_begun_fails_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "heard.wav").mkdir()
    with pytest.raises(RehearsalFailed, match=r"heard\.wav"):
        await rehearse(Plan((tone(),), tmp_path), cast(ANSWER))


async def test_a_trace_that_cannot_be_written_fails_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").mkdir()
    with pytest.raises(RehearsalFailed, match="trac"):
        await rehearse(Plan((tone(),), tmp_path, deadline_s=30), cast(ANSWER))


async def test_a_conversation_with_a_history_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    parts = cast("Good day.")
    await rehearse(Plan((tone(),), tmp_path, deadline_s=30, history=tmp_path / "history.db"), parts)
    second = cast(ANSWER)
    outcome = await rehearse(Plan((tone(),), tmp_path, deadline_s=30, history=tmp_path / "history.db"), second)
    summary = judged(outcome)
    assert summary.problems == ()
    assert [reply.delivered for reply in summary.replies] == [ANSWER]
    assert isinstance(second.responder, ScriptedResponder)
    shown = [message.text for message in second.responder.requests[0].messages]
    assert shown == ["question number 0 please", "Good day.", "question number 0 please"]
    with HistoryStore(tmp_path / "history.db", create=False) as store:
        assert len(store.records("rehearsal")) == 4


async def test_what_the_turns_cost_is_told_at_the_end(tmp_path: Path) -> None:
    outcome = await rehearse(Plan((tone(),), tmp_path, deadline_s=30), cast(ANSWER))
    assert outcome.metrics.totals.deliveries == {"delivered": 1}
    found = outcome.metrics.distributions()
    assert {"first_transcript_ms", "turn_accepted_ms", "first_text_ms", "first_rendered_ms", "peak_queue_ms"} <= set(
        found
    )
    assert found["first_text_ms"].p50_ms <= found["first_pcm_ms"].p50_ms <= found["first_rendered_ms"].p50_ms


class Lamp(BaseModel):
    number: int


async def test_the_model_may_call_what_is_offered_and_answers_with_its_result(tmp_path: Path) -> None:
    switched: list[int] = []

    async def switch(lamp: Lamp) -> str:
        switched.append(lamp.number)
        return "on"

    call: Script[GenerationReport] = Script(
        [Step(ToolCallProposed("c1", "switch", '{"number": 3}')), Step(GenerationEnded(awaits_tools=True))]
    )
    with_a_tool = replace(
        cast(ANSWER),
        responder=ScriptedResponder(call, Script(says(ANSWER))),
        tools=(Tool("switch", "Switch a lamp.", Lamp, switch),),
    )
    summary = judged(await rehearse(Plan((tone(),), tmp_path, deadline_s=30), with_a_tool))
    assert summary.problems == ()
    assert [reply.delivered for reply in summary.replies] == [ANSWER]
    assert switched == [3]


async def test_a_native_model_is_interrupted_like_any_other_and_cut_to_what_was_heard(tmp_path: Path) -> None:
    model = ScriptedRealtimeModel(answers(STORY, 6_000), answers(ANSWER, 600))
    native = NativeCast(model, Loudness())
    plan = Plan((tone(), tone()), tmp_path / "out", barge_in_after_ms=600, deadline_s=30)
    summary = judged(await rehearse(plan, native))
    assert summary.problems == ()
    assert [reply.delivery for reply in summary.replies] == [DeliveryStatus.INTERRUPTED, DeliveryStatus.DELIVERED]
    assert [reply.delivered for reply in summary.replies] == ["", ANSWER]
    assert summary.stale_frames == 0
    (cut,) = model.session.asked_for("truncate")
    assert abs(int(cut[1]) - summary.replies[0].heard_ms) <= 40
