"""One session as messages: what comes in becomes reports, what is asked becomes messages. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from pydantic.alias_generators import to_camel

from .....audio.formats import AudioFormat, AudioFrame
from .....engines.realtime import RealtimeRequest, ToolOutput
from .....engines.realtime.reports import SessionEnded, SessionExpires, SessionResumable
from ...realtime_protocol import STAGE, Sending, Told
from ...refusals import NO_CODE, http_refusal, shown_code
from ...websocket import JsonObject
from .hearing import MAX_HELD_MS, PATIENCE_MS, Hearing
from .messages import content, history, outcome, tool_response, user_turn
from .turns import Turns
from .wire import ServerContent, ServerMessage, parsed

logger = logging.getLogger(__name__)

MAX_NOTED = 50
KNOWN = frozenset(name for key in ServerMessage.model_fields for name in (key, to_camel(key)))


class GeminiProtocol:
    """`take` every message; what the calls yield is sent and told in order."""

    def __init__(
        self,
        request: RealtimeRequest,
        input_format: AudioFormat,
        output_format: AudioFormat,
        clock: Callable[[], float],
    ) -> None:
        self._request = request
        self.turns = Turns(output_format, clock)
        self.hearing = Hearing(input_format, self.turns.interrupt)
        self.is_ready = False
        self.is_asked = False
        """The answer that `ask` was called for has begun."""
        self._texts: list[str] = []
        self._outputs: list[ToolOutput] = []
        self._noted: set[str] = set()

    def restored(self) -> Iterator[Told]:
        """What was said before, once the session is ready; `historyConfig` says that it is not answered."""
        if self._request.resumption is None and (turns := history(self._request.messages)):
            yield Sending(content(turns, complete=True))

    # -- what is said to the model ---------------------------------------------------------------------------------

    def write(self, frame: AudioFrame) -> Iterator[Told]:
        """Raises `PortError` for another format."""
        yield from self.hearing.write(frame, self._patience_ms)

    def commit(self, utterance_id: str) -> Iterator[Told]:
        yield from self.hearing.commit(utterance_id, self._patience_ms)

    def discard(self, utterance_id: str) -> Iterator[Told]:
        """Where that ends an activity, the model answers it, and nobody hears the answer."""
        was_active = self.hearing.is_active
        yield from self.hearing.discard(utterance_id)
        if was_active and not self.hearing.is_active:
            self.turns.begin(None)

    @property
    def _patience_ms(self) -> float:
        """How much speech is held back: the chart decides what interrupts an answer."""
        if self.turns.is_answering:
            return MAX_HELD_MS
        return PATIENCE_MS if self.turns.is_wanted else 0.0

    def _release(self) -> Iterator[Told]:
        if not self.turns.is_wanted:
            yield from self.hearing.release()

    def submit_text(self, text: str) -> None:
        """Sent when an answer is asked for: it interrupts, as the beginning of an activity does."""
        self._texts.append(text)

    def submit_outputs(self, outputs: tuple[ToolOutput, ...]) -> None:
        """Sent when an answer is asked for: they make the model go on by themselves."""
        self._outputs.extend(outputs)

    # -- answers ---------------------------------------------------------------------------------------------------

    def ask(self, answer_id: str) -> Iterator[Told]:
        """Begin the answer, or what can be done to that end by now; `is_asked` tells. Until then it is called again
        whenever something has changed, and at `settles_at`.
        """
        turns, hearing = self.turns, self.hearing
        if turns.is_answering:
            return
        is_new = bool(self._texts) or hearing.is_waiting
        outputs = turns.wanted_outputs(self._outputs)
        self._outputs.clear()
        if outputs:
            given = [(output.call_id, output.name, outcome(output)) for output in outputs]
            yield Sending(tool_response(given))
            yield from turns.give(outputs, None if is_new else answer_id)
            if not is_new:
                self.is_asked = True
                return
        turns.drop()
        if hearing.is_waiting:
            yield from hearing.release()
        may_follow = turns.may_follow(spoken=hearing.is_waiting)
        if not (may_follow or turns.is_silent):
            return
        texts = [user_turn(text) for text in self._texts]
        self._texts.clear()
        if not may_follow:
            yield Sending(content(texts, complete=False))
            turns.interrupt()
            return
        if hearing.is_waiting:
            if texts:
                yield Sending(content(texts, complete=False))
            yield from hearing.end()
        else:
            turns.interrupt()
            yield Sending(content(texts, complete=True))
        turns.begin(answer_id)
        self.is_asked = True

    def cancel(self, answer_id: str) -> Iterator[Told]:
        """What was held back of the speech interrupts now."""
        yield from self.turns.cancel(answer_id)
        yield from self._release()

    # -- from the provider -----------------------------------------------------------------------------------------

    def take(self, raw: JsonObject) -> Iterator[Told]:
        """All of one message; the end of the turn is last. Raises `PortError` `provider_malformed`."""
        message = parsed(raw, STAGE)
        self._note(raw)
        turns, said = self.turns, message.server_content or ServerContent()
        if message.error is not None:
            yield self._failed(message)
            return
        if message.setup_complete is not None:
            self.is_ready = True
        yield from self._take_session(message)
        if message.tool_call_cancellation is not None:
            yield from turns.withdraw(message.tool_call_cancellation.ids or ())
        yield from self.hearing.heard(said.input_transcription, said.interim_input_transcription)
        yield from turns.content(said)
        if message.usage_metadata is not None:
            yield from turns.usage(message.usage_metadata)
        if message.tool_call is not None:
            yield from turns.calls(message.tool_call.function_calls or [])
        if said.interrupted:
            yield from turns.interrupted()
        if said.generation_complete:
            yield from turns.generated()
        if said.turn_complete or said.interaction_status is not None:
            yield from self._ending(turns.complete(said))
        yield from self._release()

    def _ending(self, told: Iterator[Told]) -> Iterator[Told]:
        """With the end of a turn nothing more is understood of what it answers."""
        before = self.turns.ended
        yield from told
        if self.turns.ended > before:
            yield from self.hearing.settle()

    def _take_session(self, message: ServerMessage) -> Iterator[Told]:
        update = message.session_resumption_update
        # A state that cannot be resumed has an empty handle, or an old one.
        if update is not None and update.resumable and update.new_handle:
            yield SessionResumable(update.new_handle)
        if message.go_away is not None:
            yield SessionExpires(message.go_away.within_ms)

    def _failed(self, message: ServerMessage) -> SessionEnded:
        fault = message.error
        assert fault is not None
        return SessionEnded(http_refusal(STAGE, fault.code or 500, None, shown_code(fault.status) or NO_CODE))

    def do_what_is_due(self) -> Iterator[Told]:
        """At `turns.next_due`."""
        yield from self._ending(self.turns.do_what_is_due())
        yield from self._release()

    def _note(self, raw: JsonObject) -> None:
        """A message in which nothing is known means nothing, and is noted once."""
        if any(key in KNOWN for key in raw):
            return
        shown = next((shown_code(key) for key in raw), None) or "without a name"
        if shown not in self._noted and len(self._noted) < MAX_NOTED:
            self._noted.add(shown)
            logger.info("Gemini: ignored a message of the unknown kind %s", shown)
