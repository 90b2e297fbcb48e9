"""The answers of a session: at most one at a time, from `response.create` to `response.done`. No I/O.

Sources: the openai types of `response.done`; the provider's issues for what happens around a cancel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ....engines.realtime.reports import AnswerAudio, AnswerFailed, AnswerProgressed, AnswerStopped, AnswerText
from ....statecharts.errors import ScopedError
from .answer import Answer, Call, outcome, outputs_of_unheard
from .dialect import ANSWER_KEY, ANSWERS, RealtimeDialect
from .received_audio import ReceivedAudio
from .told import Sending, Told
from .wire import CallDone, Item, OutputDelta, ResponseBody

REMEMBERED = 64
"""Responses that are over and may still be spoken of."""


class Answers:
    """Reports by the names that this side gives; what the provider calls them stays here."""

    def __init__(self, dialect: RealtimeDialect, received: ReceivedAudio) -> None:
        self._dialect = dialect
        self._received = received
        self._asked = 0
        self._cancels = 0
        self._are_named = False
        self._uncertain: dict[str, str] = {}
        """The event and the response of each cancel that may still turn out to have had nothing to cancel."""
        self._current: Answer | None = None
        self._others: set[str] = set()
        """Responses that nobody asked for, and that are not over."""
        self._over: deque[str] = deque(maxlen=REMEMBERED)

    @property
    def is_free(self) -> bool:
        """An answer can be asked for: the provider has ended every other one."""
        return self._current is None and not self._others

    @property
    def is_refused(self) -> bool:
        """An answer waits for the end of a response that is not this side's."""
        return self._current is not None and self._current.is_refused

    def is_active(self, response_id: str) -> bool:
        """It is not over yet."""
        return self._current is not None and self._current.response_id == response_id

    # -- from this side --------------------------------------------------------------------------------------------

    def ask(self, answer_id: str) -> Sending:
        """`is_free` holds."""
        self._asked += 1
        self._current = answer = Answer(answer_id, f"create_{self._asked}")
        return Sending(self._dialect.create_response(answer.event_id, answer_id))

    def cancel(self, answer_id: str) -> Iterator[Told]:
        """Before the provider has named the response a cancel would do nothing: it waits for the name."""
        answer = self._current
        if answer is None or answer.answer_id != answer_id or not answer.is_listened_to:
            return
        answer.is_cancelled = True
        if answer.is_refused:
            self._current = None
            yield AnswerStopped(answer_id)
        elif answer.response_id is not None:
            yield self._cancelling(answer.response_id)

    def fail(self, error: ScopedError) -> Iterator[Told]:
        """What the answer that is under way cannot be right without went wrong, or it was refused."""
        answer = self._current
        if answer is None or not answer.is_listened_to:
            return
        answer.is_told = True
        yield AnswerFailed(answer.answer_id, error)
        if answer.response_id is not None:
            yield self._cancelling(answer.response_id)

    def _cancelling(self, response_id: str) -> Sending:
        self._cancels += 1
        event_id = f"cancel_{self._cancels}"
        self._uncertain[event_id] = response_id
        if len(self._uncertain) > REMEMBERED:
            del self._uncertain[next(iter(self._uncertain))]
        return Sending(self._dialect.cancel_response(event_id, response_id))

    # -- its beginning ---------------------------------------------------------------------------------------------

    def created(self, body: ResponseBody) -> Iterator[Told]:
        """`response.created`."""
        if body.id in self._over or body.id in self._others or self.is_active(body.id):
            return
        answer = self._current
        named = None if body.metadata is None else body.metadata.get(ANSWER_KEY)
        self._are_named = self._are_named or named is not None
        # A server that never repeats the name is believed; one that does names each of ours.
        is_another = self._are_named and (answer is None or named != answer.answer_id)
        if answer is None or answer.response_id is not None or is_another:
            # The provider answers by itself, which it was asked not to.
            self._others.add(body.id)
            yield self._cancelling(body.id)
            return
        yield from self._begin(answer, body.id)

    def _begin(self, answer: Answer, response_id: str) -> Iterator[Told]:
        answer.response_id, answer.is_refused = response_id, False
        if answer.is_listened_to:
            yield AnswerProgressed(answer.answer_id)
        else:
            yield self._cancelling(response_id)

    def _of(self, response_id: str) -> tuple[Answer | None, Iterable[Told]]:
        """Whose event it is. Where `response.created` is missing or late, the first event takes its place."""
        answer = self._current
        if answer is None or response_id in self._over or response_id in self._others:
            return None, ()
        begun: Iterable[Told] = ()
        if answer.response_id is None and not answer.is_refused:
            begun = tuple(self._begin(answer, response_id))
        return (answer if answer.response_id == response_id else None), begun

    def refused(self, event_id: str | None) -> bool:
        """`response.create` was refused because another response is active. False: that is no news."""
        answer = self._current
        if answer is None or answer.response_id is not None or event_id not in (None, answer.event_id):
            return False
        answer.is_refused = True
        return True

    def stop_refused(self) -> Iterator[Told]:
        """An answer that was refused and is not wanted any more needs no acknowledgement."""
        answer = self._current
        if answer is not None and answer.is_refused and not answer.is_listened_to:
            self._current = None
            if not answer.is_told:
                yield AnswerStopped(answer.answer_id)

    def give_up_refused(self) -> Iterator[Told]:
        """The other response does not end."""
        if self.is_refused:
            message = "the provider goes on with a response that nobody asked for; the answer is asked for anew"
            yield from self.fail(ANSWERS.error("provider_busy", message, retryable=True))
            self._current = None
            self._others.clear()

    def is_being_created(self, event_id: str | None) -> bool:
        """An error about `event_id` (None: about nothing that is named) is about an answer that was asked for."""
        answer = self._current
        return answer is not None and answer.response_id is None and event_id == answer.event_id

    def failed_to_begin(self, error: ScopedError) -> Iterator[Told]:
        """`response.create` was refused for good."""
        answer, self._current = self._current, None
        if answer is None or answer.is_told:
            return
        yield AnswerStopped(answer.answer_id) if answer.is_cancelled else AnswerFailed(answer.answer_id, error)

    def nothing_to_cancel(self, event_id: str | None) -> Iterator[Told]:
        """A cancel found no active response. What the provider told of that one before was its end, if it told one.

        That may come long after `response.done`; without a name it is the oldest cancel whose response is over.
        """
        if event_id is None:
            over = (known for known, response_id in self._uncertain.items() if response_id in self._over)
            event_id = next(over, None) or next(iter(self._uncertain), None)
        response_id = None if event_id is None else self._uncertain.pop(event_id, None)
        if response_id is None or response_id in self._over:
            return
        answer = self._current
        self._end(response_id)
        if answer is not None and answer.response_id == response_id:
            if not answer.is_told:
                yield AnswerStopped(answer.answer_id)
        else:
            yield from self._ask_again()

    # -- what it says ----------------------------------------------------------------------------------------------

    def audio(self, delta: OutputDelta) -> Iterator[Told]:
        """`response.output_audio.delta`. Raises `PortError`."""
        answer, begun = self._of(delta.response_id)
        yield from begun
        frames = self._received.add(delta.response_id, delta.item_id, delta.content_index, delta.delta)
        if answer is None or not answer.is_listened_to:
            return
        for frame in frames:
            answer.spoke = True
            yield AnswerAudio(answer.answer_id, delta.item_id, frame)

    def text(self, response_id: str, item_id: str, delta: str | None, whole: str | None = None) -> Iterator[Told]:
        """More of its text, or the whole of an item: what of it was not told yet."""
        answer, begun = self._of(response_id)
        yield from begun
        if answer is None or not answer.is_listened_to:
            return
        before = answer.texts.get(item_id, "")
        if whole is not None:
            # A text that was told cannot be taken back: where the whole is another one, what was told stays.
            delta = whole[len(before) :] if whole.startswith(before) else ""
        if delta:
            answer.texts[item_id] = before + delta
            answer.spoke = True
            yield AnswerText(answer.answer_id, delta)

    def progress(self, response_id: str) -> Iterator[Told]:
        """It is at work."""
        answer, begun = self._of(response_id)
        yield from begun
        if answer is not None and answer.is_listened_to:
            yield AnswerProgressed(answer.answer_id)

    def item(self, response_id: str, item: Item) -> Iterator[Told]:
        """`response.output_item.added` or `.done`: what a call is called may stand here only."""
        answer, begun = self._of(response_id)
        yield from begun
        if answer is not None and item.type == "function_call" and item.id is not None:
            call = answer.calls.setdefault(item.id, Call())
            call.call_id, call.name = item.call_id or call.call_id, item.name or call.name
            if answer.is_listened_to:
                yield AnswerProgressed(answer.answer_id)

    def call(self, done: CallDone) -> Iterator[Told]:
        """`response.function_call_arguments.done`."""
        answer, begun = self._of(done.response_id)
        yield from begun
        if answer is None:
            return
        call = answer.calls.setdefault(done.item_id, Call())
        call.call_id, call.name = done.call_id or call.call_id, done.name or call.name
        call.arguments = done.arguments
        if answer.is_listened_to:
            yield AnswerProgressed(answer.answer_id)

    # -- its end ---------------------------------------------------------------------------------------------------

    def done(self, body: ResponseBody) -> Iterator[Told]:
        """`response.done`."""
        answer, begun = self._of(body.id)
        self._end(body.id)
        if body.status == "cancelled":
            for event_id in [known for known, response_id in self._uncertain.items() if response_id == body.id]:
                del self._uncertain[event_id]
        if answer is None:
            yield from self._ask_again()
            return
        if not answer.is_listened_to:
            if not answer.is_told:
                yield AnswerStopped(answer.answer_id)
            for number, item in enumerate(outputs_of_unheard(answer, body)):
                yield Sending(self._dialect.create_item(f"unheard_{answer.event_id}_{number}", item))
            return
        yield from (told for told in begun if not isinstance(told, Sending))
        yield from outcome(self._dialect.vendor, answer, body)

    def _end(self, response_id: str) -> None:
        self._others.discard(response_id)
        self._over.append(response_id)
        if self.is_active(response_id):
            self._current = None

    def _ask_again(self) -> Iterator[Told]:
        """The response that was in the way is over."""
        answer = self._current
        if answer is not None and answer.is_refused and not self._others:
            self._asked += 1
            answer.is_refused, answer.event_id = False, f"create_{self._asked}"
            yield Sending(self._dialect.create_response(answer.event_id, answer.answer_id))
