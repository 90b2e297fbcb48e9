"""Turns: one committer, one commit an utterance, nothing clipped, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator

from ..actions import StartRecognition, StoreUserTurn, TranscribeRecording
from ..context import Context, Segment, TimerKind
from ..facts import RecognitionClosed, SegmentFinalized, TextSubmitted, TimerFired, TranscriptUpdated, TurnEnded
from ..published import SpeechBegan, TurnCommitted, TurnDiscarded, TurnDropped
from ..values import TurnAuthority
from .observation import LISTENING, Observation, invariant


@invariant(5)
def one_turn_is_open(o: Observation) -> Iterator[str]:
    """At most one turn is open: it begins once, is committed or discarded once, and nothing opens beside it."""
    listening = bool(o.active & LISTENING)
    turn = o.after.turn
    open_turns = o.now.uncommitted_turns
    allowed = {turn.turn_id} if listening and turn is not None else set[str]()
    if open_turns - allowed:
        yield f"turns {sorted(open_turns - allowed)} are open beside {sorted(allowed) or 'none'}"
    if listening and turn is None:
        yield "InputTurn is listening and there is no turn"
    if listening and turn is not None and turn.turn_id not in open_turns and not o.now.revision_of(turn.turn_id):
        yield f"turn {turn.turn_id} is open, and was neither begun nor committed before"
    for _, publish in o.published(TurnDiscarded):
        if publish.turn_id not in o.was.uncommitted_turns:
            yield f"turn {publish.turn_id} was discarded, and was not open"


@invariant(5)
def one_authority_commits(o: Observation) -> Iterator[str]:
    """Only the configured authority ends a turn; submitted text is a turn of its own."""
    authority = o.policies.turn.authority
    for payload, publish in o.published(TurnCommitted):
        expected = TurnAuthority.CLIENT if isinstance(o.fact, TextSubmitted) else authority
        if payload.authority is not expected:
            yield f"turn {publish.turn_id} was committed by {payload.authority}; {expected} is its authority"
        if isinstance(o.fact, TurnEnded) and o.fact.authority is not authority:
            yield f"turn {publish.turn_id} was committed because {o.fact.authority} ended it; {authority} is configured"
    foreign = isinstance(o.fact, TurnEnded) and o.fact.authority is not authority
    if foreign and (o.step.before.leaves != o.step.after.leaves or o.step.actions):
        yield f"{o.fact} is from another authority than {authority}, and changed something"


@invariant(6)
def an_utterance_is_committed_once(o: Observation) -> Iterator[str]:
    """Each commit of a turn is its next revision, and no final segment stands in two turns."""
    for payload, publish in o.published(TurnCommitted):
        turn_id = publish.turn_id or ""
        committed = o.was.revision_of(turn_id)
        if payload.revision != committed + 1:
            yield f"turn {turn_id} was committed as revision {payload.revision} after {committed}"
        if committed == 0 and turn_id not in o.was.uncommitted_turns and not isinstance(o.fact, TextSubmitted):
            yield f"turn {turn_id} was committed, and was not open"
    former, turn = o.before.turn, o.after.turn
    if former is not None and turn is not None and former.turn_id != turn.turn_id and former.revision:
        twice = _identified(former.segments) & _identified(turn.segments)
        if twice:
            yield f"segments {sorted(twice)} stand in turn {former.turn_id} and in turn {turn.turn_id}"
    if turn is not None:
        twice = _identified(turn.segments) & _identified(o.after.carried)
        if twice:
            yield f"segments {sorted(twice)} stand in turn {turn.turn_id} and wait for the next one"


def _identified(segments: tuple[Segment, ...]) -> set[tuple[str, str]]:
    return {(s.recognition_id, s.segment_id) for s in segments if s.is_final and s.segment_id is not None}


@invariant(6)
def every_committed_turn_is_answered(o: Observation) -> Iterator[str]:
    """A committed turn is answered, waits for admission, or is reported as dropped with a reason."""
    waiting = set(o.after.pending.turn_ids) if o.after.pending is not None else set[str]()
    lost = o.now.owed_turns - waiting
    if lost:
        yield f"turns {sorted(lost)} are committed, unanswered, and do not wait (waiting: {sorted(waiting)})"
    if waiting - o.now.owed_turns:
        yield f"turns {sorted(waiting - o.now.owed_turns)} wait for an answer that they had, or were never committed"
    former = o.before.pending.turn_ids if o.before.pending is not None else ()
    stored = {action.turn_id for action in o.of(StoreUserTurn)}
    if "cancelling" in o.left and waiting - stored - set(former):
        yield f"turns {sorted(waiting - stored - set(former))} wait again although their reply was cancelled"
    for payload, publish in o.published(TurnDropped):
        if not payload.reason:
            yield f"turn {publish.turn_id} was dropped without a reason"


@invariant(8)
def only_frozen_words_reach_history(o: Observation) -> Iterator[str]:
    """A stored turn holds final segments or submitted text, whole; a hypothesis is never stored.

    A model that hears the audio itself is not kept waiting for words: they are stored as they become final.
    """
    hears_itself = o.after.capabilities.native_audio
    for stored in o.of(StoreUserTurn):
        if isinstance(o.fact, TextSubmitted):
            if stored.text != o.fact.text.strip():
                yield f"turn {stored.turn_id} was stored as {stored.text!r}; submitted was {o.fact.text!r}"
            continue
        known = (o.after.turn, *o.after.untranscribed)
        turn = next((turn for turn in known if turn is not None and turn.turn_id == stored.turn_id), None)
        if turn is None:
            yield f"turn {stored.turn_id} was stored, and the turn is {o.after.turn and o.after.turn.turn_id}"
        elif stored.text != turn.final_text or not (stored.text or hears_itself):
            yield f"turn {stored.turn_id} was stored as {stored.text!r}; its final segments say {turn.final_text!r}"
        elif turn.has_open_hypothesis and not hears_itself:
            yield f"turn {stored.turn_id} was stored while {turn.text!r} still holds a hypothesis"


@invariant(8)
def only_finals_freeze(o: Observation) -> Iterator[str]:
    """A segment becomes final by the recogniser's word alone, keeps its text from then on, and is not forgotten."""
    before, after = _finals(o.before), _finals(o.after)
    fact = o.fact
    fresh = [segment for segment in after if segment not in before]
    said = (fact.recognition_id, fact.segment_id, fact.text) if isinstance(fact, SegmentFinalized) else None
    for segment in fresh:
        if (segment[0], segment[1], segment[2]) != said:
            yield f"segment {segment[1]} of {segment[0]} became final as {segment[2]!r} by {type(fact).__name__}"
    if len(fresh) > 1:
        yield f"{len(fresh)} segments became final at once"
    if isinstance(fact, TranscriptUpdated) and len(after) < len(before):
        yield f"a hypothesis of {fact.segment_id} took the place of a final segment"


