"""One session as messages: what comes in becomes reports, what is asked becomes messages. No I/O, no time."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pydantic import JsonValue

from ....engines.realtime import RealtimeRequest, ToolOutput
from ....engines.realtime.reports import SessionEnded
from ....statecharts.errors import ScopedError
from ..refusals import shown_code
from ..websocket import JsonObject
from .answers import Answers
from .cuts import Cuts
from .dialect import ANSWERS, HEARING, STAGE, RealtimeDialect
from .faults import ANOTHER_IS_ACTIVE, NOTHING_TO_CANCEL, NOTHING_TO_COMMIT, code_of, meaning
from .items import message_item, output_item
from .received_audio import ReceivedAudio
from .repeated import RepeatedMessages
from .told import Sending, Told
from .utterances import Utterances
from .wire import (
    CallDone,
    Fault,
    FaultMessage,
    ItemTruncated,
    M,
    OfItem,
    OfResponse,
    OutputDelta,
    OutputItem,
    ResponseMessage,
    SessionMessage,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
    TranscriptFailed,
    TranscriptGuess,
    parsed,
)

logger = logging.getLogger(__name__)

CUT_PARAMETERS = frozenset({"audio_end_ms", "content_index", "item_id"})
MAX_NOTED = 50


class RealtimeProtocol:
    """`take` every message; what the calls yield is sent and told in order."""

    def __init__(self, dialect: RealtimeDialect, request: RealtimeRequest) -> None:
        self.dialect = dialect
        self.request = request
        self.is_configured = False
        """`session.update` was sent."""
        self.is_ready = False
        """The provider has taken it."""
        self.received = ReceivedAudio(dialect.output_format)
        self.answers = Answers(dialect, self.received)
        self.cuts = Cuts(dialect, self.received, self.answers)
        self.utterances = Utterances(dialect, provider_turns=request.provider_turns)
        self.refused_input: ScopedError | None = None
        """Why the model does not know what the next answer would be about."""
        self._inputs = 0
        self._repeated = RepeatedMessages()
        self._noted: set[str] = set()

    # -- from this side --------------------------------------------------------------------------------------------

    def submit_text(self, text: str) -> Sending:
        return self._item(message_item("user", text))

    def submit_output(self, output: ToolOutput) -> Sending:
        return self._item(output_item(output.call_id, output.output))

    def _item(self, item: dict[str, JsonValue]) -> Sending:
        self._inputs += 1
        return Sending(self.dialect.create_item(f"input_{self._inputs}", item))

    def restored(self) -> Iterator[Sending]:
        """What was said before, once the session is ready. It is not answered."""
        yield from map(Sending, self.dialect.restored(self.request))

    # -- from the provider -----------------------------------------------------------------------------------------

    def take(self, message: JsonObject) -> Iterator[Told]:
        """Raises `PortError` `provider_malformed`."""
        if self._repeated.take(message):
            return
        kind = message.get("type")
        common = self.dialect.kinds.get(kind) if isinstance(kind, str) else None
        if common is None:
            self._note(kind)
            return
        family = common.partition(".")[0]
        match family:
            case "session":
                yield from self._take_session(common, message)
            case "error":
                yield from self._take_fault(_read(FaultMessage, message).error)
            case "response":
                yield from self._take_response(common, message)
            case _:
                yield from self._take_input(common, message)

    def _note(self, kind: JsonValue) -> None:
        """A message of a kind that nobody knows means nothing, and is noted once."""
        shown = shown_code(kind) or "without a name"
        if shown not in self._noted and len(self._noted) < MAX_NOTED:
            self._noted.add(shown)
            logger.info("%s: ignored a message of the unknown kind %s", self.dialect.vendor, shown)

    def _take_session(self, kind: str, message: JsonObject) -> Iterator[Told]:
        match kind:
            case "session.created":
                # Once: a session that has begun may refuse another one.
                if not self.is_configured:
                    self.is_configured = True
                    yield Sending(self.dialect.session_update(self.request))
            case "session.updated":
                if not self.is_ready:
                    complaint = self.dialect.complaint(_read(SessionMessage, message).session, self.request)
                    if complaint is not None:
                        raise STAGE.failure("session_not_as_asked", complaint)
                    self.is_ready = True
            case _:
                text = f"{self.dialect.vendor} ended the session by itself; another one is opened"
                yield SessionEnded(STAGE.error("closed_by_provider", text, retryable=True))

    def _take_input(self, kind: str, message: JsonObject) -> Iterator[Told]:
        utterances = self.utterances
        match kind:
            case "input_audio_buffer.speech_started":
                yield from utterances.speech_started(_read(OfItem, message).item_id)
            case "input_audio_buffer.committed":
                yield from utterances.committed(_read(OfItem, message).item_id)
            case "conversation.item.input_audio_transcription.delta":
                delta = _read(TranscriptDelta, message)
                yield from utterances.append(delta.item_id, delta.delta or "")
            case "conversation.item.input_audio_transcription.text":
                guess = _read(TranscriptGuess, message)
                yield from utterances.replace(guess.item_id, guess.text + guess.stash)
            case "conversation.item.input_audio_transcription.completed":
                done = _read(TranscriptDone, message)
                yield from utterances.replace(done.item_id, done.transcript, is_final=True)
            case "conversation.item.input_audio_transcription.failed":
                failed = _read(TranscriptFailed, message)
                error = meaning(self.dialect.vendor, failed.error, HEARING).error
                yield from utterances.failed(failed.item_id, error)
            case "conversation.item.truncated":
                truncated = _read(ItemTruncated, message)
                yield from self.cuts.acknowledged(truncated.item_id, truncated.audio_end_ms)
            case "conversation.item.deleted":
                yield from self.cuts.acknowledged(_read(OfItem, message).item_id, 0)
            case _:
                """What follows from others tells the same."""

    def _take_response(self, kind: str, message: JsonObject) -> Iterator[Told]:
        answers = self.answers
        match kind:
            case "response.created":
                yield from answers.created(_read(ResponseMessage, message).response)
            case "response.output_audio.delta":
                yield from answers.audio(_read(OutputDelta, message))
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                delta = _read(OutputDelta, message)
                yield from answers.text(delta.response_id, delta.item_id, delta.delta)
            case "response.output_audio_transcript.done" | "response.output_text.done":
                done = _read(TextDone, message)
                yield from answers.text(done.response_id, done.item_id, None, done.transcript or done.text or "")
            case "response.output_item.added" | "response.output_item.done":
                output = _read(OutputItem, message)
                yield from answers.item(output.response_id, output.item)
            case "response.function_call_arguments.delta":
                yield from answers.progress(_read(OfResponse, message).response_id)
            case "response.function_call_arguments.done":
                yield from answers.call(_read(CallDone, message))
            case "response.done":
                yield from answers.done(_read(ResponseMessage, message).response)
                yield from self.cuts.release()
            case _:
                """What follows from others tells the same."""

    # -- errors ----------------------------------------------------------------------------------------------------

    def _take_fault(self, fault: Fault) -> Iterator[Told]:
        """By the message that is at fault where it is named, else by code and state."""
        event_id, param = fault.event_id, fault.param
        code = code_of(fault)
        vendor = self.dialect.vendor
        general = meaning(vendor, fault, STAGE)
        about = (event_id or "").partition("_")[0]
        if code == NOTHING_TO_CANCEL or about == "cancel" or (event_id is None and param == "response.cancel"):
            yield from self.answers.nothing_to_cancel(event_id)
            yield from self.cuts.release()
        elif code == ANOTHER_IS_ACTIVE or (param == "response.create" and not self.answers.is_free):
            self.answers.refused(event_id)
            yield from self.answers.stop_refused()
        elif general.ends_session:
            yield SessionEnded(general.error)
        elif self.answers.is_being_created(event_id):
            yield from self.answers.failed_to_begin(meaning(vendor, fault, ANSWERS).error)
        elif self.utterances.is_commit(event_id) or (event_id is None and code == NOTHING_TO_COMMIT):
            yield from self.utterances.commit_refused(event_id, self._uncommitted(fault))
        elif self.cuts.is_cut(event_id) and (event_id is not None or param in CUT_PARAMETERS):
            yield from self.cuts.refused(event_id, meaning(vendor, fault, ANSWERS).error)
        elif about == "input":
            yield from self._refuse_input(meaning(vendor, fault, ANSWERS).error)
        elif not self.is_ready or self.dialect.ends_session(fault):
            yield SessionEnded(general.error)
        else:
            logger.warning("%s: an error that changes nothing here: %s", vendor, code)

    def _uncommitted(self, fault: Fault) -> ScopedError:
        if code_of(fault) == NOTHING_TO_COMMIT:
            return HEARING.error("nothing_heard", "the provider found no audio in this utterance")
        return meaning(self.dialect.vendor, fault, HEARING).error

    def _refuse_input(self, error: ScopedError) -> Iterator[Told]:
        """The model does not know what it was told: an answer would be about something else."""
        if self.answers.is_free:
            self.refused_input = error
        else:
            yield from self.answers.fail(error)


def _read(wanted: type[M], message: JsonObject) -> M:
    """Raises `PortError` `provider_malformed`."""
    return parsed(wanted, message, STAGE)
