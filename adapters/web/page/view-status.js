// How it stands with the connection, in one line; and what else people have to know.

import { byId, h, inWords, setText } from "./dom.js";

export class StatusView {
  constructor() {
    this.wasLost = false;
    this.dismissed = null;
    this.shape = "";
  }

  connection({ state, waitMs }) {
    if (state === "waiting") {
      this.wasLost = true;
      this.#tell("waiting", `Connection lost. Trying again in ${waitMs < 1000 ? "a moment" : `${waitMs / 1000} s`} …`);
    } else if (state === "open") {
      this.#tell("open", this.wasLost ? "Connected again" : "Connected");
    } else if (!this.wasLost) this.#tell("connecting", "Connecting …");
  }

  /** What came after a lost connection: the missed events, or a snapshot of another life of the server. */
  resumed({ isSnapshot, isAnother }) {
    if (!this.wasLost) return;
    this.wasLost = false;
    if (isAnother) this.#tell("open", "Connected again: the server was restarted, and this is what it knows");
    else if (isSnapshot) this.#tell("open", "Connected again, with a fresh snapshot");
    else this.#tell("open", "Connected again, nothing was missed");
  }

  draft() {
    this.wasLost = false;
    this.#tell("open", "A new conversation: it begins with your first message");
  }

  begin() {
    this.wasLost = false;
    this.#tell("connecting", "Connecting …");
  }

  ended() {
    this.#tell("stopped", "This conversation has ended");
  }

  needsToken() {
    this.#tell("stopped", "The server asks for its token");
  }

  /** Notices above the conversation: what failed, what does not work here, how the session stands. */
  draw(state) {
    const { session, error } = state;
    const notices = [];
    const because = session.reason === "" ? "" : `: ${inWords(session.reason)}`;
    const says = {
      reconnecting: `The session reconnects${because}.`,
      closing: "The session is closing.",
      closed: `The session has ended${because}.`,
    }[session.state];
    if (says !== undefined) notices.push(["", says]);
    if (session.degradations.length > 0) {
      notices.push(["", `Not everything works here: ${session.degradations.map(inWords).join("; ")}.`]);
    }
    const problem = error === null ? null : JSON.stringify(error);
    if (problem !== null && problem !== this.dismissed) {
      const where = [error.stage, error.code].filter(Boolean).map(inWords).join(", ");
      notices.push(["bad", `${error.message}${where ? ` (${where})` : ""}`, problem]);
    }
    const shape = JSON.stringify(notices);
    if (shape === this.shape) return;
    this.shape = shape;
    byId("notices").replaceChildren(...notices.map((notice) => this.#notice(state, ...notice)));
  }

  #notice(state, kind, text, problem = null) {
    const dismiss = () => {
      this.dismissed = problem;
      this.draw(state);
    };
    return h(
      "p",
      { class: `notice ${kind}` },
      h("span", {}, text),
      problem === null
        ? null
        : h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: dismiss }, "✕"),
    );
  }

  #tell(state, text) {
    const place = byId("status");
    place.dataset.state = state;
    setText(place, text);
  }
}
