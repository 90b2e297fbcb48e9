"""Scripts of recognition services that behave: each hears one sentence in whatever audio it is given.

Words are told one after another as audio comes in, and the sentence is final at the end. Every message has the form
that the vendor declares; `tests/oracles` drives the vendors' own clients against these scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import cast

from pydantic import JsonValue

from .http_server import HttpExchange, typed_sse
from .socket_peer import SocketPeer
from .socket_server import Script

FIRST_WORD_S = 0.5
WORD_S = 0.2
"""Where the words stand in the audio, which is taken for 16 kHz."""
BYTES_PER_S = 32_000

Json = dict[str, JsonValue]


class _Heard:
    """How much of the sentence has been spoken by now."""

    def __init__(self, sentence: str, bytes_per_s: int = BYTES_PER_S) -> None:
        self.words = sentence.split()
        self._bytes_per_s = bytes_per_s
        self._bytes = 0
        self._told = 0

    @property
    def has_audio(self) -> bool:
        return self._bytes > 0

    def take(self, length_bytes: int) -> list[int]:
        """More audio: the numbers of words that are heard one after another."""
        self._bytes += length_bytes
        spoken = int((self._bytes / self._bytes_per_s - FIRST_WORD_S) / WORD_S)
        new = list(range(self._told + 1, min(spoken, len(self.words)) + 1))
        self._told += len(new)
        return new


def start_s(place: int) -> float:
    """When the word at this place begins."""
    return round(FIRST_WORD_S + place * WORD_S, 3)


def deepgram_hears(sentence: str, *, speech_final: bool = False) -> Script:
    """Deepgram's listen v1. `speech_final`: it tells by itself, within the audio, that the sentence is over."""

    def results(words: Sequence[str], end_s: float, **flags: JsonValue) -> Json:
        told: list[JsonValue] = [
            {
                "word": word.lower().strip(".,!?"),
                "punctuated_word": word,
                "start": start_s(place),
                "end": start_s(place + 1),
                "confidence": 0.9,
            }
            for place, word in enumerate(words)
        ]
        best: Json = {"transcript": " ".join(words), "confidence": 0.9 if words else 0.0, "words": told}
        model: Json = {"name": "general-nova-3", "version": "2026-01-01", "arch": "nova-3"}
        return {
            "type": "Results",
            "channel_index": [0, 1],
            "start": 0.0,
            "duration": end_s,
            "is_final": False,
            "speech_final": False,
            "channel": {"alternatives": [best]},
            "metadata": {"request_id": "r", "model_info": model, "model_uuid": "u"},
            **flags,
        }

    async def script(peer: SocketPeer) -> None:
        heard, is_over = _Heard(sentence), False
        while True:
            message = await peer.expect()
            if isinstance(message.data, bytes):
                for number in heard.take(len(message.data)):
                    await peer.send_json(results(heard.words[:number], start_s(number)))
                    if number == len(heard.words) and speech_final:
                        is_over = True
                        whole = results(heard.words, start_s(number), is_final=True, speech_final=True)
                        await peer.send_json(whole)
                continue
            match message.json()["type"]:
                case "Finalize" if is_over:
                    await peer.send_json(results((), 9.0, start=start_s(len(heard.words)), is_final=True))
                case "Finalize":
                    end_s = start_s(len(heard.words))
                    await peer.send_json(results(heard.words, end_s, is_final=True, from_finalize=True))
                case "CloseStream":
                    await peer.send_json(
                        {
                            "type": "Metadata",
                            "transaction_key": "deprecated",
                            "request_id": "r",
                            "sha256": "s",
                            "created": "2026-11-30T00:00:00Z",
                            "duration": 1.0,
                            "channels": 1,
                        }
                    )
                    await peer.close()
                    return
                case _:
                    pass  # KeepAlive has no answer.

    return script


def assemblyai_hears(sentence: str) -> Script:
    """AssemblyAI's streaming v3, with formatted turns."""

    def turn(heard: _Heard, number: int, *, is_final: bool, is_formatted: bool) -> Json:
        words: list[JsonValue] = [
            {
                "text": word,
                "start": round(1_000 * start_s(place)),
                "end": round(1_000 * start_s(place + 1)),
                "confidence": 0.9,
                "word_is_final": is_final or place < number - 1,
            }
            for place, word in enumerate(heard.words[:number])
        ]
        return {
            "type": "Turn",
            "turn_order": 0,
            "turn_is_formatted": is_formatted,
            "end_of_turn": is_final,
            "transcript": " ".join(heard.words[: number if is_final else number - 1]),
            "end_of_turn_confidence": 0.9 if is_final else 0.1,
            "words": words,
        }

    async def script(peer: SocketPeer) -> None:
        await peer.send_json({"type": "Begin", "id": "s", "expires_at": 1_900_000_000})
        heard = _Heard(sentence)
        while True:
            message = await peer.expect()
            if isinstance(message.data, bytes):
                for number in heard.take(len(message.data)):
                    await peer.send_json(turn(heard, number, is_final=False, is_formatted=False))
                continue
            match message.json()["type"]:
                case "ForceEndpoint":
                    for is_formatted in (False, True):
                        whole = turn(heard, len(heard.words), is_final=True, is_formatted=is_formatted)
                        await peer.send_json(whole)
                case "Terminate":
                    await peer.send_json(
                        {"type": "Termination", "audio_duration_seconds": 1, "session_duration_seconds": 1}
                    )
                    await peer.close()
                    return
                case _:
                    pass

    return script


