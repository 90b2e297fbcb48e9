"""A model that hears and speaks by itself, for a `ScriptedSocketServer`: OpenAI's realtime protocol, in either wording.

It keeps the rules that the real service keeps, and refuses what that refuses: a second response while one is active, a
cancel of nothing, a commit of nothing, a cut beyond what was said. What it says and for how long is scripted; it says
it at once, as the real one does. Its sound is constant: the number of the answer plus one, as every sample.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from .socket_peer import ClientGone, SocketPeer

Json = dict[str, JsonValue]
OUTPUT_RATE_HZ = 24_000
CHUNK_BYTES = 9_601
"""200 ms, cut inside a sample."""
MIN_COMMIT_MS = 100
SILENCE_MS = 500
LOUD = 500

BETA_NAMES = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "conversation.item.added": "conversation.item.created",
}


@dataclass(frozen=True, slots=True)
class Says:
    """One answer of the model."""

    text: str = "It is noon."
    milliseconds: int = 400
    calls: tuple[tuple[str, str, str], ...] = ()
    """Of tools, after what it says: the call's name, the tool's and the arguments."""
    goes_on: bool = False
    """It is not over until it is cancelled."""
    status: str = "completed"
    details: Mapping[str, JsonValue] | None = None


@dataclass
class _Response:
    response_id: str
    says: Says
    metadata: JsonValue
    items: list[Json] = field(default_factory=list[Json])


class RealtimeVoice:
    """The server's end of one session: give it to a `ScriptedSocketServer` as a script. Answers come in their order.

    `hears` are the transcripts of what is committed, in order. `beta`: Qwen-Omni's wording.
    """

    def __init__(self, *answers: Says, hears: tuple[str, ...] = (), beta: bool = False) -> None:
        self._answers = list(answers)
        self._hears = list(hears)
        self._beta = beta
        self._input_rate_hz = 16_000 if beta else 24_000
        self._peer: SocketPeer | None = None
        self._numbered = 0
        self._session: Json = {}
        self._detects = False
        self._transcribes = False
        self._buffer_ms = 0.0
        self._silent_ms = 0.0
        self._speech_item: str | None = None
        self._active: _Response | None = None
        self.spoken_ms: dict[str, int] = {}
        """How long each item of the model is."""
        self.believed_ms: dict[str, int] = {}
        """How much of it the model believes was heard; an item that was taken out is not there."""
        self.user_items: list[str] = []
        self.refused: list[str] = []
        """The codes of the errors that it told."""

    async def __call__(self, peer: SocketPeer) -> None:
        """Play the session on `peer`."""
        self._peer = peer
        name = "realtime.session"
        await self._tell("session.created", session={"type": "realtime", "id": "sess_1", "object": name})
        try:
            async for message in _json_of(peer):
                await self._take(message)
        except ClientGone:
            # It may go at any time; that is no failure of the script.
            return

    # -- what it tells ---------------------------------------------------------------------------------------------

    async def _tell(self, kind: str, **fields: JsonValue) -> None:
        assert self._peer is not None
        self._numbered += 1
        name = BETA_NAMES.get(kind, kind) if self._beta else kind
        await self._peer.send_json({"type": name, "event_id": f"event_{self._numbered}", **fields})

    def _name(self, what: str) -> str:
        self._numbered += 1
        return f"{what}_{self._numbered}"

    async def _refuse(self, message: Json, code: str, param: str | None = None) -> None:
        self.refused.append(code)
        about = None if self._beta else message.get("event_id")
        error: Json = {"type": "invalid_request_error", "code": code, "message": "no", "param": param}
        await self._tell("error", error={**error, "event_id": about})

    # -- what it is told -------------------------------------------------------------------------------------------

    async def _take(self, message: Json) -> None:
        match message["type"]:
            case "session.update":
                await self._configure(cast("Json", message["session"]))
            case "input_audio_buffer.append":
                await self._hear(base64.b64decode(cast("str", message["audio"]), validate=True))
            case "input_audio_buffer.commit":
                if self._buffer_ms < MIN_COMMIT_MS:
                    await self._refuse(message, "input_audio_buffer_commit_empty")
                else:
                    await self._commit(self._name("item"))
            case "input_audio_buffer.clear":
                self._buffer_ms, self._speech_item = 0.0, None
                await self._tell("input_audio_buffer.cleared")
            case "conversation.item.create":
                item = cast("Json", message["item"])
                await self._tell("conversation.item.added", item={**item, "id": self._name("item")})
            case "conversation.item.delete":
                await self._delete(message)
            case "conversation.item.truncate":
                await self._truncate(message)
            case "response.create":
                await self._create(message)
            case "response.cancel":
                if self._active is None:
                    await self._refuse(message, "response_cancel_not_active")
                else:
                    details: JsonValue = {"type": "cancelled", "reason": "client_cancelled"}
                    await self._end(self._active, "cancelled", details)
            case "session.finish":
                await self._tell("session.finished")
            case kind:
                await self._refuse(message, "unknown_event", str(kind))

    async def _configure(self, session: Json) -> None:
        self._session = session
        if self._beta:
            self._detects = session["turn_detection"] is not None
            self._transcribes = session["input_audio_transcription"] is not None
        else:
            heard = cast("Json", cast("Json", session["audio"])["input"])
            self._detects = heard["turn_detection"] is not None
            self._transcribes = heard["transcription"] is not None
        await self._tell("session.updated", session=session)

    async def _hear(self, pcm: bytes) -> None:
        lasts_ms = len(pcm) / 2 / self._input_rate_hz * 1_000
        self._buffer_ms += lasts_ms
        if not self._detects:
            return
        samples = array("h", pcm)
        if max(map(abs, samples), default=0) > LOUD:
            self._silent_ms = 0.0
            if self._speech_item is None:
                self._speech_item = self._name("item")
                item_id = self._speech_item
                await self._tell("input_audio_buffer.speech_started", item_id=item_id, audio_start_ms=0)
        elif self._speech_item is not None:
            self._silent_ms += lasts_ms
            if self._silent_ms >= SILENCE_MS:
                item_id, self._speech_item = self._speech_item, None
                await self._tell("input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=1)
                await self._commit(item_id)

    async def _commit(self, item_id: str) -> None:
        self._buffer_ms = 0.0
        self.user_items.append(item_id)
        await self._tell("input_audio_buffer.committed", item_id=item_id, previous_item_id=None)
        if not self._transcribes:
            return
        text = self._hears.pop(0) if self._hears else "…"
        place: Json = {"item_id": item_id, "content_index": 0}
        prefix = "conversation.item.input_audio_transcription"
        if not self._beta:
            await self._tell(f"{prefix}.delta", **place, delta=text[: len(text) // 2])
        usage: Json = {"type": "duration", "seconds": 1.0}
        await self._tell(f"{prefix}.completed", **place, transcript=text, usage=usage)

    async def _delete(self, message: Json) -> None:
        item_id = cast("str", message["item_id"])
        if item_id not in self.believed_ms and item_id not in self.user_items:
            await self._refuse(message, "item_delete_invalid_item_id", "item_id")
            return
        self.believed_ms.pop(item_id, None)
        await self._tell("conversation.item.deleted", item_id=item_id)

    async def _truncate(self, message: Json) -> None:
        item_id, end_ms = cast("str", message["item_id"]), message["audio_end_ms"]
        assert type(end_ms) is int
        if end_ms > self.spoken_ms.get(item_id, -1):
            await self._refuse(message, "invalid_value", "audio_end_ms")
            return
        self.believed_ms[item_id] = end_ms
        await self._tell("conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=end_ms)

    # -- answers ---------------------------------------------------------------------------------------------------

    async def _create(self, message: Json) -> None:
        if self._active is not None:
            await self._refuse(message, "conversation_already_has_active_response")
            return
        asked = message.get("response")
        metadata = asked.get("metadata") if isinstance(asked, dict) else None
        says = self._answers.pop(0) if self._answers else Says()
        number = len(self.spoken_ms) + 1
        self._active = response = _Response(self._name("resp"), says, metadata)
        await self._tell("response.created", response=self._body(response, "in_progress"))
        if says.text or says.milliseconds:
            await self._speak(response, number)
        for call_id, name, arguments in says.calls:
            await self._call(response, call_id, name, arguments)
        if not says.goes_on:
            await self._end(response, says.status, None if says.details is None else {**says.details})

    async def _speak(self, response: _Response, number: int) -> None:
        item_id = self._name("item")
        says = response.says
        place: Json = {"response_id": response.response_id, "item_id": item_id, "output_index": 0, "content_index": 0}
        item: Json = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        await self._tell("response.output_item.added", response_id=response.response_id, output_index=0, item=item)
        self.spoken_ms[item_id] = self.believed_ms[item_id] = says.milliseconds
        pcm = (number + 1).to_bytes(2, "little") * (OUTPUT_RATE_HZ * says.milliseconds // 1_000)
        words = says.text.split(" ")
        for place_of_word, word in enumerate(words):
            delta = word if place_of_word == 0 else f" {word}"
            await self._tell("response.output_audio_transcript.delta", **place, delta=delta)
        for chunk in _chunks(pcm):
            await self._tell("response.output_audio.delta", **place, delta=base64.b64encode(chunk).decode())
        if not says.goes_on:
            await self._tell("response.output_audio.done", **place)
            await self._tell("response.output_audio_transcript.done", **place, transcript=says.text)
        part: Json = {"type": "output_audio", "transcript": says.text}
        response.items.append({**item, "status": "completed", "content": [part]})

    async def _call(self, response: _Response, call_id: str, name: str, arguments: str) -> None:
        item_id = self._name("item")
        place: Json = {"response_id": response.response_id, "item_id": item_id, "output_index": 1, "call_id": call_id}
        item: Json = {"id": item_id, "type": "function_call", "call_id": call_id, "name": name, "arguments": ""}
        await self._tell("response.output_item.added", response_id=response.response_id, output_index=1, item=item)
        await self._tell("response.function_call_arguments.delta", **place, delta=arguments)
        await self._tell("response.function_call_arguments.done", **place, name=name, arguments=arguments)
        response.items.append({**item, "status": "completed", "arguments": arguments})

    async def _end(self, response: _Response, status: str, details: JsonValue) -> None:
        self._active = None
        body = self._body(response, status)
        usage: Json = {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
        ended: Json = {**body, "status_details": details, "usage": usage, "output": [*response.items]}
        await self._tell("response.done", response=ended)

    def _body(self, response: _Response, status: str) -> Json:
        body: Json = {"id": response.response_id, "object": "realtime.response", "status": status, "output": []}
        return body | ({} if response.metadata is None else {"metadata": response.metadata})


async def _json_of(peer: SocketPeer) -> AsyncIterator[Json]:
    async for message in peer.messages():
        yield message.json()


def _chunks(pcm: bytes) -> Iterator[bytes]:
    return (pcm[start : start + CHUNK_BYTES] for start in range(0, len(pcm), CHUNK_BYTES))
