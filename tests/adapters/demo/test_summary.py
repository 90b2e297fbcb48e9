"""The summary on evidence made by hand: each piece of it is spoilt on its own, and exactly its check must say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from voicechart.adapters.board import RenderedSpan
from voicechart.adapters.demo import Check, Evidence, Summary, VoicedReply, summarize
from voicechart.adapters.demo.cast import POLICIES
from voicechart.adapters.demo.dialogue import EXPECTED, EXPECTED_OF_THE_COMPANION
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.engines.history import Delivery, Record, Reply, UserTurn
from voicechart.engines.ports import SpeechUnit
from voicechart.engines.reports import Word
from voicechart.statecharts import Conversation, SeededIds
from voicechart.statecharts import facts as said
from voicechart.statecharts.actions import RecordDelivery, StoreUserTurn
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.chart import Step
from voicechart.statecharts.context import Context
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.traces import Trace, TraceEncoder, parse_trace
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource, TurnAuthority

FORMAT = AudioFormat(8_000)
MS_NS = 1_000_000
STORY = ("Once there was a clock. ", "It told a story. ", "Nobody listened.")
ANSWER = ("It is 8:07 in the morning.",)
UNIT_MS = 5_000
HEARD_OF_STORY_MS = 7_000
QUANTUM_MS = 100


@dataclass
class Scene:
    """What is true of the good conversation; a test changes one thing and asks for the evidence."""

    questions: tuple[str, str] = ("Tell me a long story.", "What time is it?")
    story: tuple[str, ...] = STORY
    answer: tuple[str, ...] = ANSWER
    heard_of_story_ms: int = HEARD_OF_STORY_MS
    last_pcm_after_ms: int = 2
    """How long after its acceptance the interruption takes effect in the sound."""
    story_is_cancelled: bool = True
    """Its model is still at work when it is interrupted."""
    answer_is_heard: bool = True
    closing_error: ScopedError | None = None
    closes: bool = True
    repeats_a_unit: bool = False
    stop_is_confirmed: bool = True
    accepted_ahead_ms: int = 800
    extra_spans: list[RenderedSpan] = field(default_factory=list[RenderedSpan])

    def __post_init__(self) -> None:
        self.now = 1_000 * MS_NS
        self.spans: list[RenderedSpan] = []
        self.lines: list[str] = []

    def evidence(self) -> Evidence:
        """Everything the good conversation, or the spoilt one, leaves behind."""
        conversation = Conversation("scene", policies=POLICIES, ids=SeededIds("scene"))
        encoder = TraceEncoder(conversation, None, "a test")
        self.lines = [encoder.header(1, conversation.snapshot())]

        def record(step: Step[Context]) -> None:
            self.lines.append(encoder.record(len(self.lines), step))

        conversation.observe(record)
        self._drive(conversation)
        trace = parse_trace("".join(self.lines).encode())
        voiced = (voice("response-a", self.story, 3), voice("response-b", self.answer, 7))
        responses = _responses(trace)
        for place, response_id in enumerate(responses):
            voiced[place].response_id = response_id
        spans = (*self.spans, *self.extra_spans)
        return Evidence(trace, spans, self._recording(spans, voiced), voiced[: len(responses)], self._records(trace))

    def _recording(self, spans: tuple[RenderedSpan, ...], voiced: tuple[VoicedReply, ...]) -> AudioFrame:
        pcm = bytearray()
        for span in spans:
            pcm += voiced[span.stream_id - 1].pcm[span.start_sample * 2 : span.end_sample * 2]
        return AudioFrame(bytes(pcm), FORMAT)

    def _records(self, trace: Trace) -> tuple[Record, ...]:
        """As the history of the product keeps them: from the chart's own records."""
        records: list[Record] = []
        order = _responses(trace)
        for recorded in trace.records:
            for action in recorded.typed_actions():
                if isinstance(action, StoreUserTurn):
                    records.append(
                        UserTurn(action.turn_id, action.position, action.text, action.authority, action.revision)
                    )
                if isinstance(action, RecordDelivery):
                    place = order.index(action.response_id)
                    units = (self.story, self.answer)[place]
                    text = "".join(units)
                    whole = action.status is DeliveryStatus.DELIVERED
                    heard = text if whole else "".join(units[: action.units])
                    delivery = Delivery(
                        action.status,
                        heard.strip(),
                        action.units,
                        action.played_samples,
                        PositionSource.MEASURED,
                        1.0,
                        action.at,
                    )
                    records.append(
                        Reply(action.response_id, "run", action.position, text, Outcome.COMPLETED, "", delivery)
                    )
        return tuple(records)

    # -- the conversation ------------------------------------------------------------------------------------------

    def _tick(self, ms: int = 10) -> int:
        self.now += ms * MS_NS
        return self.now

    def _drive(self, conversation: Conversation) -> None:
        conversation.handle(said.OpenRequested(at=self.now))
        capabilities = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True))
        conversation.handle(said.ConnectionReady(at=self._tick(), capabilities=capabilities))
        self._ask(conversation, self.questions[0])
        self._tell_story(conversation)
        self._ask(conversation, self.questions[1], interrupts=True)
        if self.answer_is_heard:
            self._tell_answer(conversation)
        if self.closes:
            conversation.handle(said.CloseRequested(at=self._tick(), reason="finished", error=self.closing_error))

    def _ask(self, conversation: Conversation, text: str, *, interrupts: bool = False) -> None:
        conversation.handle(said.SpeechStarted(at=self._tick()))
        if interrupts:
            self._interrupt(conversation)
        turn = conversation.context.turn
        assert turn is not None
        recognition = turn.recognitions[-1]
        conversation.handle(said.TurnEnded(at=self._tick(500), authority=TurnAuthority.VAD))
        conversation.handle(
            said.SegmentFinalized(at=self._tick(), recognition_id=recognition, segment_id="s", revision=1, text=text)
        )
        conversation.handle(said.RecognitionClosed(at=self._tick(), recognition_id=recognition))

    def _tell_story(self, conversation: Conversation) -> None:
        reply = conversation.context.response
        assert reply is not None
        epoch = reply.output_epoch
        conversation.handle(said.OutputStarted(at=self._tick(), attempt_id=reply.attempt_id))
        conversation.handle(said.AudioStarted(at=self._tick(), output_epoch=epoch, sample_rate_hz=8_000))
        for index in range(len(self.story)):
            unit = said.SpeechUnitSynthesized(
                at=self._tick(),
                output_epoch=epoch,
                unit_index=index,
                start_sample=samples(index * UNIT_MS),
                end_sample=samples((index + 1) * UNIT_MS),
            )
            conversation.handle(unit)
            if self.repeats_a_unit and index == 0:
                conversation.handle(replace(unit, at=self._tick()))
        conversation.handle(
            said.PrebufferFilled(at=self._tick(), output_epoch=epoch, stream_id=1, played_samples=samples(5))
        )
        self._render(1, epoch, self.heard_of_story_ms)
        accepted = samples(self.heard_of_story_ms + self.accepted_ahead_ms)
        conversation.handle(
            said.PlaybackProgressed(
                at=self._tick(0),
                output_epoch=epoch,
                stream_id=1,
                accepted_samples=accepted,
                submitted_samples=samples(self.heard_of_story_ms),
                played_samples=samples(self.heard_of_story_ms),
            )
        )
        if not self.story_is_cancelled:
            conversation.handle(said.GenerationCompleted(at=self._tick(), attempt_id=reply.attempt_id))

    def _interrupt(self, conversation: Conversation) -> None:
        reply = conversation.context.response
        assert reply is not None
        conversation.handle(said.SpeechProgressed(at=self._tick(0), speech_ms=400))
        # What the device still plays until it has been told.
        start = samples(self.heard_of_story_ms)
        last = RenderedSpan(1, reply.output_epoch, start, start + 40, self.now + self.last_pcm_after_ms * MS_NS)
        self.spans.append(last)
        if self.stop_is_confirmed:
            conversation.handle(
                said.PlaybackStopped(
                    at=self._tick(self.last_pcm_after_ms + 1),
                    output_epoch=reply.output_epoch,
                    stream_id=1,
                    accepted_samples=start + 40,
                    played_samples=start + 40,
                )
            )
        if self.story_is_cancelled:
            conversation.handle(said.CancelAcknowledged(at=self._tick(), attempt_id=reply.attempt_id))

    def _tell_answer(self, conversation: Conversation) -> None:
        reply = conversation.context.response
        assert reply is not None
        epoch = reply.output_epoch
        end = samples(len(self.answer) * UNIT_MS)
        handle = conversation.handle
        handle(said.OutputStarted(at=self._tick(), attempt_id=reply.attempt_id))
        handle(said.GenerationCompleted(at=self._tick(), attempt_id=reply.attempt_id))
        handle(said.AudioStarted(at=self._tick(), output_epoch=epoch, sample_rate_hz=8_000))
        for index in range(len(self.answer)):
            handle(
                said.SpeechUnitSynthesized(
                    at=self._tick(),
                    output_epoch=epoch,
                    unit_index=index,
                    start_sample=samples(index * UNIT_MS),
                    end_sample=samples((index + 1) * UNIT_MS),
                )
            )
        handle(said.PrebufferFilled(at=self._tick(), output_epoch=epoch, stream_id=2, played_samples=samples(5)))
        handle(said.AudioEnded(at=self._tick(), output_epoch=epoch, end_sample=end))
        self._render(2, epoch, len(self.answer) * UNIT_MS)
        handle(
            said.PlaybackDrained(
                at=self._tick(), output_epoch=epoch, stream_id=2, accepted_samples=end, played_samples=end
            )
        )

    def _render(self, stream_id: int, epoch: int, duration_ms: int) -> None:
        for start_ms in range(0, duration_ms, QUANTUM_MS):
            start, end = samples(start_ms), samples(min(start_ms + QUANTUM_MS, duration_ms))
            self.spans.append(RenderedSpan(stream_id, epoch, start, end, self._tick(QUANTUM_MS)))