def _finals(context: Context) -> list[tuple[str, str | None, str]]:
    turn = context.turn
    segments = (*(turn.segments if turn is not None else ()), *context.carried)
    return [(s.recognition_id, s.segment_id, s.text) for s in segments if s.is_final]


@invariant(6)
def an_ended_turn_waits_for_its_words(o: Observation) -> Iterator[str]:
    """A turn is committed when everything it said is known: by its last recognition, or by a deadline."""
    if not o.published(TurnCommitted) or isinstance(o.fact, TextSubmitted) or o.after.capabilities.native_audio:
        return
    turn = o.before.turn
    if turn is None or not o.left & LISTENING or isinstance(o.fact, TimerFired):
        return
    left_open = set(turn.open_recognitions)
    if isinstance(o.fact, RecognitionClosed):
        left_open.discard(o.fact.recognition_id)
    if left_open and o.policies.turn.authority is not TurnAuthority.RECOGNIZER:
        yield f"turn {turn.turn_id} was committed while {sorted(left_open)} had not said everything"


@invariant()
def recognitions_end(o: Observation) -> Iterator[str]:
    """When no turn is open every recognition has been told to finish or to end, or has ended by itself."""
    if not o.active & LISTENING and o.now.recognitions:
        yield f"recognitions {sorted(o.now.recognitions)} go on, and no turn is open"


@invariant()
def the_microphone_respects_the_speaker(o: Observation) -> Iterator[str]:
    """Without validated echo cancellation nothing that is heard while the reply sounds opens a turn."""
    interruption, turn = o.policies.interruption, o.policies.turn
    output = o.before.output
    audible = output is not None and output.started and output.output_epoch == o.after.output_epoch
    if (
        audible
        and o.published(SpeechBegan)
        and not interruption.full_duplex
        and turn.authority is not TurnAuthority.MANUAL
    ):
        yield "the microphone listened to the speaker, and the policy is not full duplex"
    if o.left & {"closing", "closed"} and (o.of(StartRecognition) or o.of(TranscribeRecording)):
        yield "a recognition was started after closing began"


@invariant(11)
def an_open_turn_is_bounded(o: Observation) -> Iterator[str]:
    """Whoever holds the floor is timed: while speaking, while the transcript is awaited, and in all."""
    if not o.active & LISTENING or o.after.turn is None:
        return
    kinds = {timer.kind for timer in o.after.timers}
    if not kinds & {TimerKind.INPUT, TimerKind.FINALIZATION}:
        yield f"turn {o.after.turn.turn_id} is open without a deadline"
    if o.after.turn.ended_by is not None and TimerKind.FINALIZATION not in kinds:
        yield f"turn {o.after.turn.turn_id} ended, and nothing bounds the wait for its transcript"


TURNS = (
    one_turn_is_open,
    one_authority_commits,
    an_utterance_is_committed_once,
    every_committed_turn_is_answered,
    only_frozen_words_reach_history,
    only_finals_freeze,
    an_ended_turn_waits_for_its_words,
    recognitions_end,
    the_microphone_respects_the_speaker,
    an_open_turn_is_bounded,
)
