"""Ten thousand interleavings of speech, recognition and clock: one whole turn an utterance, or it is said to be lost.

A case is a little world on virtual time. Somebody says utterances whose words are numbered; voice activity hears them
late; each recognition that the chart asks for hears exactly the words it was given, through its own `Recognition`
chart, and tells them as hypotheses that it revises, as finals in any order, twice, late or never; it may not be ready,
fail, or hang. Whoever is not the configured authority keeps saying that the turn is over. What a case does is read from
a tape of bytes, so that a failure shrinks to the dullest world that still fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from voicechart.statecharts import Conversation, InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.actions import (
    Action,
    CancelGeneration,
    CancelRecognition,
    CancelTimer,
    FinishOutput,
    FinishRecognition,
    OpenOutput,
    Publish,
    StartGeneration,
    StartRecognition,
    StartTimer,
    StopPlayback,
    StoreUserTurn,
    TranscribeRecording,
)
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.facts import (
    AudioEnded,
    AudioStarted,
    CancelAcknowledged,
    ConnectionReady,
    Fact,
    GenerationCompleted,
    InputDiscontinuity,
    OpenRequested,
    PlaybackDrained,
    PlaybackStopped,
    PrebufferFilled,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    StreamFact,
    TimerFired,
    TranscriptUpdated,
    TurnCancelled,
    TurnEnded,
)
from voicechart.statecharts.published import StreamDiscontinuity, StreamError, TurnDiscarded
from voicechart.statecharts.recognition import (
    AudioWritten,
    FinishStream,
    InputFinished,
    PreReadyOverflowed,
    Recognition,
    RecognitionCancelled,
    RecognizerEnded,
    RecognizerErrored,
    RecognizerReady,
    ReleaseAudio,
    ReportClosed,
    ReportFailed,
)
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

EXAMPLES = 10_000
AUTHORITIES = (TurnAuthority.VAD, TurnAuthority.RECOGNIZER, TurnAuthority.SEMANTIC, TurnAuthority.MANUAL)
EVERYBODY = InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True)
PREFIX_MS = 300
SILENCE_MS = 500
"""After so much of it voice activity says that speech is over."""
PRE_READY_MS = 2_000
RECORDING_MS = 30_000
FINISH_DEADLINE_MS = 4_000
"""A recogniser that has not ended so long after its input is given up by the engine."""
WORD_MS = 200
LOST = ScopedError("recognizer_lost", "recognition", ErrorScope.TURN, "the tape says so", retryable=True)


class Tape:
    """Choices, one byte each; beyond its end everything is as dull as possible."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def pick(self, dull: int, *others: int) -> int:
        choices = (dull, *others)
        return choices[next(self._bytes, 0) % len(choices)]

    def seldom(self, one_in: int) -> bool:
        """Never on an empty tape."""
        return next(self._bytes, 0) % one_in == one_in - 1


@dataclass
class Segment:
    """What a recognition hears in one piece."""

    number: int
    words: list[int] = field(default_factory=list[int])
    revision: int = 0
    is_final: bool = False

    @property
    def text(self) -> str:
        return " ".join(f"w{word}" for word in self.words)


@dataclass
class Hearing:
    """A recognition: the words that it was given, and what it has told of them. Times in ms."""

    recognition_id: str
    turn_id: str
    chart: Recognition
    since_ms: int
    words_a_segment: int
    lag_ms: int
    is_anonymous: bool
    fails_at_word: int
    hangs: bool
    heard: list[int] = field(default_factory=list[int])
    told: int = 0
    """How many of the words it has told a hypothesis of."""
    segments: list[Segment] = field(default_factory=list[Segment])
    waiting_since_ms: int | None = None
    released: bool = False
    input_over: bool = False
    over: bool = False
    """Its input was finished, or it was cancelled or failed."""
    finishing: bool = False
    given_up: bool = False
    """Nothing of it counts any more: another one has its words, or they were said to be lost."""

    @property
    def listens(self) -> bool:
        return not self.over and self.chart.state in ("connecting", "ready", "streaming")

    @property
    def talks(self) -> bool:
        return self.chart.state in ("ready", "streaming", "finishing")