def samples(duration_ms: int) -> int:
    return FORMAT.samples_for_ms(duration_ms)


def voice(response_id: str, texts: tuple[str, ...], salt: int) -> VoicedReply:
    """Speech in which every sample is different from its neighbours and from the other reply's."""
    units: dict[int, SpeechUnit] = {}
    position = 0
    for index, text in enumerate(texts):
        units[index] = SpeechUnit(index, text.strip(), position, position + len(text))
        position += len(text)
    ranges = {index: (samples(index * UNIT_MS), samples((index + 1) * UNIT_MS)) for index in units}
    pcm = bytearray()
    for sample in range(samples(len(texts) * UNIT_MS)):
        pcm += ((sample * 7 + salt) % 30_000).to_bytes(2, "little")
    return VoicedReply(response_id, 1, FORMAT, units, ranges, pcm)


def _responses(trace: Trace) -> list[str]:
    return [
        str(action["response_id"])
        for record in trace.records
        for action in record.actions
        if action["type"] == "StartGeneration"
    ]


def judged(evidence: Evidence, expected: Sequence[Check] = (*EXPECTED, *EXPECTED_OF_THE_COMPANION)) -> Summary:
    return summarize(evidence, expected)


def failed(summary: Summary) -> set[str]:
    """The claims that do not hold."""
    return {check.claim for check in summary.checks if not check.ok}


