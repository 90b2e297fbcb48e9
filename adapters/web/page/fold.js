// What the events of a conversation amount to. The words of adapters/web/folding.py in another language: a test folds
// the same events with both. Pure: nothing is changed in place, so whoever draws can compare what was with what is.

export const KEPT_ENTRIES = 60;
export const KEPT_CHARS = 200_000;
export const KEPT_TASKS = 32;
export const KEPT_PARTS = 512;

/** Before the first event. */
export function emptyState() {
  return {
    session: { state: "opening", reason: "", degradations: [] },
    caption: null,
    entries: [],
    playback: null,
    tasks: [],
    error: null,
  };
}

/** The state after one more event. One of a type that is not known here changes nothing. */
export function fold(state, event) {
  if (event.type === "snapshot") return event.payload.state;
  const change = Object.hasOwn(CHANGES, event.type) ? CHANGES[event.type] : null;
  return change === null ? state : change(state, event, event.payload);
}

/** Characters as the server counts them: code points, not UTF-16 units. */
export function charsOf(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

// -- the session ------------------------------------------------------------------------------------------------------

function session(name) {
  return (state, event, payload) => {
    const told = {
      state: name,
      reason: payload.reason ?? "",
      degradations: payload.degradations ?? state.session.degradations,
    };
    const changed = { ...state, session: told };
    return payload.error ? { ...changed, error: errorOf(payload.error) } : changed;
  };
}

function failed(state, event, payload) {
  return { ...state, error: errorOf(payload.error) };
}

function errorOf(error) {
  return {
    code: error.code ?? null,
    stage: error.stage ?? null,
    scope: error.scope ?? null,
    message: error.message ?? null,
  };
}

// -- the user ---------------------------------------------------------------------------------------------------------

function caption(name) {
  return (state, event, payload) => ({
    ...state,
    caption: {
      turn_id: event.turn_id ?? null,
      segment_id: payload.segment_id ?? null,
      revision: payload.revision ?? 0,
      text: payload.text ?? "",
      state: name,
    },
  });
}

function discarded(state) {
  return state.caption === null ? state : { ...state, caption: { ...state.caption, state: "discarded" } };
}

function committed(state, event, payload) {
  const turnId = event.turn_id ?? null;
  const entry = {
    kind: "user",
    turn_id: turnId,
    text: payload.text,
    authority: payload.authority,
    revision: payload.revision,
    status: "committed",
    reason: "",
  };
  let changed = state;
  if (state.caption !== null && state.caption.turn_id === turnId) {
    changed = { ...state, caption: { ...state.caption, text: payload.text, state: "committed" } };
  }
  if (placeOf(changed.entries, "user", "turn_id", turnId) !== -1) {
    return withEntry(changed, "user", "turn_id", turnId, () => entry);
  }
  return { ...changed, entries: bounded([...changed.entries, entry]) };
}

function dropped(state, event, payload) {
  return withEntry(state, "user", "turn_id", event.turn_id ?? null, (entry) => ({
    ...entry,
    status: "dropped",
    reason: payload.reason,
  }));
}

// -- the assistant ----------------------------------------------------------------------------------------------------

/** A text is said as it is. Of a private one nothing is shown. */
function announced(state, event, payload) {
  return payload.private ? state : started(state, event, { attempt: 1 }, true);
}

function started(state, event, payload, isAnnounced = false) {
  const responseId = event.response_id ?? null;
  if (placeOf(state.entries, "assistant", "response_id", responseId) !== -1) {
    return withReply(state, event, (entry) => ({ ...entry, attempt: payload.attempt }));
  }
  const entry = {
    kind: "assistant",
    response_id: responseId,
    run_id: event.run_id ?? null,
    turn_id: event.turn_id ?? null,
    attempt: payload.attempt,
    announced: isAnnounced,
    text: "",
    is_final: false,
    state: "running",
    reason: "",
    interrupted: null,
    delivery: null,
    stream_id: null,
    units: [],
    tools: [],
  };
  return { ...state, entries: bounded([...state.entries, entry]) };
}

function reply(changeOf) {
  return (state, event, payload) =>
    withReply(state, event, (entry) => ({ ...entry, ...changeOf(payload, entry, event) }));
}

function unit(...names) {
  return reply((payload, entry) => {
    const index = payload.unit_index;
    const known = entry.units.find((other) => other.index === index);
    const changed = { ...(known ?? { index, text: "", source_end: null, end_sample: null }) };
    for (const name of names) if (name in payload) changed[name] = payload[name];
    const others = entry.units.filter((other) => other.index !== index);
    return { units: [...others, changed].sort((one, other) => one.index - other.index).slice(-KEPT_PARTS) };
  });
}

// -- tools ------------------------------------------------------------------------------------------------------------

const toolStarted = reply((payload, entry, event) => {
  const callId = event.call_id ?? null;
  const tool = {
    call_id: callId,
    name: payload.name,
    background: payload.background,
    state: "running",
    progress: null,
  };
  return { tools: [...entry.tools.filter((other) => other.call_id !== callId), tool].slice(-KEPT_PARTS) };
});

function toolWentOn(state, event, payload) {
  return withTool(state, event, { progress: payload });
}

function toolEnded(state, event, payload) {
  return withTool(state, event, { state: payload.status ?? event.type.slice(event.type.indexOf(".") + 1) });
}

/** In the newest reply that made the call: models count their calls anew. */
function withTool(state, event, told) {
  const callId = event.call_id ?? null;
  const place = state.entries.findLastIndex(
    (entry) => entry.kind === "assistant" && entry.tools.some((tool) => tool.call_id === callId),
  );
  if (place === -1) return state;
  const entry = state.entries[place];
  const tools = entry.tools.map((tool) => (tool.call_id === callId ? { ...tool, ...told } : tool));
  return { ...state, entries: state.entries.with(place, { ...entry, tools }) };
}

function task(state, event, payload) {
  const told = { task_id: payload.task_id, name: payload.name, state: payload.state };
  const others = state.tasks.filter((other) => other.task_id !== told.task_id);
  return { ...state, tasks: [...others, told].slice(-KEPT_TASKS) };
}

// -- sound ------------------------------------------------------------------------------------------------------------

function opened(state, event, payload) {
  const streamId = event.stream_id ?? null;
  const playback = {
    stream_id: streamId,
    response_id: event.response_id ?? null,
    state: "buffering",
    sample_rate_hz: payload.sample_rate_hz,
    played_samples: 0,
    underruns: 0,
  };
  return withReply({ ...state, playback }, event, (entry) => ({ ...entry, stream_id: streamId }));
}

function playback(told = {}) {
  return (state, event, payload) => {
    if (state.playback === null || state.playback.stream_id !== (event.stream_id ?? null)) return state;
    const changed = { ...state.playback, ...told };
    if (payload.played_samples != null) changed.played_samples = payload.played_samples;
    if ("underruns" in payload) changed.underruns = payload.underruns;
    return { ...state, playback: changed };
  };
}

// -- inside -----------------------------------------------------------------------------------------------------------

function withReply(state, event, change) {
  return withEntry(state, "assistant", "response_id", event.response_id ?? null, change);
}

/** The state with one entry changed; as it is when that entry is not kept any more. */
function withEntry(state, kind, name, identity, change) {
  const place = placeOf(state.entries, kind, name, identity);
  if (place === -1) return state;
  return { ...state, entries: bounded(state.entries.with(place, change(state.entries[place]))) };
}

function placeOf(entries, kind, name, identity) {
  return entries.findLastIndex((entry) => entry.kind === kind && entry[name] === identity);
}

function bounded(entries) {
  const kept = entries.slice(-KEPT_ENTRIES);
  let left = KEPT_CHARS;
  for (let place = kept.length - 1; place >= 0; place -= 1) {
    left -= charsOf(kept[place].text);
    if (left < 0) return kept.slice(Math.min(place + 1, kept.length - 1));
  }
  return kept;
}

const CHANGES = {
  "session.ready": session("ready"),
  "session.reconnecting": session("reconnecting"),
  "session.closing": session("closing"),
  "session.closed": session("closed"),
  "stream.error": failed,
  "input.speech_started": (state, event) => caption("listening")(state, event, {}),
  "transcript.updated": caption("hypothesis"),
  "transcript.segment_final": caption("final"),
  "turn.committed": committed,
  "turn.discarded": discarded,
  "turn.dropped": dropped,
  "announcement.started": announced,
  "response.started": (state, event, payload) => started(state, event, payload),
  "text.delta": reply((payload, entry) => ({ text: entry.text + payload.text })),
  "text.final": reply((payload) => ({ text: payload.text, is_final: true })),
  "cancel.requested": reply((payload) => ({ state: "cancelling", reason: payload.reason })),
  "interruption.accepted": reply((payload) => ({
    interrupted: { source: payload.source, reason: payload.reason },
  })),
  "response.terminal": reply((payload) => ({ state: payload.outcome, reason: payload.reason })),
  "delivery.recorded": reply((payload) => ({
    delivery: { status: payload.status, units: payload.units, played_samples: payload.played_samples },
  })),
  "speech.text_committed": unit("text", "source_end"),
  "speech.unit_synthesized": unit("end_sample"),
  "tool.started": toolStarted,
  "tool.progress": toolWentOn,
  "tool.ended": toolEnded,
  "tool.completed": toolEnded,
  "tool.failed": toolEnded,
  "task.updated": task,
  "audio.started": opened,
  "playback.started": playback({ state: "playing" }),
  "playback.progress": playback(),
  "playback.underrun": playback({ state: "buffering" }),
  "playback.paused": playback({ state: "paused" }),
  "playback.resumed": playback({ state: "playing" }),
  "playback.drained": playback({ state: "drained" }),
  "playback.stopped": playback({ state: "stopped" }),
};
