// The interface, as the page asks it. Every answer from 400 on becomes an ApiError with what the server said.

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function listConversations() {
  return (await get("/api/conversations")).conversations;
}

export async function readChart(conversationId) {
  return get(withConversation("/api/chart", conversationId));
}

/** The picture as an SVG element of its own document. */
export async function readPicture() {
  const response = await ask("/api/chart.svg");
  const picture = new DOMParser().parseFromString(await response.text(), "image/svg+xml");
  return picture.documentElement;
}

export async function explain(conversationId, number) {
  return get(`${withConversation("/api/trace/explanation", conversationId)}&number=${number}`);
}

/** Trade the token for a cookie. */
export async function openSession(token) {
  await post("/api/session", { token });
}

export async function cancel(conversationId, runId) {
  await post("/api/cancel", { conversation_id: conversationId, run_id: runId });
}

/**
 * Say something, and stay its owner until its run is over. Events are not read here: they come to everybody who
 * watches. `onTaken` is called when the server has taken it.
 */
export async function chat(conversationId, text, onTaken) {
  const response = await post("/api/chat", { conversation_id: conversationId, text });
  onTaken();
  const reader = response.body.getReader();
  while (!(await reader.read()).done);
}

export function withConversation(path, conversationId) {
  return `${path}?conversation_id=${encodeURIComponent(conversationId)}`;
}

async function get(path) {
  return (await ask(path)).json();
}

async function post(path, body) {
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Raises `ApiError`; status 0 where nobody answered. */
async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new ApiError(0, "unreachable", "the server does not answer");
  }
  if (response.ok) return response;
  let error = null;
  try {
    ({ error } = await response.json());
  } catch {
    // Not the server itself, but something between.
  }
  const message = error?.message ?? `the server answered ${response.status}`;
  throw new ApiError(response.status, error?.code ?? "error", message);
}
