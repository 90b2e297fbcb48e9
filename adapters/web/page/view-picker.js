// Which conversations there are, and which one is looked at. It stands in the address behind "#".

import { byId, h } from "./dom.js";

const LISTED_EVERY_MS = 15_000;
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

export class Picker {
  /** `list()`: the conversations that are served. `onChoose(conversationId)`. */
  constructor({ list, onChoose }) {
    this.list = list;
    this.onChoose = onChoose;
    this.chosen = null;
    this.served = [];
    this.ended = new Set();
    this.select = byId("picker");
    this.select.addEventListener("change", () => this.choose(this.select.value));
    this.select.addEventListener("focus", () => this.refresh());
    byId("begin").addEventListener("click", () => {
      this.choose(newName());
      byId("message").focus();
    });
    addEventListener("hashchange", () => {
      const name = nameInAddress();
      if (name !== null && name !== this.chosen) this.choose(name);
    });
    setInterval(() => {
      if (!document.hidden && this.chosen !== null) this.refresh();
    }, LISTED_EVERY_MS);
  }

  /** The one that the address names, or the first one. */
  begin(served) {
    this.#show(served);
    this.choose(nameInAddress() ?? served[0]?.conversation_id ?? newName());
  }

  choose(conversationId) {
    this.chosen = conversationId;
    if (nameInAddress() !== conversationId) history.replaceState(null, "", `#${encodeURIComponent(conversationId)}`);
    this.#show(this.served);
    this.onChoose(conversationId);
  }

  /** It was served, and is no more. */
  noteEnd(conversationId) {
    this.ended.add(conversationId);
    this.#show(this.served);
  }

  isServed(conversationId) {
    return this.served.some((line) => line.conversation_id === conversationId);
  }

  lineOf(conversationId) {
    return this.served.find((line) => line.conversation_id === conversationId) ?? null;
  }

  /** Ask again what is served. A server that does not answer changes nothing here: the status says it. */
  async refresh() {
    try {
      this.#show(await this.list());
    } catch {
      // Told by whoever follows the conversation.
    }
  }

  #show(served) {
    this.served = served;
    const session = this.ended.has(this.chosen) ? "closed" : "new";
    const isListed = this.isServed(this.chosen) || this.chosen === null;
    const lines = isListed ? served : [...served, { conversation_id: this.chosen, kind: "text", session }];
    const shape = JSON.stringify([lines.map((line) => [line.conversation_id, line.kind, line.session]), this.chosen]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.select.replaceChildren(...lines.map((line) => this.#option(line)));
    this.select.value = this.chosen ?? "";
  }

  #option(line) {
    const kind = line.kind === "voice" ? "voice" : "in writing";
    const how = { new: ", new", closed: ", ended", closing: ", ending" }[line.session] ?? "";
    return h("option", { value: line.conversation_id }, `${line.conversation_id} (${kind}${how})`);
  }
}

function nameInAddress() {
  try {
    const name = decodeURIComponent(location.hash.slice(1));
    return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : null;
  } catch {
    return null;
  }
}

function newName() {
  const letters = crypto.getRandomValues(new Uint8Array(6));
  return `chat-${Array.from(letters, (byte) => LETTERS[byte % LETTERS.length]).join("")}`;
}
