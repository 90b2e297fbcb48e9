"""What streams is collected: the same words and samples, at once, with the ends and errors that there were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.adapters.composition import CollectingRecognizer, CollectingResponder, CollectingSynthesizer, compose
from voicechart.adapters.configuration import parse_configuration
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import GenerationRequest, Message, RecognitionRequest, SpeechUnit, SynthesisRequest
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    ReasoningDelta,
    RecognitionEnded,
    SegmentFinal,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    TextDelta,
    ToolCallProposed,
    UnitSynthesized,
)
from voicechart.engines.testing import (
    Script,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    Step,
    hears,
    says,
    scripted_error,
)

pytestmark = pytest.mark.anyio
ASKED = GenerationRequest("r1", "a1", (Message("user", "go on"),))


async def generated(*reports: GenerationReport, max_reply_chars: int = 100) -> list[GenerationReport]:
    inner = ScriptedResponder(Script([Step(report) for report in reports]))
    stream = await CollectingResponder(inner, max_reply_chars).open(ASKED)
    return [report async for report in stream.reports()]


async def test_a_reply_comes_at_once_when_the_model_has_ended() -> None:
    inner = ScriptedResponder(Script(says("one two three")))
    collecting = CollectingResponder(inner)
    assert not collecting.capabilities.text_deltas
    assert collecting.capabilities == replace(inner.capabilities, text_deltas=False)
    stream = await collecting.open(ASKED)
    assert [report async for report in stream.reports()] == [TextDelta("one two three"), GenerationEnded()]


async def test_text_comes_before_the_tool_call_that_follows_it_and_reasoning_is_no_text() -> None:
    call = ToolCallProposed("c1", "look", "{}")
    ended = GenerationEnded(awaits_tools=True)
    found = await generated(ReasoningDelta("hm"), TextDelta("Let me "), TextDelta("see."), call, TextDelta("!"), ended)
    assert found == [ReasoningDelta("hm"), TextDelta("Let me see."), call, TextDelta("!"), ended]


async def test_a_failure_that_is_tried_again_leaves_no_text_and_any_other_leaves_what_there_was() -> None:
    cut = GenerationErrored(replace(scripted_error(retryable=True), partial_output=True))
    assert await generated(TextDelta("half"), cut) == [GenerationErrored(replace(cut.error, partial_output=False))]
    limit = GenerationErrored(scripted_error("output_limit"))
    assert await generated(TextDelta("half"), limit) == [TextDelta("half"), limit]


async def test_a_cancelled_reply_leaves_no_text() -> None:
    inner = ScriptedResponder(Script(says("one two three", token_ms=1)))
    stream = await CollectingResponder(inner).open(ASKED)
    stream.cancel("enough")
    assert [report async for report in stream.reports()] == [GenerationStopped()]
    assert inner.streams[0].cancel_reason == "enough"


async def test_a_reply_of_the_greatest_length_is_collected_and_a_longer_one_fails() -> None:
    ended = GenerationEnded()
    assert await generated(TextDelta("a" * 99), TextDelta("a"), ended) == [TextDelta("a" * 100), ended]
    (failed,) = await generated(TextDelta("a" * 99), TextDelta("ab"), ended)
    assert isinstance(failed, GenerationErrored)
    assert failed.error.code == "reply_too_long"


async def test_a_transcript_comes_at_its_end_only() -> None:
    inner = ScriptedRecognizer(Script(hears("what time is it", every_samples=10)))
    collecting = CollectingRecognizer(inner)
    assert collecting.capabilities == replace(inner.capabilities, interim=False)
    stream = await collecting.open(RecognitionRequest("u1", SPEECH_FORMAT))
    await stream.write(AudioFrame(bytes(320), SPEECH_FORMAT))
    await stream.finish_input()
    final, ended = [report async for report in stream.reports()]
    assert isinstance(final, SegmentFinal)
    assert final.text == "what time is it"
    assert ended == RecognitionEnded()


async def spoken(script: SpeechScript, *texts: str, max_unit_ms: float = 60_000) -> list[SynthesisReport]:
    stream = await CollectingSynthesizer(ScriptedSynthesizer(script), max_unit_ms).open(SynthesisRequest("r1", 1))
    for index, text in enumerate(texts):
        await stream.write(SpeechUnit(index, text))
    await stream.finish_input()
    return [report async for report in stream.reports()]


async def test_a_unit_is_heard_from_one_frame_with_all_its_words() -> None:
    script = SpeechScript(ms_per_char=10, word_times=True)
    first, first_end, second, second_end, ended = await spoken(script, "one two", "three")
    assert isinstance(first, Synthesized)
    assert isinstance(second, Synthesized)
    assert (first.frame.start_sample, first.frame.end_sample) == (0, 1_120)
    assert (second.frame.start_sample, second.frame.end_sample) == (1_120, 1_920)
    assert [word.text for word in first.words] == ["one", "two"]
    assert isinstance(first_end, UnitSynthesized)
    assert isinstance(second_end, UnitSynthesized)
    assert (second_end.unit_index, second_end.start_sample, second_end.end_sample) == (1, 1_120, 1_920)
    assert ended == SynthesisEnded(1_920)


async def test_nothing_of_a_unit_that_failed_or_was_cancelled_is_heard() -> None:
    *heard, failed = await spoken(SpeechScript(ms_per_char=10, fails_at_unit=1), "one", "two")
    assert [type(report) for report in heard] == [Synthesized, UnitSynthesized]
    assert isinstance(failed, SynthesisErrored)
    collecting = CollectingSynthesizer(ScriptedSynthesizer(SpeechScript()))
    assert not collecting.capabilities.incremental_pcm
    stream = await collecting.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "one"))
    stream.cancel("enough")
    assert [report async for report in stream.reports()] == [SynthesisStopped()]


async def test_a_unit_of_the_greatest_length_is_collected_and_a_longer_one_fails() -> None:
    assert len(await spoken(SpeechScript(ms_per_char=10), "abcde", max_unit_ms=50)) == 3
    (failed,) = await spoken(SpeechScript(ms_per_char=10), "abcdef", max_unit_ms=50)
    assert isinstance(failed, SynthesisErrored)
    assert failed.error.code == "unit_too_long"


@pytest.mark.parametrize(("policy", "is_collected"), [("disabled", True), ("prefer", False)])
def test_the_streaming_policy_decides_what_is_collected(policy: str, is_collected: bool) -> None:
    audio = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
    ports = compose(parse_configuration(f'{audio}[connection]\nstreaming = "{policy}"\n'), {}).ports
    assert isinstance(ports.recognizer, CollectingRecognizer) is is_collected
    assert isinstance(ports.responder, CollectingResponder) is is_collected
    assert isinstance(ports.synthesizer, CollectingSynthesizer) is is_collected
    assert ports.recognizer.capabilities.interim is not is_collected
