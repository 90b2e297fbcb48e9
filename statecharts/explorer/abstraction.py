"""When two configurations are the same: everything is told apart only as far as the chart can tell it.

Identities count by what they are equal to, epochs by whether they are the present one, times by whether the window that
looks at them is still open, sample positions by the units of speech they confirm, tries by how many are left. What
nothing can ask about any more - the words of a discarded turn, the attempts of a reply that is over - is left out, and
so are the counters that only grow.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..chart import Snapshot
from ..context import Announcement, Context, Output, Response, Segment, Turn
from ..policies import InterruptionPolicy, Policies
from ..rules import confirmed_units

_LISTENING = frozenset({"speech", "hypothesis"})
_CONNECTING = frozenset({"opening", "reconnecting"})
_ENDING = frozenset({"closing", "closed"})


class Abstraction:
    """The abstraction under some policies: which windows there are, and how many tries."""

    def __init__(self, policies: Policies) -> None:
        interruption = policies.interruption
        self._max_restarts = policies.turn.max_restarts
        self._continuation_ns = policies.turn.continuation_window_ms * 1_000_000
        self._words_ns = interruption.word_window_ms * 1_000_000
        self._backoff_ns = interruption.backoff_ms * 1_000_000 if isinstance(interruption, InterruptionPolicy) else 0
        self._stable_ns = policies.connection.stable_ms * 1_000_000
        self._min_speech_ms = interruption.min_duration_ms if isinstance(interruption, InterruptionPolicy) else 0

    def key(self, snapshot: Snapshot[Context]) -> Hashable:
        """Equal for two snapshots when they are the same configuration."""
        context, leaves = snapshot.context, snapshot.leaves
        ends = leaves[0] in _ENDING
        return (
            leaves,
            context.connect_attempts if leaves[0] in _CONNECTING else 0,
            None if ends else self._losses(context),
            None if ends else self._turn(context, leaves[1]),
            None if ends else tuple(segment.text for segment in context.carried),
            not ends and context.onset_refused,
            None if ends else self._pending(context),
            None if ends else tuple(self._announcement(waiting) for waiting in context.announcements),
            None if ends else tuple(any(s.is_final for s in turn.segments) for turn in context.untranscribed),
            self._response(context, leaves[2]),
            self._output(context.output, context) if context.output is not None else None,
            tuple(self._stopping(output, context) for output in context.stopping),
            len(context.background),
            not ends and self._backs_off(context),
            self._timers(context),
        )

    def until_windows_close(self, context: Context, leaves: tuple[str, ...]) -> int:
        """How long, in nanoseconds, until every window that is open now has closed; 0 when none is."""
        open_windows = [0]
        turn = context.turn
        if turn is not None and turn.committed_at is not None and leaves[1] == "committed":
            open_windows.append(turn.committed_at + self._continuation_ns + 1 - context.now)
        if turn is not None and turn.segments and leaves[1] in _LISTENING:
            open_windows.append(max(segment.heard_at for segment in turn.segments) + self._words_ns + 1 - context.now)
        if leaves[0] == "ready" and context.ready_at is not None:
            open_windows.append(context.ready_at + self._stable_ns + 1 - context.now)
        if context.last_interruption_at is not None and self._backoff_ns:
            open_windows.append(context.last_interruption_at + self._backoff_ns + 1 - context.now)
        return max(open_windows)

    def _turn(self, context: Context, leaf: str) -> Hashable:
        turn = context.turn
        if turn is None:
            return None
        open_recognitions = tuple(known in turn.open_recognitions for known in turn.recognitions[-2:])
        if leaf in _LISTENING:
            return (
                tuple(self._segment(turn, segment, context) for segment in turn.segments),
                open_recognitions,
                len(turn.recognitions),
                turn.ended_by is not None,
                turn.speech_ms >= self._min_speech_ms > 0,
                turn.kept_segments,
                turn.kept_recognitions,
                turn.exceeded,
                turn.used_fallback,
                turn.alarmed,
            )
        if leaf != "committed":
            return any(open_recognitions)
        committed = turn.committed_at
        return (
            turn.authority.value,
            tuple((segment.segment_id, segment.text) for segment in turn.segments),
            open_recognitions,
            len(turn.recognitions),
            turn.exceeded,
            committed is not None and context.now - committed <= self._continuation_ns,
        )

    def _segment(self, turn: Turn, segment: Segment, context: Context) -> Hashable:
        output = context.output
        counts = output is not None and output.started
        is_recent = counts and context.now - segment.heard_at <= self._words_ns
        is_of_the_last = segment.recognition_id == turn.recognitions[-1]
        return is_of_the_last, segment.segment_id, segment.text, segment.is_final, is_recent

    def _pending(self, context: Context) -> Hashable:
        waiting, turn = context.pending, context.turn
        if waiting is None:
            return None
        holds_the_turn = turn is not None and turn.turn_id in waiting.turn_ids
        return holds_the_turn, min(len(waiting.turn_ids), 2), min(waiting.restarts, self._max_restarts)

    def _losses(self, context: Context) -> Hashable:
        """What decides whether a lost session is made anew at once."""
        is_young = context.ready_at is not None and context.now - context.ready_at < self._stable_ns
        return is_young, min(context.early_losses, 1)

    def _announcement(self, announcement: Announcement | None) -> Hashable:
        if announcement is None:
            return None
        restarts = min(announcement.restarts, self._max_restarts)
        return announcement.interrupts, announcement.interruptible, restarts

    def _response(self, context: Context, leaf: str) -> Hashable:
        reply: Response | None = context.response
        if reply is None:
            return None
        open_calls = tuple(call.background for call in reply.open_calls)
        if context.reply_is_over or leaf == "cancelling":
            return reply.outcome, reply.delivery is None, open_calls
        turn = context.turn
        spoken = (
            turn is not None and turn.turn_id in reply.turn_ids,
            reply.output_epoch == context.output_epoch,
            min(reply.restarts, self._max_restarts),
            len(reply.units),
            reply.heard,
            reply.delivery is None,
            open_calls,
            len(reply.tools),
            self._announcement(reply.announcement),
        )
        if reply.outcome is not None:
            return reply.outcome, spoken
        return spoken, reply.attempts, reply.steps, reply.step_open, reply.output_started

    @staticmethod
    def _stopping(output: Output, context: Context) -> Hashable:
        reply = context.response
        is_of_the_reply = reply is not None and reply.response_id == output.response_id
        confirms = confirmed_units(output.units, output.played_samples) > 0
        return is_of_the_reply, output.failed, confirms, output.announcement is not None

    @staticmethod
    def _output(output: Output, context: Context) -> Hashable:
        reply = context.response
        is_of_the_reply = reply is not None and reply.response_id == output.response_id
        units = output.units or (reply.units if reply is not None and is_of_the_reply else ())
        return (
            is_of_the_reply,
            output.output_epoch == context.output_epoch,
            None if output.played_samples is None else output.played_samples > 0,
            confirmed_units(units, output.played_samples),
            None if output.end_sample is None else output.end_sample > 0,
            output.held,
            output.started,
            output.rendering,
            output.failed,
        )

    def _backs_off(self, context: Context) -> bool:
        last = context.last_interruption_at
        return bool(self._backoff_ns) and last is not None and context.now - last < self._backoff_ns

    @staticmethod
    def _timers(context: Context) -> Hashable:
        streams = {str(output.stream_id): place for place, output in enumerate(context.stopping)}
        background = {call.call_id for call in context.background}
        return tuple(
            sorted((timer.kind.value, streams.get(timer.key, -1), timer.key in background) for timer in context.timers)
        )