RECORDING = "the recording holds exactly the samples that were rendered of the speech"
WITHOUT_HOLE = "each reply was rendered from its first sample on, without a hole"
SILENT = "nothing of a reply was heard after its stop"
ONCE = "no unit of speech came twice"
BOUNDED = "the output queue stayed within its bound"
AT_ONCE = "silence followed each interruption at once"
ANSWERED = "every committed turn was answered"
SETTLED = "every reply ended once and has one delivery record"
THROUGH = "every reply came through"
TRUE_RECORDS = "the history holds as heard what was rendered, and nothing more"
CLOSED = "the session closed as wished"
REPLAYS = "the trace replays to the same decisions"
UNDERSTOOD = "both questions were understood word by word"
STREAMED = "the story was heard before it was written to its end"
INTERRUPTED = "the story was interrupted where the user spoke, and cut there"
SECOND = "the second question was answered, and the answer heard to its end"
UNFINISHED = "the story was still being written when it was interrupted"
SENTENCE = "a whole sentence of the story was heard"
TIME = "the answer tells the time"


def test_the_good_conversation_has_nothing_against_it() -> None:
    summary = judged(Scene().evidence())
    assert summary.problems == ()
    assert summary.ok
    assert {check.claim for check in summary.checks} == {
        RECORDING, WITHOUT_HOLE, SILENT, ONCE, BOUNDED, AT_ONCE, ANSWERED, SETTLED, THROUGH, TRUE_RECORDS, CLOSED,
        REPLAYS, UNDERSTOOD, STREAMED, INTERRUPTED, SECOND, UNFINISHED, SENTENCE, TIME,
    }  # fmt: skip


