"""What the events of a conversation amount to: the one pure function that servers, tests and clients agree on.

`fold(state, event)` takes plain JSON and returns plain JSON; nothing is changed in place. A `snapshot` event replaces
the state. An event of a type that is not known here changes nothing, so that an older client outlives a newer server.
The page's script does the same in its own words.

The state:

    session   {state: opening | ready | reconnecting | closing | closed, reason, degradations}
    caption   null, or what the user is saying: {turn_id, segment_id, revision, text, state}
              state: listening | hypothesis | final | committed | discarded
    entries   the newest turns and replies, oldest first:
      user       {kind, turn_id, text, authority, revision, status: committed | dropped, reason}
      assistant  {kind, response_id, run_id, turn_id, attempt, announced, text, is_final, state, reason, interrupted,
                  delivery, stream_id, units, tools}
                 announced: true where the text was given, and no model asked
                 state: running | cancelling | completed | cancelled | failed
                 interrupted: null or {source, reason};  delivery: null or {status, units, played_samples}
                 units: [{index, text, source_end, end_sample}];  tools: [{call_id, name, background, state, progress}]
    playback  null, or the newest output stream:
              {stream_id, response_id, state, sample_rate_hz, played_samples, underruns}
              state: buffering | playing | paused | drained | stopped
    tasks     the newest background tasks: [{task_id, name, state}]
    error     null, or the newest error: {code, stage, scope, message}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

KEPT_ENTRIES = 60
KEPT_CHARS = 200_000
"""Of the texts of all entries; the newest entry is kept whole."""
KEPT_TASKS = 32
KEPT_PARTS = 512
"""Units and tools of one reply; the newest ones."""


def empty_state() -> Json:
    """Before the first event."""
    return {
        "session": {"state": "opening", "reason": "", "degradations": []},
        "caption": None,
        "entries": [],
        "playback": None,
        "tasks": [],
        "error": None,
    }


def fold(state: Json, event: Json) -> Json:
    """The state after one more event."""
    if event["type"] == "snapshot":
        return event["payload"]["state"]
    change = _CHANGES.get(event["type"])
    return state if change is None else change(state, event, event["payload"])


# -- the session ---------------------------------------------------------------------------------------------------


def _session(name: str) -> Callable[[Json, Json, Json], Json]:
    def change(state: Json, event: Json, payload: Json) -> Json:
        session = {
            "state": name,
            "reason": payload.get("reason", ""),
            "degradations": payload.get("degradations", state["session"]["degradations"]),
        }
        changed = {**state, "session": session}
        error = payload.get("error")
        return changed if error is None else {**changed, "error": _error(error)}

    return change


def _failed(state: Json, event: Json, payload: Json) -> Json:
    return {**state, "error": _error(payload["error"])}


def _error(error: Json) -> Json:
    return {name: error.get(name) for name in ("code", "stage", "scope", "message")}


# -- the user ------------------------------------------------------------------------------------------------------


def _began(state: Json, event: Json, payload: Json) -> Json:
    return {**state, "caption": _caption(event, "", "listening")}


def _heard(state: Json, event: Json, payload: Json) -> Json:
    return {**state, "caption": _caption(event, payload["text"], "hypothesis", payload)}


def _froze(state: Json, event: Json, payload: Json) -> Json:
    return {**state, "caption": _caption(event, payload["text"], "final", payload)}


def _discarded(state: Json, event: Json, payload: Json) -> Json:
    caption = state["caption"]
    return state if caption is None else {**state, "caption": {**caption, "state": "discarded"}}


def _caption(event: Json, text: str, name: str, payload: Json | None = None) -> Json:
    told = payload or {}
    return {
        "turn_id": event.get("turn_id"),
        "segment_id": told.get("segment_id"),
        "revision": told.get("revision", 0),
        "text": text,
        "state": name,
    }


def _committed(state: Json, event: Json, payload: Json) -> Json:
    turn_id = event.get("turn_id")
    entry = {
        "kind": "user",
        "turn_id": turn_id,
        "text": payload["text"],
        "authority": payload["authority"],
        "revision": payload["revision"],
        "status": "committed",
        "reason": "",
    }
    caption = state["caption"]
    if caption is not None and caption["turn_id"] == turn_id:
        state = {**state, "caption": {**caption, "text": payload["text"], "state": "committed"}}
    entries = state["entries"]
    if _place(entries, "turn_id", turn_id, "user") is not None:
        return _with_entry(state, "turn_id", turn_id, lambda _: entry, kind="user")
    return {**state, "entries": _bounded([*entries, entry])}


def _dropped(state: Json, event: Json, payload: Json) -> Json:
    def change(entry: Json) -> Json:
        return {**entry, "status": "dropped", "reason": payload["reason"]}

    return _with_entry(state, "turn_id", event.get("turn_id"), change, kind="user")


# -- the assistant -------------------------------------------------------------------------------------------------


def _announced(state: Json, event: Json, payload: Json) -> Json:
    """A text is said as it is. Of a private one nothing is shown."""
    return state if payload["private"] else _started(state, event, {"attempt": 1}, announced=True)


def _started(state: Json, event: Json, payload: Json, *, announced: bool = False) -> Json:
    response_id = event.get("response_id")
    if _place(state["entries"], "response_id", response_id) is not None:
        return _with_reply(state, event, lambda entry: {**entry, "attempt": payload["attempt"]})
    entry: Json = {
        "kind": "assistant",
        "response_id": response_id,
        "run_id": event.get("run_id"),
        "turn_id": event.get("turn_id"),
        "attempt": payload["attempt"],
        "announced": announced,
        "text": "",
        "is_final": False,
        "state": "running",
        "reason": "",
        "interrupted": None,
        "delivery": None,
        "stream_id": None,
        "units": [],
        "tools": [],
    }
    return {**state, "entries": _bounded([*state["entries"], entry])}


def _wrote(state: Json, event: Json, payload: Json) -> Json:
    return _with_reply(state, event, lambda entry: {**entry, "text": entry["text"] + payload["text"]})


def _finished(state: Json, event: Json, payload: Json) -> Json:
    return _with_reply(state, event, lambda entry: {**entry, "text": payload["text"], "is_final": True})


def _ended(state: Json, event: Json, payload: Json) -> Json:
    def change(entry: Json) -> Json:
        return {**entry, "state": payload["outcome"], "reason": payload["reason"]}

    return _with_reply(state, event, change)


def _cancelling(state: Json, event: Json, payload: Json) -> Json:
    return _with_reply(state, event, lambda entry: {**entry, "state": "cancelling", "reason": payload["reason"]})


def _interrupted(state: Json, event: Json, payload: Json) -> Json:
    cut = {"source": payload["source"], "reason": payload["reason"]}
    return _with_reply(state, event, lambda entry: {**entry, "interrupted": cut})


def _delivered(state: Json, event: Json, payload: Json) -> Json:
    told = {name: payload[name] for name in ("status", "units", "played_samples")}
    return _with_reply(state, event, lambda entry: {**entry, "delivery": told})


def _unit(state: Json, event: Json, payload: Json) -> Json:
    return _with_unit(state, event, payload, ("text", "source_end"))


def _voiced(state: Json, event: Json, payload: Json) -> Json:
    return _with_unit(state, event, payload, ("end_sample",))


def _with_unit(state: Json, event: Json, payload: Json, names: tuple[str, ...]) -> Json:
    def change(entry: Json) -> Json:
        index = payload["unit_index"]
        known = next((unit for unit in entry["units"] if unit["index"] == index), None)
        told = {name: payload[name] for name in names if name in payload}
        unit = {**(known or {"index": index, "text": "", "source_end": None, "end_sample": None}), **told}
        others = [other for other in entry["units"] if other["index"] != index]
        return {**entry, "units": sorted([*others, unit], key=_index_of)[-KEPT_PARTS:]}

    return _with_reply(state, event, change)


def _index_of(unit: Json) -> int:
    return unit["index"]


# -- tools ---------------------------------------------------------------------------------------------------------


def _tool_started(state: Json, event: Json, payload: Json) -> Json:
    call_id = event.get("call_id")
    tool = {
        "call_id": call_id,
        "name": payload["name"],
        "background": payload["background"],
        "state": "running",
        "progress": None,
    }

    def change(entry: Json) -> Json:
        others = [other for other in entry["tools"] if other["call_id"] != call_id]
        return {**entry, "tools": [*others, tool][-KEPT_PARTS:]}

    return _with_reply(state, event, change)


def _tool_went_on(state: Json, event: Json, payload: Json) -> Json:
    return _with_tool(state, event, {"progress": payload})


def _tool_ended(state: Json, event: Json, payload: Json) -> Json:
    return _with_tool(state, event, {"state": payload.get("status", event["type"].partition(".")[2])})


def _with_tool(state: Json, event: Json, told: Json) -> Json:
    """In the newest reply that made the call: models count their calls anew."""
    call_id = event.get("call_id")
    entries = state["entries"]
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if entry["kind"] == "assistant" and any(tool["call_id"] == call_id for tool in entry["tools"]):
            tools = [{**tool, **told} if tool["call_id"] == call_id else tool for tool in entry["tools"]]
            return {**state, "entries": [*entries[:place], {**entry, "tools": tools}, *entries[place + 1 :]]}
    return state


def _task(state: Json, event: Json, payload: Json) -> Json:
    task = {name: payload[name] for name in ("task_id", "name", "state")}
    others = [other for other in state["tasks"] if other["task_id"] != task["task_id"]]
    return {**state, "tasks": [*others, task][-KEPT_TASKS:]}


# -- sound ---------------------------------------------------------------------------------------------------------


def _opened(state: Json, event: Json, payload: Json) -> Json:
    stream_id = event.get("stream_id")
    playback = {
        "stream_id": stream_id,
        "response_id": event.get("response_id"),
        "state": "buffering",
        "sample_rate_hz": payload["sample_rate_hz"],
        "played_samples": 0,
        "underruns": 0,
    }
    return _with_reply({**state, "playback": playback}, event, lambda entry: {**entry, "stream_id": stream_id})


def _playback(**told: Any) -> Callable[[Json, Json, Json], Json]:  # noqa: ANN401 - plain JSON
    def change(state: Json, event: Json, payload: Json) -> Json:
        playback = state["playback"]
        if playback is None or playback["stream_id"] != event.get("stream_id"):
            return state
        changed = {**playback, **told}
        if payload.get("played_samples") is not None:
            changed["played_samples"] = payload["played_samples"]
        if "underruns" in payload:
            changed["underruns"] = payload["underruns"]
        return {**state, "playback": changed}

    return change


# -- inside --------------------------------------------------------------------------------------------------------


def _with_reply(state: Json, event: Json, change: Callable[[Json], Json]) -> Json:
    return _with_entry(state, "response_id", event.get("response_id"), change)


def _with_entry(
    state: Json,
    name: str,
    identity: str | None,
    change: Callable[[Json], Json],
    kind: str = "assistant",
) -> Json:
    """The state with one entry changed; as it is when that entry is not kept any more."""
    entries = state["entries"]
    place = _place(entries, name, identity, kind)
    if place is None:
        return state
    changed = [*entries[:place], change(entries[place]), *entries[place + 1 :]]
    return {**state, "entries": _bounded(changed)}


def _place(entries: list[Json], name: str, identity: str | None, kind: str = "assistant") -> int | None:
    for place in range(len(entries) - 1, -1, -1):
        if entries[place]["kind"] == kind and entries[place][name] == identity:
            return place
    return None


def _bounded(entries: list[Json]) -> list[Json]:
    entries = entries[-KEPT_ENTRIES:]
    left = KEPT_CHARS
    for place in range(len(entries) - 1, -1, -1):
        left -= len(entries[place]["text"])
        if left < 0:
            return entries[min(place + 1, len(entries) - 1) :]
    return entries


_CHANGES: dict[str, Callable[[Json, Json, Json], Json]] = {
    "session.ready": _session("ready"),
    "session.reconnecting": _session("reconnecting"),
    "session.closing": _session("closing"),
    "session.closed": _session("closed"),
    "stream.error": _failed,
    "input.speech_started": _began,
    "transcript.updated": _heard,
    "transcript.segment_final": _froze,
    "turn.committed": _committed,
    "turn.discarded": _discarded,
    "turn.dropped": _dropped,
    "announcement.started": _announced,
    "response.started": _started,
    "text.delta": _wrote,
    "text.final": _finished,
    "cancel.requested": _cancelling,
    "interruption.accepted": _interrupted,
    "response.terminal": _ended,
    "delivery.recorded": _delivered,
    "speech.text_committed": _unit,
    "speech.unit_synthesized": _voiced,
    "tool.started": _tool_started,
    "tool.progress": _tool_went_on,
    "tool.ended": _tool_ended,
    "tool.completed": _tool_ended,
    "tool.failed": _tool_ended,
    "task.updated": _task,
    "audio.started": _opened,
    "playback.started": _playback(state="playing"),
    "playback.progress": _playback(),
    "playback.underrun": _playback(state="buffering"),
    "playback.paused": _playback(state="paused"),
    "playback.resumed": _playback(state="playing"),
    "playback.drained": _playback(state="drained"),
    "playback.stopped": _playback(state="stopped"),
}
