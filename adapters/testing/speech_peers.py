"""Voices for a `ScriptedSocketServer`: each speaks one vendor's protocol, and says everything that it is asked to say.

The sound of a unit is constant: its number on the connection plus one, as every sample. Audio is cut inside samples on
purpose, as a network may cut it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Iterator

from pydantic import JsonValue

from .socket_peer import SocketPeer

Script = Callable[[SocketPeer], Awaitable[None]]
RATE_HZ = 24_000
MS_PER_CHAR = 20
CHUNK_BYTES = 4_801


def pcm_of(text: str, number: int, ms_per_char: int = MS_PER_CHAR) -> bytes:
    """24 kHz mono PCM16 of a text: every sample is `number` + 1."""
    return (number + 1).to_bytes(2, "little", signed=True) * (RATE_HZ * ms_per_char * len(text) // 1_000)


def chunks_of(pcm: bytes, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """`pcm` in pieces of an odd length."""
    return (pcm[start : start + chunk_bytes] for start in range(0, len(pcm), chunk_bytes))


def encoded(pcm: bytes) -> str:
    """As JSON messages carry it."""
    return base64.b64encode(pcm).decode()


def elevenlabs_voice(ms_per_char: int = MS_PER_CHAR) -> Script:
    """ElevenLabs, multi-stream-input: a context is spoken when it is closed."""

    async def speak(peer: SocketPeer) -> None:
        texts: dict[str, str] = {}
        spoken = 0
        while True:
            message = (await peer.expect(str)).json()
            context_id = str(message["context_id"])
            texts[context_id] = texts.get(context_id, "") + str(message.get("text", ""))
            if message.get("close_context"):
                text = texts.pop(context_id).strip()
                for audio in elevenlabs_audio(context_id, text, spoken, ms_per_char):
                    await peer.send_json(audio)
                await peer.send_json({"isFinal": True, "contextId": context_id, "audio": None})
                spoken += 1

    return speak


def elevenlabs_audio(
    context_id: str, text: str, number: int, ms_per_char: int = MS_PER_CHAR
) -> Iterator[dict[str, JsonValue]]:
    """The audio messages of one context: a word each."""
    for match in re.finditer(r"\S+\s*", text):
        letters = list(match.group())
        times: list[JsonValue] = [place * ms_per_char for place in range(len(letters))]
        durations: list[JsonValue] = [ms_per_char for _ in letters]
        alignment: JsonValue = {"chars": [*letters], "charStartTimesMs": times, "charDurationsMs": durations}
        yield {
            "audio": encoded(pcm_of(match.group(), number, ms_per_char)),
            "isFinal": None,
            "contextId": context_id,
            "alignment": alignment,
            "normalizedAlignment": alignment,
        }


def cartesia_voice(ms_per_char: int = MS_PER_CHAR) -> Script:
    """Cartesia: a transcript is spoken when it is flushed. Times count from the context's beginning."""

    async def speak(peer: SocketPeer) -> None:
        texts: dict[str, str] = {}
        flushes: dict[str, int] = {}
        said_ms: dict[str, int] = {}
        spoken = 0
        while True:
            message = (await peer.expect(str)).json()
            context_id = str(message["context_id"])
            if message.get("cancel"):
                continue
            texts[context_id] = texts.get(context_id, "") + str(message["transcript"])
            if message.get("flush"):
                text = texts.pop(context_id).strip()
                flush_id = flushes[context_id] = flushes.get(context_id, 0) + 1
                start_ms = said_ms.get(context_id, 0)
                for event in cartesia_audio(context_id, flush_id, text, spoken, start_ms, ms_per_char):
                    await peer.send_json(event)
                said_ms[context_id] = start_ms + ms_per_char * len(text)
                spoken += 1
            if not message.get("continue"):
                done: dict[str, JsonValue] = {"type": "done", "context_id": context_id, "done": True}
                await peer.send_json(done | {"status_code": 200})

    return speak