@dataclass(frozen=True)
class Committed:
    """A turn as it was stored last, and what its recognitions had been given by then."""

    words: tuple[int, ...]
    given: frozenset[int]


def words_of(text: str) -> tuple[int, ...]:
    """The numbers of the words in a text."""
    return tuple(int(word.removeprefix("w")) for word in text.split())


class World:
    """A user, a microphone, recognisers and a model around one conversation."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.authority = AUTHORITIES[tape.pick(0, 1, 2, 3)]
        turn = TurnPolicy(
            authority=self.authority,
            continuation_window_ms=tape.pick(1_500, 0, 5_000),
            max_restarts=tape.pick(3, 0, 1),
            max_turn_words=tape.pick(400, 3),
        )
        self.conversation = Conversation("world", policies=Policies(turn=turn, interruption=EVERYBODY))
        self.now_ms = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0
        self._timers: dict[str, object] = {}
        self._streams: dict[int, int] = {}
        self.hearings: dict[str, Hearing] = {}
        self.captured: list[tuple[int, int]] = []
        """When (its end) and which word."""
        self.heard_at_all: set[int] = set()
        self.utterance_of: dict[int, int] = {}
        self.commits: dict[str, Committed] = {}
        self.first_commit_of: dict[int, str] = {}
        self.told_lost: dict[str, list[int]] = {}
        """Turns of which something was said to be lost, and when."""
        self.told_hearings: set[str] = set()
        self.told_gap: set[str] = set()
        """Turns of which it was said that audio was lost."""
        self.carried: set[int] = set()
        """Words that came too late for their turn, and begin the next one."""
        self.spans: list[tuple[int, int]] = []
        """From where to where somebody was heard without a pause, or held the button."""
        self._voices: list[tuple[int, int]] = []
        self._speaking = False
        self._cut_ms: int | None = None
        self._goes_on = False
        self._talk_is_down = False
        self.tell(OpenRequested(at=0))
        self.tell(ConnectionReady(at=0, capabilities=Capabilities()))

    # -- time ------------------------------------------------------------------------------------------------------

    def plan(self, after_ms: int, happening: Callable[[], None]) -> None:
        self._planned += 1
        heappush(self._queue, (self.now_ms + after_ms, self._planned, happening))

    def run(self) -> None:
        """Until nothing is left to happen."""
        while self._queue:
            self.now_ms, _, happening = heappop(self._queue)
            happening()
            self._follow_cut()

    @property
    def at(self) -> int:
        return self.now_ms * 1_000_000

    # -- the chart -------------------------------------------------------------------------------------------------

    def tell(self, fact: Fact) -> None:
        for action in self.conversation.handle(fact):
            self._obey(action)
        for segment in self.conversation.context.carried:
            self.carried.update(words_of(segment.text))

    def _obey(self, action: Action) -> None:
        match action:
            case StartTimer(timer_id=timer_id, delay_ms=delay_ms):
                marker = self._timers[timer_id] = object()
                self.plan(delay_ms, lambda: self._fire(timer_id, marker))
            case CancelTimer(timer_id=timer_id):
                self._timers.pop(timer_id, None)
            case StartRecognition(sample=sample):
                self._start(action, self.now_ms if sample is None else sample)
            case TranscribeRecording():
                self._transcribe(action)
            case FinishRecognition(recognition_id=recognition_id):
                self._note_cut()
                self._finish(self.hearings[recognition_id])
            case CancelRecognition(recognition_id=recognition_id):
                self._advise(self.hearings[recognition_id], RecognitionCancelled(at=self.at))
                self.hearings[recognition_id].over = True
            case StoreUserTurn():
                self._store(action)
            case Publish(payload=TurnDiscarded() | StreamError(), turn_id=turn_id) if turn_id is not None:
                self.told_lost.setdefault(turn_id, []).append(self.now_ms)
                turn = self.conversation.context.turn
                if turn is not None and turn.turn_id == turn_id:
                    # Those of the turn before it that were open still served it too.
                    self.told_hearings.update(turn.recognitions)
                for hearing in self.hearings.values():
                    hearing.given_up = hearing.given_up or (hearing.turn_id == turn_id and hearing.over)
            case Publish(payload=StreamDiscontinuity(), turn_id=turn_id) if turn_id is not None:
                self.told_gap.add(turn_id)
            case StartGeneration(attempt_id=attempt_id):
                self._answer(action, attempt_id)
            case CancelGeneration(attempt_id=attempt_id):
                self.plan(20, lambda: self.tell(CancelAcknowledged(at=self.at, attempt_id=attempt_id)))
            case OpenOutput(stream_id=stream_id, output_epoch=epoch):
                self._streams[stream_id] = epoch
                self.plan(50, lambda: self._sound(PrebufferFilled, stream_id, 1))
            case FinishOutput(stream_id=stream_id):
                self.plan(400, lambda: self._sound(PlaybackDrained, stream_id, 1_600))
            case StopPlayback(before_epoch=before_epoch):
                for stream_id, epoch in tuple(self._streams.items()):
                    if epoch < before_epoch:
                        self.plan(10, lambda stream_id=stream_id: self._sound(PlaybackStopped, stream_id, 1))
            case _:
                pass

    def _fire(self, timer_id: str, marker: object) -> None:
        if self._timers.get(timer_id) is marker:
            del self._timers[timer_id]
            self.tell(TimerFired(at=self.at, timer_id=timer_id))

    def _store(self, action: StoreUserTurn) -> None:
        assert action.authority is self.authority, "somebody else committed"
        words = words_of(action.text)
        mine = [h for h in self.hearings.values() if h.turn_id == action.turn_id and not h.given_up]
        self.commits[action.turn_id] = Committed(words, frozenset(word for h in mine for word in h.heard))

    # -- the model: it says nothing, or something that is heard ------------------------------------------------------

    def _answer(self, action: StartGeneration, attempt_id: str) -> None:
        delay_ms, audible = self.tape.pick(2_000, 100, 600), self.tape.seldom(3)
        epoch = action.stamp.output_epoch

        def complete() -> None:
            self.tell(GenerationCompleted(at=self.at, attempt_id=attempt_id))
            self.tell(AudioEnded(at=self.at, output_epoch=epoch, end_sample=1_600 if audible else 0))

        if audible:
            started = AudioStarted(at=self.at, output_epoch=epoch, sample_rate_hz=16_000)
            self.plan(delay_ms, lambda: self.tell(replace(started, at=self.at)))
        self.plan(delay_ms + 200, complete)

    def _sound(self, kind: type[StreamFact], stream_id: int, played: int) -> None:
        if kind is not PrebufferFilled:
            self._streams.pop(stream_id, None)
        epoch = self._streams.get(stream_id, self.conversation.context.output_epoch)
        self.tell(kind(at=self.at, output_epoch=epoch, stream_id=stream_id, played_samples=played))

    # -- recognisers -----------------------------------------------------------------------------------------------

    def _start(self, action: StartRecognition | TranscribeRecording, since_ms: int) -> Hearing:
        tape = self.tape
        hearing = Hearing(
            action.recognition_id,
            action.turn_id,
            Recognition(action.recognition_id, action.stamp),
            since_ms,
            words_a_segment=tape.pick(8, 1, 2, 3),
            lag_ms=tape.pick(50, 300, 700),
            is_anonymous=tape.seldom(6),
            fails_at_word=tape.pick(99, 99, 99, 99, 99, 99, 1, 2),
            hangs=tape.seldom(12),
        )
        self.hearings[action.recognition_id] = hearing
        oldest_ms = self.now_ms - PRE_READY_MS
        for end_ms, word in self.captured:
            if end_ms > max(since_ms, oldest_ms):
                self._feed(hearing, word)
        if since_ms < oldest_ms:
            self.plan(0, lambda: self.tell(InputDiscontinuity(at=self.at, lost_ms=oldest_ms - since_ms)))
        opens_after_ms = tape.pick(0, 200, 1_500, 2_600)
        self.plan(opens_after_ms, lambda: self._open(hearing))
        return hearing

    def _open(self, hearing: Hearing) -> None:
        if hearing.fails_at_word == 1:
            self._advise(hearing, RecognizerErrored(at=self.at, error=LOST))
        else:
            self._advise(hearing, RecognizerReady(at=self.at))

    def _feed(self, hearing: Hearing, word: int, *, live: bool = False) -> None:
        hearing.heard.append(word)
        self.heard_at_all.add(word)
        if live and not hearing.released:
            hearing.waiting_since_ms = self.now_ms if hearing.waiting_since_ms is None else hearing.waiting_since_ms
            waiting_ms = self.now_ms - hearing.waiting_since_ms
            if waiting_ms > PRE_READY_MS:
                self._advise(hearing, PreReadyOverflowed(at=self.at, held_ms=waiting_ms))
        if len(hearing.heard) == hearing.fails_at_word:
            self.plan(10, lambda: self._advise(hearing, RecognizerErrored(at=self.at, error=LOST)))
        if hearing.released:
            self.plan(hearing.lag_ms, lambda: self._hypothesize(hearing))

    def _transcribe(self, action: TranscribeRecording) -> None:
        failed = self.hearings[action.failed_recognition_id]
        failed.given_up = True
        hearing = self._start(action, self.now_ms)
        hearing.since_ms = failed.since_ms
        for word in failed.heard:
            self._feed(hearing, word)
        if failed.input_over:
            self._finish(hearing)
            return
        for end_ms, word in self.captured:
            if end_ms > failed.since_ms and word not in hearing.heard:
                self._feed(hearing, word)

    def _finish(self, hearing: Hearing) -> None:
        if not hearing.input_over:
            self.plan(FINISH_DEADLINE_MS, lambda: self._advise(hearing, RecognizerErrored(at=self.at, error=LOST)))
        hearing.over = hearing.input_over = True
        self._advise(hearing, InputFinished(at=self.at))

    def _advise(self, hearing: Hearing, fact: Fact) -> None:
        """Tell the recognition's own chart, and do what it says, as the engine does."""
        for action in hearing.chart.handle(fact):
            match action:
                case ReleaseAudio():
                    hearing.released = True
                    for _ in hearing.heard:
                        self.plan(hearing.lag_ms, lambda: self._hypothesize(hearing))
                case FinishStream():
                    hearing.finishing = True
                    self.plan(hearing.lag_ms + 10, lambda: self._finalize(hearing))
                case ReportClosed():
                    self.tell(RecognitionClosed(at=self.at, recognition_id=hearing.recognition_id))
                case ReportFailed(error=error):
                    self._fail(hearing, error)
                case _:
                    hearing.over = True

    def _fail(self, hearing: Hearing, error: ScopedError) -> None:
        recorded_ms = self.now_ms - hearing.since_ms
        self.tell(
            RecognitionFailed(
                at=self.at,
                recognition_id=hearing.recognition_id,
                error=error,
                recorded_ms=max(1, recorded_ms) if recorded_ms <= RECORDING_MS else 0,
            )
        )

    def _hypothesize(self, hearing: Hearing) -> None:
        if not hearing.talks or hearing.told >= len(hearing.heard):
            return
        if hearing.chart.state == "ready":
            self._advise(hearing, AudioWritten(at=self.at))
        word = hearing.heard[hearing.told]
        hearing.told += 1
        segments = hearing.segments
        if not segments or segments[-1].is_final or len(segments[-1].words) == hearing.words_a_segment:
            segments.append(Segment(len(segments)))
        segment = segments[-1]
        segment.words.append(word)
        self._tell_hypothesis(hearing, segment, wrong=self.tape.seldom(5))
        if len(segment.words) == hearing.words_a_segment and not hearing.finishing:
            # Without identities only the order tells which final belongs to what.
            after_ms = 100 if hearing.is_anonymous else self.tape.pick(100, 0, 900)
            self.plan(after_ms, lambda: self._freeze_once(hearing, segment))

    def _tell_hypothesis(self, hearing: Hearing, segment: Segment, *, wrong: bool = False) -> None:
        segment.revision += 1
        text = ("", "w7000", segment.text[:-1])[self.tape.pick(0, 1, 2)] if wrong else segment.text
        self.tell(
            TranscriptUpdated(
                at=self.at,
                recognition_id=hearing.recognition_id,
                segment_id=str(segment.number),
                revision=segment.revision,
                text=text,
            )
        )

    def _freeze(self, hearing: Hearing, segment: Segment) -> None:
        if not hearing.talks:
            return
        segment.is_final = True
        segment.revision += 1
        final = SegmentFinalized(
            at=self.at,
            recognition_id=hearing.recognition_id,
            segment_id=None if hearing.is_anonymous else str(segment.number),
            revision=segment.revision,
            text=segment.text,
            start_sample=segment.number,
            end_sample=segment.number + 1,
        )
        self.tell(final)
        if self.tape.seldom(4):
            self.tell(final)
        if self.tape.seldom(4) and hearing.talks and not hearing.is_anonymous:
            self._tell_stale(hearing, segment)

    def _tell_stale(self, hearing: Hearing, segment: Segment) -> None:
        """An old hypothesis of a frozen segment, come too late."""
        self.tell(
            TranscriptUpdated(
                at=self.at,
                recognition_id=hearing.recognition_id,
                segment_id=str(segment.number),
                revision=max(1, segment.revision - 2),
                text="w8000",
            )
        )

    def _finalize(self, hearing: Hearing) -> None:
        """The last words on everything, in any order, and the end."""
        if hearing.hangs or not hearing.talks:
            return
        while hearing.talks and hearing.told < len(hearing.heard):
            self._hypothesize(hearing)
        pending = [segment for segment in hearing.segments if not segment.is_final]
        if not hearing.is_anonymous and self.tape.seldom(3):
            pending.reverse()
        delay_ms = 0
        for segment in pending:
            delay_ms += self.tape.pick(30, 400, 1_200)
            self.plan(delay_ms, lambda segment=segment: self._freeze_once(hearing, segment))
        delay_ms += self.tape.pick(30, 900)
        self.plan(delay_ms, lambda: self._end(hearing))

    def _freeze_once(self, hearing: Hearing, segment: Segment) -> None:
        if not segment.is_final:
            self._freeze(hearing, segment)

    def _end(self, hearing: Hearing) -> None:
        if all(segment.is_final for segment in hearing.segments):
            self._advise(hearing, RecognizerEnded(at=self.at))

    # -- the user and the microphone ---------------------------------------------------------------------------------

    def say(self, start_ms: int, first_word: int, words: int, pauses_ms: list[int], utterance: int) -> int:
        """Plan an utterance; where it ends. Without words it is a noise."""
        end_ms = start_ms
        for number in range(words):
            begins_ms = end_ms + pauses_ms[number]
            end_ms = begins_ms + WORD_MS
            self._voices.append((begins_ms, end_ms))
            word = first_word + number
            self.utterance_of[word] = utterance
            self.plan(end_ms, lambda word=word: self._capture(word))
        if not words:
            end_ms += WORD_MS
            self._voices.append((start_ms, end_ms))
        if self.authority is TurnAuthority.MANUAL:
            self.spans.append((start_ms - 20, end_ms + 20))
            self.plan(start_ms - 20, self._press)
            cleared = self.tape.seldom(8)
            self.plan(end_ms + 20, self._clear if cleared else self._release)
        if self.authority is TurnAuthority.RECOGNIZER:
            self.plan(end_ms + self.tape.pick(300, 100), self._endpoint)
        if self.authority is TurnAuthority.SEMANTIC:
            self.plan(end_ms + self.tape.pick(300, 100, 900), self._judge)
        others = [authority for authority in TurnAuthority if authority is not self.authority]
        if self.tape.seldom(2):
            other = others[self.tape.pick(0, 1, 2, 3, 4)]
            self.plan(start_ms + self.tape.pick(250, 700, 1_500), lambda: self._tell_end(other))
        if self.tape.seldom(10):
            lost_ms = self.tape.pick(100, 500)
            self.plan(start_ms + 300, lambda: self.tell(InputDiscontinuity(at=self.at, lost_ms=lost_ms)))
        return end_ms

    def detect(self) -> None:
        """Plan what voice activity makes of everything that was planned to be said."""
        blocks: list[list[int]] = []
        for begins_ms, ends_ms in self._voices:
            if blocks and begins_ms - blocks[-1][1] < SILENCE_MS:
                blocks[-1][1] = ends_ms
            else:
                blocks.append([begins_ms, ends_ms])
        for begins_ms, ends_ms in blocks:
            if self.authority is not TurnAuthority.MANUAL:
                self.spans.append((begins_ms, ends_ms + SILENCE_MS))
            self.plan(begins_ms + 90, lambda begins_ms=begins_ms: self._onset(begins_ms))
            self.plan(begins_ms + 190, lambda: self.tell(SpeechProgressed(at=self.at, speech_ms=190)))
            self.plan(ends_ms + SILENCE_MS, self._offset)
            for after_ms in (1_200, 3_500):
                self.plan(ends_ms + after_ms, self._endpoint)
                self.plan(ends_ms + after_ms, self._judge)

    def _capture(self, word: int) -> None:
        self.captured.append((self.now_ms, word))
        for hearing in tuple(self.hearings.values()):
            if hearing.listens and self.now_ms > hearing.since_ms:
                self._feed(hearing, word, live=True)

    def _onset(self, begins_ms: int) -> None:
        self._speaking = True
        since_ms = max(0, begins_ms - PREFIX_MS)
        if self.authority is not TurnAuthority.MANUAL:
            since_ms = self._cut_ms if self._goes_on and self._cut_ms is not None else since_ms
            self._cut_ms, self._goes_on = None, False
            if self._limit_is_settling:
                self._cut_ms, self._goes_on = since_ms, True
                return
        self.tell(SpeechStarted(at=self.at, sample=since_ms))

    def _offset(self) -> None:
        self._speaking = False
        self._tell_end(TurnAuthority.VAD)

    @property
    def _user_goes_on(self) -> bool:
        return self._talk_is_down if self.authority is TurnAuthority.MANUAL else self._speaking

    def _note_cut(self) -> None:
        turn = self.conversation.context.turn
        by_the_user = self.authority is TurnAuthority.MANUAL and not (turn is not None and turn.exceeded)
        if self._user_goes_on and not by_the_user and self._cut_ms is None:
            self._cut_ms = self.now_ms

    def _follow_cut(self) -> None:
        """As `Listening` does: what is said behind the end of a turn has an onset at that very place."""
        if self._cut_ms is None:
            return
        manual = self.authority is TurnAuthority.MANUAL
        self._goes_on |= manual or bool(self.captured and self.captured[-1][0] > self._cut_ms)
        if not (self._goes_on or self._user_goes_on):
            self._cut_ms = None
        elif self._goes_on and not self._limit_is_settling:
            cut_ms, self._cut_ms, self._goes_on = self._cut_ms, None, False
            authority = TurnAuthority.MANUAL if manual else TurnAuthority.VAD
            self.tell(SpeechStarted(at=self.at, authority=authority, sample=cut_ms))
            if not self._user_goes_on:
                self._tell_end(authority)
                self.plan(600, self._endpoint)
                self.plan(600, self._judge)

    @property
    def _limit_is_settling(self) -> bool:
        turn = self.conversation.context.turn
        return self.conversation.leaves[1] in ("speech", "hypothesis") and turn is not None and turn.exceeded

    def _tell_end(self, authority: TurnAuthority) -> None:
        self.tell(TurnEnded(at=self.at, authority=authority))

    def _press(self) -> None:
        self._talk_is_down = True
        self.tell(SpeechStarted(at=self.at, authority=TurnAuthority.MANUAL, sample=self.now_ms))

    def _release(self) -> None:
        self._talk_is_down = False
        self._tell_end(TurnAuthority.MANUAL)

    def _clear(self) -> None:
        """The user takes it back: what goes lost is meant to."""
        self._talk_is_down = False
        self._cut_ms, self._goes_on = None, False
        if self.conversation.context.turn is not None:
            self.told_lost.setdefault(self.conversation.context.turn.turn_id, []).append(self.now_ms - 40)
        self.tell(TurnCancelled(at=self.at))

    def _endpoint(self) -> None:
        """The recogniser thinks that the utterance is over; sometimes it is right."""
        if self.authority is TurnAuthority.RECOGNIZER and any(h.talks and not h.hangs for h in self.hearings.values()):
            self._tell_end(TurnAuthority.RECOGNIZER)

    def _judge(self) -> None:
        """Somebody judges the meaning, in silence only."""
        silent = not any(begins_ms < self.now_ms <= ends_ms + 60 for begins_ms, ends_ms in self._voices)
        if self.authority is TurnAuthority.SEMANTIC and silent:
            self._tell_end(TurnAuthority.SEMANTIC)


