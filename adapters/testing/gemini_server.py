"""A model that hears and speaks by itself, for a `ScriptedSocketServer`: Gemini Live.

It keeps the rules that the real service keeps: it answers at the end of an activity, is interrupted by the beginning of
one and by what is written, waits for its calls and goes on by itself, and closes the connection on what it does not
understand. What it says is scripted; it says it at once. Its sound is constant: the number of the answer plus one, as
every sample.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import from_json, to_json

from .realtime_servers import CHUNK_BYTES, OUTPUT_RATE_HZ, Json, Says
from .socket_peer import ClientGone, SocketPeer

TOOLS_OWN = frozenset({"args", "response", "parametersJsonSchema", "parameters_json_schema"})
INPUT_MIME = "audio/pcm;rate=16000"


class _Refused(Exception):
    """The service closes the connection: the client has made a mistake."""


@dataclass
class _Turn:
    calls: dict[str, str]


class GeminiVoice:
    """The server's end of one session: give it to a `ScriptedSocketServer` as a script. Answers come in their order; an
    answer to the outcomes of calls is the next one.

    `hears` are the transcripts of activities, in order. `binary`: it speaks in binary messages, and in snake_case; it
    understands both cases.
    `is_pacing`: it does not tell the end of a turn, which it does when it thinks that everything was played.
    """

    def __init__(
        self, *answers: Says, hears: tuple[str, ...] = (), binary: bool = False, is_pacing: bool = False
    ) -> None:
        self._answers = list(answers)
        self._hears = list(hears)
        self._binary = binary
        self._is_pacing = is_pacing
        self._peer: SocketPeer | None = None
        self._is_set_up = False
        self._restores = False
        self._is_manual = False
        self.is_active = False
        """The user speaks, as it was told."""
        self._turn: _Turn | None = None
        self._answered = 0
        self.heard_bytes = 0
        self.written: list[str] = []
        """What the user wrote, in this session."""
        self.history: list[JsonValue] = []
        """What was said before it."""
        self.outcomes: list[tuple[str, JsonValue]] = []
        """Of calls that it waited for."""
        self.refused: list[str] = []
        """Why it closed the connection, or ignored something."""

    async def __call__(self, peer: SocketPeer) -> None:
        """Play the session on `peer`."""
        self._peer = peer
        try:
            async for message in peer.messages():
                await self._take(cast("Json", _renamed(message.json(), to_camel)))
        except ClientGone:
            # It may go at any time; that is no failure of the script.
            return
        except _Refused as refused:
            self.refused.append(str(refused))
            await peer.close(1007, str(refused))

    async def go_away(self, time_left: str, handle: str = "handle_2") -> None:
        """The connection ends soon; the session can be gone on with."""
        await self._tell({"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}})
        await self._tell({"goAway": {"timeLeft": time_left}})

    # -- what it tells ---------------------------------------------------------------------------------------------

    async def _tell(self, message: Json) -> None:
        assert self._peer is not None
        if self._binary:
            await self._peer.send_bytes(to_json(_renamed(message, to_snake)))
        else:
            await self._peer.send_text(to_json(message).decode())

    async def _say(self, **content: JsonValue) -> None:
        await self._tell({"serverContent": content})

    # -- what it is told -------------------------------------------------------------------------------------------

    async def _take(self, message: Json) -> None:
        if len(message) != 1:
            raise _Refused("a message has exactly one key")
        ((kind, body),) = message.items()
        body = cast("Json", body)
        if (kind == "setup") is self._is_set_up:
            raise _Refused("setup must be the first message and only that")
        match kind:
            case "setup":
                await self._set_up(body)
            case "realtimeInput":
                await self._hear(body)
            case "clientContent":
                await self._read(body)
            case "toolResponse":
                await self._take_outcomes(cast("list[Json]", body["functionResponses"]))
            case _:
                raise _Refused("Request contains an invalid argument.")

    async def _set_up(self, setup: Json) -> None:
        self._is_set_up = True
        detection = cast("Json", cast("Json", setup["realtimeInputConfig"])["automaticActivityDetection"])
        self._is_manual = detection.get("disabled") is True
        self._restores = "historyConfig" in setup
        await self._tell({"setupComplete": {}})
        if "sessionResumption" in setup:
            await self._tell({"sessionResumptionUpdate": {"newHandle": "", "resumable": False}})
            await self._tell({"sessionResumptionUpdate": {"newHandle": "handle_1", "resumable": True}})

    async def _hear(self, body: Json) -> None:
        if not self._is_manual:
            raise _Refused("activity is detected here")
        if "activityStart" in body:
            if self.is_active:
                raise _Refused("the user speaks already")
            self.is_active = True
            await self._interrupt()
        elif "activityEnd" in body:
            if not self.is_active:
                raise _Refused("the user does not speak")
            self.is_active = False
            await self._write_down(self._hears.pop(0) if self._hears else "…")
            await self._speak()
        else:
            audio = cast("Json", body["audio"])
            if not self.is_active or audio["mimeType"] != INPUT_MIME:
                raise _Refused("audio belongs into an activity, and has a type")
            self.heard_bytes += len(base64.b64decode(cast("str", audio["data"]), validate=True))

    async def _write_down(self, text: str) -> None:
        first, second = text[: len(text) // 2], text[len(text) // 2 :]
        await self._say(inputTranscription={"text": first})
        await self._say(inputTranscription={"text": second, "finished": True})

    async def _read(self, body: Json) -> None:
        turns = cast("list[Json]", body.get("turns") or [])
        if self._restores:
            self.history.extend(turns)
            self._restores = not body["turnComplete"]
            return
        self.written.extend(str(part["text"]) for turn in turns for part in cast("list[Json]", turn["parts"]))
        await self._interrupt()
        if body["turnComplete"]:
            await self._speak()

    async def _take_outcomes(self, outcomes: list[Json]) -> None:
        turn = self._turn
        for outcome in outcomes:
            call_id = cast("str", outcome["id"])
            if turn is None or turn.calls.pop(call_id, None) != outcome["name"]:
                self.refused.append(f"nobody waits for {call_id}")
                continue
            self.outcomes.append((call_id, outcome["response"]))
        if turn is not None and not turn.calls:
            await self._speak()

    # -- answers ---------------------------------------------------------------------------------------------------

    async def _interrupt(self) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if turn.calls:
            await self._tell({"toolCallCancellation": {"ids": [*turn.calls]}})
        await self._say(interrupted=True)
        await self._say(turnComplete=True)

    async def _speak(self) -> None:
        says = self._answers.pop(0) if self._answers else Says()
        self._answered += 1
        self._turn = turn = _Turn({call_id: name for call_id, name, _ in says.calls})
        words = says.text.split(" ") if says.text else []
        for place, word in enumerate(words):
            await self._say(outputTranscription={"text": word if place == 0 else f" {word}"})
        pcm = (self._answered + 1).to_bytes(2, "little") * (OUTPUT_RATE_HZ * says.milliseconds // 1_000)
        for start in range(0, len(pcm), CHUNK_BYTES):
            data = base64.b64encode(pcm[start : start + CHUNK_BYTES]).decode()
            part: Json = {"inlineData": {"mimeType": f"audio/pcm;rate={OUTPUT_RATE_HZ}", "data": data}}
            await self._say(modelTurn={"role": "model", "parts": [part]})
        if turn.calls:
            calls: list[JsonValue] = [
                {"id": call_id, "name": name, "args": _parsed(arguments)} for call_id, name, arguments in says.calls
            ]
            await self._tell({"toolCall": {"functionCalls": calls}})
        elif not says.goes_on:
            await self._say(outputTranscription={"finished": True})
            await self._say(generationComplete=True)
            if not self._is_pacing:
                self._turn = None
                usage: Json = {"promptTokenCount": 20, "responseTokenCount": 10, "totalTokenCount": 30}
                await self._tell({"serverContent": {"turnComplete": True}, "usageMetadata": usage})


def _parsed(arguments: str) -> JsonValue:
    return cast("JsonValue", from_json(arguments))


def _renamed(value: JsonValue, rename: Callable[[str], str]) -> JsonValue:
    """The same with other keys: both cases are in use. What belongs to a tool stays as it is."""
    if isinstance(value, list):
        return [_renamed(one, rename) for one in value]
    if not isinstance(value, dict):
        return value
    return {rename(key): one if key in TOOLS_OWN else _renamed(one, rename) for key, one in value.items()}
