// Where messages are written: sending one while a reply goes on interrupts it, Escape stops the reply alone.

import { ApiError, cancel, chat } from "./api.js";
import { byId, setText } from "./dom.js";

const HINT = "Enter sends, Shift+Enter begins a new line, Escape stops the reply.";
const HINT_OPEN = "A reply goes on: sending interrupts it, Escape stops it.";

export class Composer {
  /** `onTaken(conversationId)`: the server has taken a message. `onRefused()`: it wants the token. */
  constructor({ onTaken, onRefused }) {
    this.onTaken = onTaken;
    this.onRefused = onRefused;
    this.conversation = null;
    this.isClosed = false;
    this.drafts = new Map();
    this.text = byId("message");
    this.send = byId("send");
    this.stop = byId("stop");
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.text.addEventListener("keydown", (event) => {
      // While an input method composes, Enter chooses a character.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.#send();
    });
    this.text.addEventListener("input", () => this.#grow());
    this.stop.addEventListener("click", () => this.#stop());
    document.addEventListener("keydown", (event) => {
      const isElsewhere = event.target instanceof Element && event.target.closest("dialog, select") !== null;
      if (event.key === "Escape" && !event.isComposing && !isElsewhere) this.#stop();
    });
  }

  follow(conversation) {
    // What was written before the first conversation was there belongs to it.
    const first = this.conversation === null ? this.text.value : "";
    if (this.conversation !== null) this.drafts.set(this.conversation.conversationId, this.text.value);
    this.conversation = conversation;
    this.text.value = this.drafts.get(conversation.conversationId) ?? first;
    this.#grow();
    this.#tell("");
    this.draw();
  }

  draw() {
    const { openReply, state } = this.conversation;
    this.isClosed = state.session.state === "closed" || state.session.state === "closing";
    const canStop = openReply !== null && openReply.state !== "cancelling" && !this.isClosed;
    if (this.stop.disabled === canStop) {
      if (!canStop && document.activeElement === this.stop) this.text.focus();
      this.stop.disabled = !canStop;
    }
    this.send.disabled = this.isClosed;
    setText(byId("hint"), canStop ? HINT_OPEN : HINT);
  }

  async #send() {
    const text = this.text.value;
    if (this.conversation === null || text.trim() === "" || this.isClosed) return;
    const { conversationId } = this.conversation;
    this.text.value = "";
    this.#grow();
    this.#tell("");
    let wasTaken = false;
    try {
      await chat(conversationId, text, () => {
        wasTaken = true;
        this.onTaken(conversationId);
      });
    } catch (error) {
      // Once taken, what becomes of it is told by events, also when this connection breaks.
      if (wasTaken) return;
      if (!(error instanceof ApiError)) throw error;
      if (this.text.value === "" && this.conversation.conversationId === conversationId) this.text.value = text;
      this.#grow();
      this.#refused(error, "Not sent");
    }
  }

  async #stop() {
    const reply = this.conversation?.openReply ?? null;
    if (reply === null || reply.state === "cancelling") return;
    try {
      await cancel(this.conversation.conversationId, reply.run_id);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code !== "already_over" && error.code !== "no_such_run") this.#refused(error, "Not stopped");
    }
  }

  #refused(error, what) {
    if (error.status === 401) this.onRefused();
    this.#tell(`${what}: ${error.message}.`);
  }

  #tell(problem) {
    const place = byId("problem");
    place.hidden = problem === "";
    setText(place, problem);
  }

  /** As high as the text, where the browser does not do that by itself. */
  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight + 2}px`;
  }
}