def played(data: bytes) -> World:
    """The world of a tape, to its end."""
    tape = Tape(data)
    world = World(tape)
    at_ms, word = 1_000, 1
    for utterance in range(tape.pick(1, 2, 3)):
        words = tape.pick(2, 1, 3, 5, 0)
        pauses_ms = [0] + [tape.pick(20, 20, 250, 800) for _ in range(words)]
        end_ms = world.say(at_ms, word, words, pauses_ms, utterance)
        word += words
        at_ms = end_ms + tape.pick(8_000, 300, 700, 1_400, 3_000)
    world.detect()
    world.run()
    return world


def check(world: World) -> None:
    """What must hold when everything has come to rest."""
    said = [word for turn in world.commits.values() for word in turn.words]
    assert len(said) == len(set(said)), f"a word is in two turns, or twice in one: {world.commits}"
    assert set(said) <= set(world.utterance_of), f"something was committed that nobody said: {world.commits}"
    for turn in world.commits.values():
        assert list(turn.words) == sorted(turn.words), f"out of order: {turn}"
    for word in sorted({word for _, word in world.captured} - set(said)):
        assert is_told_lost(world, word), f"w{word} was lost and nobody was told: {world.commits}"


def is_told_lost(world: World, word: int) -> bool:
    """The turn to which it belonged was discarded or hurt; or one was in the same breath, whose rest nobody hears."""
    said_ms = next(end_ms for end_ms, known in world.captured if known == word)
    for hearing in world.hearings.values():
        was_to_hear = hearing.since_ms <= said_ms and word not in world.heard_at_all
        is_told = hearing.turn_id in world.told_lost or hearing.recognition_id in world.told_hearings
        if is_told and (word in hearing.heard or was_to_hear):
            return True
        if hearing.turn_id in world.told_gap and was_to_hear:
            return True
    told_ms = [at_ms for times in world.told_lost.values() for at_ms in times]
    if word in world.carried:
        # No turn followed, or the one that did was lost, and that was told.
        waiting = {w for segment in world.conversation.context.carried for w in words_of(segment.text)}
        return word in waiting or bool(told_ms)
    breath = next(span for span in world.spans if span[0] <= said_ms <= span[1])
    return word not in world.heard_at_all and any(breath[0] <= at_ms <= breath[1] for at_ms in told_ms)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.binary(max_size=96))
def test_each_utterance_is_one_committed_turn_and_whole_or_said_to_be_lost(data: bytes) -> None:
    check(played(data))


def test_an_undisturbed_utterance_is_one_turn_with_all_its_words() -> None:
    world = played(b"")
    assert [turn.words for turn in world.commits.values()] == [(1, 2)]
    assert not world.told_lost
