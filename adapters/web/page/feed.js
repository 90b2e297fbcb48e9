// One stream of server-sent events that comes back by itself, behind the last event that it gave out.
//
// The browser's own EventSource is closed at the first trouble and made anew: it would not come back after an answer
// that is no stream (a server that is starting, a token that has run out), and would not say what it is doing.

const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000];
const CURSOR = /^([0-9]{1,16}):([0-9]{1,16})$/;

/** "epoch:sequence" as two numbers; null for what is no cursor. */
export function parseCursor(text) {
  const found = CURSOR.exec(text ?? "");
  return found === null ? null : { epoch: Number(found[1]), sequence: Number(found[2]) };
}

/** Whether cursor `one` is at or before cursor `other`. */
export function isBehind(one, other) {
  return one.epoch < other.epoch || (one.epoch === other.epoch && one.sequence <= other.sequence);
}

export class Feed {
  /**
   * `onEvent(value, cursor)`: one event, and the cursor behind it where it has one. `onStatus({state, waitMs})`, state:
   * "connecting", "open" or "waiting". `onRefused()`: an answer that is no stream; it may find out why, and returns
   * whether to go on trying.
   */
  constructor(path, { onEvent, onStatus = () => {}, onRefused = async () => true }) {
    this.path = path;
    this.cursor = null;
    this.onEvent = onEvent;
    this.onStatus = onStatus;
    this.onRefused = onRefused;
    this.failures = 0;
    this.source = null;
    this.timer = null;
    this.isStopped = true;
  }

  start() {
    if (!this.isStopped) return;
    this.isStopped = false;
    this.#connect();
  }

  stop() {
    this.isStopped = true;
    this.#leave();
  }

  /** At once, without waiting for its turn. */
  hurry() {
    if (!this.isStopped && this.timer !== null) this.#connect();
  }

  /** Leave the connection, of which nobody can tell whether it lives, for another one. */
  renew() {
    if (!this.isStopped) this.#connect();
  }

  /** Everything anew: the server is asked for a snapshot. */
  resync() {
    this.cursor = null;
    this.renew();
  }

  #connect() {
    this.#leave();
    this.onStatus({ state: "connecting", waitMs: 0 });
    const after = this.cursor === null ? "" : `&after=${this.cursor}`;
    const source = new EventSource(this.path + after);
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      this.onStatus({ state: "open", waitMs: 0 });
    };
    source.onmessage = (message) => {
      if (this.source !== source) return;
      const at = message.lastEventId;
      if (CURSOR.test(at)) this.cursor = at;
      const value = JSON.parse(message.data);
      if (value.type === "resync_required") this.resync();
      else this.onEvent(value, parseCursor(at));
    };
    source.onerror = async () => {
      if (this.source !== source) return;
      const wasRefused = source.readyState === EventSource.CLOSED;
      this.#leave();
      this.#wait();
      if (wasRefused && !(await this.onRefused())) this.stop();
    };
  }

  #wait() {
    const waitMs = WAITS_MS[Math.min(this.failures, WAITS_MS.length - 1)];
    this.failures += 1;
    this.onStatus({ state: "waiting", waitMs });
    this.timer = setTimeout(() => this.#connect(), waitMs);
  }

  #leave() {
    clearTimeout(this.timer);
    this.timer = null;
    this.source?.close();
    this.source = null;
  }
}