def test_the_figures_are_those_of_the_evidence() -> None:
    figures = judged(Scene().evidence()).as_json()
    assert figures["ok"] is True
    assert figures["problems"] == []
    assert [turn["transcript"] for turn in figures["turns"]] == ["Tell me a long story.", "What time is it?"]
    assert [turn["authority"] for turn in figures["turns"]] == ["vad", "vad"]
    assert [reply["generated"] for reply in figures["replies"]] == ["".join(STORY), "".join(ANSWER)]
    assert [reply["delivered"] for reply in figures["replies"]] == [
        "Once there was a clock.",
        "It is 8:07 in the morning.",
    ]
    assert [reply["delivery"] for reply in figures["replies"]] == ["interrupted", "delivered"]
    assert [reply["heard_ms"] for reply in figures["replies"]] == [HEARD_OF_STORY_MS + 5, UNIT_MS]
    assert figures["committed_turns"] == 2
    assert figures["interruptions"] == 1
    assert figures["first_audio_before_generation_end"] is True
    assert figures["interruption_to_last_pcm_ms"] == 2.0
    assert figures["stale_frames"] == 0
    assert figures["duplicate_units"] == 0
    assert figures["peak_queue_ms"] == 800.0
    assert figures["closed"] == "finished"
    assert figures["error"] is None


def test_one_sample_of_the_recording_that_differs_is_found() -> None:
    evidence = Scene().evidence()
    spoilt = bytearray(evidence.heard.data)
    spoilt[2 * 1_234] ^= 1
    summary = judged(replace(evidence, heard=AudioFrame(bytes(spoilt), FORMAT)))
    assert failed(summary) == {RECORDING}
    assert "at sample 1234" in summary.problems[0]


@pytest.mark.parametrize("change", [-2, 2])
def test_a_recording_that_is_a_sample_too_short_or_too_long_is_found(change: int) -> None:
    evidence = Scene().evidence()
    data = evidence.heard.data[:change] if change < 0 else evidence.heard.data + bytes(change)
    assert failed(judged(replace(evidence, heard=AudioFrame(data, FORMAT)))) == {RECORDING}


def test_a_recording_in_another_format_is_not_compared() -> None:
    evidence = Scene().evidence()
    assert failed(judged(replace(evidence, heard=AudioFrame(evidence.heard.data, AudioFormat(16_000))))) == {RECORDING}