def cartesia_audio(
    context_id: str, flush_id: int, text: str, number: int, start_ms: int = 0, ms_per_char: int = MS_PER_CHAR
) -> Iterator[dict[str, JsonValue]]:
    """The messages of one flush: chunks, the times of words, and its end."""
    head: dict[str, JsonValue] = {"context_id": context_id, "flush_id": flush_id, "done": False, "status_code": 206}
    words = list(re.finditer(r"\S+", text))
    times: dict[str, JsonValue] = {
        "words": [word.group() for word in words],
        "start": [(start_ms + word.start() * ms_per_char) / 1_000 for word in words],
        "end": [(start_ms + word.end() * ms_per_char) / 1_000 for word in words],
    }
    for place, chunk in enumerate(chunks_of(pcm_of(text, number, ms_per_char))):
        yield {**head, "type": "chunk", "data": encoded(chunk), "step_time": 1.0}
        if place == 0:
            yield {**head, "type": "timestamps", "word_timestamps": times}
    yield {**head, "type": "flush_done", "flush_done": True}


def cosyvoice_voice(ms_per_char: int = MS_PER_CHAR) -> Script:
    """DashScope's tasks: audio in binary messages, words at the end of the sentence."""

    async def speak(peer: SocketPeer) -> None:
        text = ""
        spoken = 0
        while True:
            message = (await peer.expect(str)).json()
            header, payload = message["header"], message["payload"]
            assert isinstance(header, dict)
            assert isinstance(payload, dict)
            task_id, given = str(header["task_id"]), payload["input"]
            assert isinstance(given, dict)
            text += str(given.get("text", ""))
            if header["action"] == "run-task":
                await peer.send_json(task_event("task-started", task_id))
            if header["action"] == "finish-task":
                for chunk in chunks_of(pcm_of(text, spoken, ms_per_char)):
                    await peer.send_bytes(chunk)
                words: list[JsonValue] = [
                    {
                        "text": word.group(),
                        "begin_index": word.start(),
                        "end_index": word.end(),
                        "begin_time": word.start() * ms_per_char,
                        "end_time": word.end() * ms_per_char,
                    }
                    for word in re.finditer(r"\S+", text)
                ]
                sentence: dict[str, JsonValue] = {"index": 0, "words": words}
                output: dict[str, JsonValue] = {"type": "sentence-end", "sentence": sentence, "original_text": text}
                await peer.send_json(task_event("result-generated", task_id, {"output": output}))
                await peer.send_json(task_event("task-finished", task_id, {"output": {}}))
                text = ""
                spoken += 1

    return speak


def task_event(event: str, task_id: str, payload: dict[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    """An event of DashScope's tasks."""
    return {"header": {"event": event, "task_id": task_id, "attributes": {}}, "payload": payload or {}}


def qwen_voice(ms_per_char: int = MS_PER_CHAR) -> Script:
    """DashScope's Qwen-TTS session, in the mode "commit"."""

    async def speak(peer: SocketPeer) -> None:
        await peer.send_json({"event_id": "e", "type": "session.created", "session": {"id": "s"}})
        text = ""
        spoken = 0
        while True:
            message = (await peer.expect(str)).json()
            if message["type"] == "session.update":
                await peer.send_json({"event_id": "e", "type": "session.updated", "session": {"id": "s"}})
            if message["type"] == "input_text_buffer.append":
                text += str(message["text"])
            if message["type"] == "input_text_buffer.commit":
                await peer.send_json({"event_id": "e", "type": "input_text_buffer.committed", "item_id": ""})
                for event in qwen_response(f"r{spoken}", text, spoken, ms_per_char):
                    await peer.send_json(event)
                text = ""
                spoken += 1

    return speak


def qwen_response(
    response_id: str, text: str, number: int, ms_per_char: int = MS_PER_CHAR
) -> Iterator[dict[str, JsonValue]]:
    """The events of one response."""
    place: dict[str, JsonValue] = {"response_id": response_id, "item_id": "i", "output_index": 0, "content_index": 0}
    yield {"event_id": "e", "type": "response.created", "response": {"id": response_id, "status": "in_progress"}}
    for chunk in chunks_of(pcm_of(text, number, ms_per_char)):
        yield {"event_id": "e", "type": "response.audio.delta", **place, "delta": encoded(chunk)}
    yield {"event_id": "e", "type": "response.audio.done", **place}
    yield {"event_id": "e", "type": "response.done", "response": {"id": response_id, "status": "completed"}}