def dashscope_hears(sentence: str) -> Script:
    """DashScope's recognition, by the task protocol."""

    async def script(peer: SocketPeer) -> None:
        begun = (await peer.expect()).json()
        task_id = cast("Json", begun["header"])["task_id"]

        async def tell(event: str, payload: Json) -> None:
            await peer.send_json({"header": {"task_id": task_id, "event": event, "attributes": {}}, "payload": payload})

        async def tell_sentence(words: Sequence[str], *, is_final: bool) -> None:
            placed: list[JsonValue] = [
                {
                    "text": word,
                    "begin_time": round(1_000 * start_s(place)),
                    "end_time": round(1_000 * start_s(place + 1)),
                    "punctuation": "",
                }
                for place, word in enumerate(words)
            ]
            told: Json = {
                "sentence_id": 1,
                "begin_time": round(1_000 * FIRST_WORD_S),
                "end_time": round(1_000 * start_s(len(words))) if is_final else None,
                "text": " ".join(words),
                "words": placed,
                "sentence_end": is_final,
                "heartbeat": False,
            }
            usage: JsonValue = {"duration": 1} if is_final else None
            await tell("result-generated", {"output": {"sentence": told}, "usage": usage})

        heard = _Heard(sentence)
        await tell("task-started", {})
        while isinstance(data := (await peer.expect()).data, bytes):
            for number in heard.take(len(data)):
                await tell_sentence(heard.words[:number], is_final=False)
        if heard.has_audio:
            await tell_sentence(heard.words, is_final=True)
        await tell("task-finished", {"output": {}})

    return script


def openai_realtime_hears(sentence: str) -> Script:
    """OpenAI's realtime transcription, without turn detection."""
    prefix = "conversation.item.input_audio_transcription"

    async def script(peer: SocketPeer) -> None:
        numbers = count(1)

        async def tell(kind: str, **fields: JsonValue) -> None:
            await peer.send_json({"type": kind, "event_id": f"event_{next(numbers)}", **fields})

        await tell("session.created", session={"type": "transcription", "id": "sess_1"})
        update = (await peer.expect({"type": "session.update"})).json()
        await tell("session.updated", session=update["session"])
        # 24 kHz, as base 64.
        heard = _Heard(sentence, 64_000)
        while (message := (await peer.expect()).json())["type"] == "input_audio_buffer.append":
            for number in heard.take(len(cast("str", message["audio"]))):
                delta = heard.words[number - 1] if number == 1 else f" {heard.words[number - 1]}"
                await tell(f"{prefix}.delta", item_id="item_1", content_index=0, delta=delta)
        await tell("input_audio_buffer.committed", item_id="item_1", previous_item_id=None)
        usage: Json = {"type": "duration", "seconds": 2.5}
        whole = " ".join(heard.words)
        await tell(f"{prefix}.completed", item_id="item_1", content_index=0, transcript=whole, usage=usage)

    return script


def qwen_realtime_hears(sentence: str) -> Script:
    """Qwen-ASR's realtime recognition at DashScope."""
    prefix = "conversation.item.input_audio_transcription"

    async def script(peer: SocketPeer) -> None:
        numbers = count(1)

        async def tell(kind: str, **fields: JsonValue) -> None:
            await peer.send_json({"type": kind, "event_id": f"event_{next(numbers)}", **fields})

        await tell("session.created", session={"id": "sess_1", "modalities": ["text"]})
        update = (await peer.expect({"type": "session.update"})).json()
        await tell("session.updated", session=update["session"])
        heard = _Heard(sentence, BYTES_PER_S * 4 // 3)  # in base 64
        while (message := (await peer.expect()).json())["type"] == "input_audio_buffer.append":
            for number in heard.take(len(cast("str", message["audio"]))):
                settled, guess = " ".join(heard.words[: number - 1]), heard.words[number - 1]
                stash = f" {guess}" if settled else guess
                await tell(f"{prefix}.text", item_id="item_1", content_index=0, text=settled, stash=stash)
        if heard.has_audio:
            await tell("input_audio_buffer.committed", item_id="item_1", previous_item_id=None)
            await tell(f"{prefix}.completed", item_id="item_1", content_index=0, transcript=" ".join(heard.words))
        await tell("session.finished")
        await peer.close()

    return script


def openai_transcription_of(sentence: str, *, stream: bool = True) -> HttpExchange:
    """The answer of `/audio/transcriptions`."""
    if not stream:
        body = f'{{"text": "{sentence}"}}'.encode()
        return HttpExchange((body,), headers={"Content-Type": "application/json"})
    words = [f" {word}" if place else word for place, word in enumerate(sentence.split())]
    events: list[Mapping[str, JsonValue]] = [{"type": "transcript.text.delta", "delta": word} for word in words]
    return HttpExchange(typed_sse(*events, {"type": "transcript.text.done", "text": sentence}))


SCRIPTS: Mapping[str, Callable[[str], Script]] = {
    "deepgram": deepgram_hears,
    "assemblyai": assemblyai_hears,
    "dashscope": dashscope_hears,
    "openai-realtime-transcription": openai_realtime_hears,
    "qwen-realtime-transcription": qwen_realtime_hears,
}
"""By the kind of the recogniser."""