def test_sound_of_a_stream_that_the_trace_never_opened_is_found() -> None:
    evidence = Scene().evidence()
    foreign = RenderedSpan(9, 99, 0, 40, evidence.spans[-1].rendered_at_ns + 1)
    assert RECORDING in failed(judged(replace(evidence, spans=(*evidence.spans, foreign))))


def test_sound_of_another_epoch_than_its_streams_is_found() -> None:
    evidence = Scene().evidence()
    last = evidence.spans[-1]
    assert RECORDING in failed(judged(replace(evidence, spans=(*evidence.spans[:-1], replace(last, output_epoch=77)))))


def test_a_hole_in_a_stream_is_found() -> None:
    evidence = Scene().evidence()
    spans = (*evidence.spans[:10], *evidence.spans[11:])
    assert WITHOUT_HOLE in failed(judged(replace(evidence, spans=spans)))


def test_a_stream_that_does_not_begin_at_its_start_is_found() -> None:
    evidence = Scene().evidence()
    assert WITHOUT_HOLE in failed(judged(replace(evidence, spans=evidence.spans[1:])))


def test_a_sample_beyond_the_receipt_of_the_stop_is_stale() -> None:
    scene = Scene()
    scene.evidence()
    cut = next(span for span in reversed(scene.spans) if span.stream_id == 1)
    beyond = RenderedSpan(1, cut.output_epoch, cut.end_sample, cut.end_sample + 40, cut.rendered_at_ns)
    evidence = Scene(extra_spans=[]).evidence()
    place = evidence.spans.index(cut) + 1
    spoilt = replace(evidence, spans=(*evidence.spans[:place], beyond, *evidence.spans[place:]))
    summary = judged(spoilt)
    assert summary.stale_frames == 1
    assert SILENT in failed(summary)


def test_a_piece_of_the_story_behind_the_answer_is_stale() -> None:
    scene = Scene()
    scene.evidence()
    story = scene.spans[3]
    late = replace(story, rendered_at_ns=scene.now)
    summary = judged(Scene(extra_spans=[late]).evidence())
    assert summary.stale_frames == 1
    assert SILENT in failed(summary)


def test_a_piece_of_the_story_behind_the_answer_is_stale_even_when_the_stop_was_never_confirmed() -> None:
    scene = Scene(stop_is_confirmed=False)
    scene.evidence()
    summary = judged(Scene(stop_is_confirmed=False, extra_spans=[scene.spans[3]]).evidence())
    assert summary.stale_frames == 1


def test_a_piece_rendered_after_the_receipt_of_the_stop_is_stale_before_anything_else_is_heard() -> None:
    evidence = Scene().evidence()
    place = next(place for place, span in enumerate(evidence.spans) if span.stream_id == 2)
    cut, answer = evidence.spans[place - 1], evidence.spans[place]
    late = replace(evidence.spans[3], rendered_at_ns=answer.rendered_at_ns - 1)
    assert late.end_sample < cut.end_sample
    summary = judged(replace(evidence, spans=(*evidence.spans[:place], late, *evidence.spans[place:])))
    assert summary.stale_frames == 1


def test_a_piece_rendered_again_is_a_duplicate() -> None:
    evidence = Scene().evidence()
    again = (*evidence.spans[:5], evidence.spans[4], *evidence.spans[5:])
    summary = judged(replace(evidence, spans=again))
    assert summary.duplicate_units == 1
    assert ONCE in failed(summary)


def test_a_unit_synthesised_again_is_a_duplicate() -> None:
    summary = judged(Scene(repeats_a_unit=True).evidence())
    assert summary.duplicate_units == 1
    assert failed(summary) == {ONCE}


def test_a_unit_handed_over_again_is_a_duplicate() -> None:
    evidence = Scene().evidence()
    evidence.voiced[0].repeated_units = 1
    summary = judged(evidence)
    assert summary.duplicate_units == 1
    assert failed(summary) == {ONCE}


def test_a_queue_at_its_cap_is_fine_and_beyond_it_is_not() -> None:
    assert judged(Scene(accepted_ahead_ms=1_000).evidence()).ok
    summary = judged(Scene(accepted_ahead_ms=1_001).evidence())
    assert summary.peak_queue_ms == 1_001.0
    assert failed(summary) == {BOUNDED}


def test_a_reply_that_sounds_too_long_after_its_interruption_is_found() -> None:
    assert judged(Scene(last_pcm_after_ms=150).evidence()).ok
    summary = judged(Scene(last_pcm_after_ms=151).evidence())
    assert summary.interruption_to_last_pcm_ms == 151.0
    assert failed(summary) == {AT_ONCE}


def test_a_turn_that_waits_for_its_answer_at_the_end_is_found() -> None:
    summary = judged(Scene(answer_is_heard=False).evidence())
    assert SECOND in failed(summary)
    assert not summary.ok


def test_a_conversation_in_which_nothing_was_understood_is_found() -> None:
    evidence = Scene().evidence()
    header, first = evidence.trace.header, evidence.trace.records[:2]
    nothing = replace(evidence, trace=replace(evidence.trace, header=header, records=first), spans=(), voiced=())
    assert ANSWERED in failed(judged(replace(nothing, heard=AudioFrame(b"", FORMAT), records=())))


def test_a_reply_without_its_record_in_the_history_is_found() -> None:
    evidence = Scene().evidence()
    summary = judged(replace(evidence, records=evidence.records[:-1]))
    assert TRUE_RECORDS in failed(summary)


def test_a_history_that_claims_more_than_was_rendered_is_found() -> None:
    evidence = Scene().evidence()
    records = tuple(
        replace(record, delivery=replace(record.delivery, text="Once there was a clock. It told a story."))
        if isinstance(record, Reply)
        and record.delivery is not None
        and record.delivery.units == 1
        and record.position == 3
        else record
        for record in evidence.records
    )
    assert failed(judged(replace(evidence, records=records))) == {TRUE_RECORDS}


def remembered(story: str, *ends_ms: int) -> Summary:
    """The story is remembered as far as `story`; word by word its second sentence was said at these times."""
    evidence = Scene().evidence()
    starts = (UNIT_MS, *ends_ms)
    words = tuple(
        Word(word, samples(start), samples(end))
        for word, start, end in zip(STORY[1].split(), starts, ends_ms, strict=False)
    )
    evidence.voiced[0].words.complete(1, words)
    records = tuple(
        replace(record, delivery=replace(record.delivery, text=story))
        if isinstance(record, Reply) and record.delivery is not None and record.position == 3
        else record
        for record in evidence.records
    )
    return judged(replace(evidence, records=records))


def test_a_history_may_claim_the_words_of_a_unit_that_were_rendered_whole_and_none_more() -> None:
    ends_ms = (6_000, HEARD_OF_STORY_MS, HEARD_OF_STORY_MS + 500)
    assert failed(remembered("Once there was a clock. It told", *ends_ms)) == set()
    assert failed(remembered("Once there was a clock.", *ends_ms)) == set()
    assert failed(remembered("Once there was a clock. It told a", *ends_ms)) == {TRUE_RECORDS}
    assert failed(remembered("Once there was a clock. It told")) == {TRUE_RECORDS}


def test_a_reply_called_delivered_whose_last_sample_was_not_rendered_is_found() -> None:
    evidence = Scene().evidence()
    last = evidence.spans[-1]
    shorter = (*evidence.spans[:-1], replace(last, end_sample=last.end_sample - 1))
    heard = AudioFrame(evidence.heard.data[:-2], FORMAT)
    summary = judged(replace(evidence, spans=shorter, heard=heard))
    assert failed(summary) == {TRUE_RECORDS, SECOND}


def test_a_reply_called_delivered_with_more_sound_than_was_rendered_is_found() -> None:
    evidence = Scene().evidence()
    evidence.voiced[1].pcm += bytes(2)
    assert failed(judged(evidence)) == {TRUE_RECORDS, SECOND}


def test_a_reply_called_delivered_of_which_a_unit_was_never_spoken_is_found() -> None:
    evidence = Scene().evidence()
    evidence.voiced[1].units[1] = SpeechUnit(1, "And that is all.", 26, 42)
    assert failed(judged(evidence)) == {TRUE_RECORDS, SECOND}


def test_a_session_that_closed_with_an_error_is_found() -> None:
    error = ScopedError("device_vanished", "playback", ErrorScope.SESSION, "unplugged")
    summary = judged(Scene(closing_error=error).evidence())
    assert failed(summary) == {CLOSED}
    assert summary.error is not None
    assert summary.error["code"] == "device_vanished"


def test_a_session_that_never_closed_is_found() -> None:
    assert failed(judged(Scene(closes=False).evidence())) == {CLOSED}


def test_a_trace_that_does_not_replay_is_found() -> None:
    evidence = Scene().evidence()
    records = list(evidence.trace.records)
    place = next(place for place, record in enumerate(records) if record.event == "playback_drained")
    records[place] = replace(records[place], actions=records[place].actions[1:])
    summary = judged(replace(evidence, trace=replace(evidence.trace, records=tuple(records))))
    assert REPLAYS in failed(summary)


def test_a_delivery_that_was_never_recorded_is_found() -> None:
    evidence = Scene().evidence()
    records = tuple(
        replace(record, actions=tuple(action for action in record.actions if action["type"] != "RecordDelivery"))
        for record in evidence.trace.records
    )
    assert SETTLED in failed(judged(replace(evidence, trace=replace(evidence.trace, records=records))))


@pytest.mark.parametrize("word", ["failed", "unknown"])
def test_a_reply_that_did_not_come_through_is_found(word: str) -> None:
    evidence = Scene().evidence()
    records = tuple(
        replace(
            record,
            actions=tuple(
                {**action, "status": word} if action["type"] == "RecordDelivery" else action
                for action in record.actions
            ),
        )
        for record in evidence.trace.records
    )
    assert THROUGH in failed(judged(replace(evidence, trace=replace(evidence.trace, records=records))))


def test_a_question_that_was_misheard_is_found() -> None:
    summary = judged(Scene(questions=("Tell me a long story.", "What's mine is it?")).evidence())
    assert failed(summary) == {UNDERSTOOD}


def test_case_and_punctuation_of_a_question_do_not_matter() -> None:
    assert judged(Scene(questions=("tell me, a long STORY", "What time is it")).evidence()).ok


def test_a_story_of_which_too_little_was_heard_is_found() -> None:
    summary = judged(Scene(heard_of_story_ms=6_400).evidence())
    assert failed(summary) == {INTERRUPTED}


def test_a_story_of_which_no_sentence_was_heard_is_found() -> None:
    summary = judged(Scene(heard_of_story_ms=4_900).evidence())
    assert failed(summary) == {INTERRUPTED, SENTENCE}


def test_a_story_that_was_written_whole_before_its_interruption_is_found() -> None:
    summary = judged(Scene(story_is_cancelled=False).evidence())
    assert failed(summary) == {UNFINISHED}


def test_a_story_that_was_heard_only_after_it_was_written_is_found() -> None:
    evidence = Scene().evidence()
    late = tuple(replace(span, rendered_at_ns=span.rendered_at_ns + 10**12) for span in evidence.spans)
    summary = judged(replace(evidence, spans=late))
    assert STREAMED in failed(summary)
    assert not summary.first_audio_before_generation_end


def test_an_answer_that_does_not_tell_the_time_is_found() -> None:
    assert failed(judged(Scene(answer=("I heard: what time.",)).evidence())) == {TIME}


def test_a_talk_is_held_to_nothing_that_only_the_demo_promises() -> None:
    scene = Scene(questions=("Sing me a song.", "Now stop."), answer=("Okay.",), heard_of_story_ms=1_000)
    assert judged(scene.evidence(), expected=()).ok
