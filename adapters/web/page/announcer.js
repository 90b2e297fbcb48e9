// What screen readers are told: whole sentences when they are there, never every token and every hypothesis.

import { byId } from "./dom.js";

export class Announcer {
  constructor() {
    this.place = byId("announcer");
  }

  /** After an event that was folded. */
  hear(state, event) {
    const text = this.#spoken(state, event);
    if (text === null) return;
    const line = document.createElement("p");
    line.textContent = text;
    this.place.append(line);
    while (this.place.childElementCount > 3) this.place.firstElementChild.remove();
  }

  #spoken(state, event) {
    switch (event.type) {
      case "turn.committed":
        return event.payload.authority === "client" ? null : `You: ${event.payload.text}`;
      case "text.final": {
        const reply = state.entries.findLast((entry) => entry.response_id === event.response_id);
        return reply === undefined ? null : `${reply.announced ? "Announcement" : "Assistant"}: ${event.payload.text}`;
      }
      case "interruption.accepted":
        return "The reply was interrupted.";
      case "tool.failed":
        return "A tool failed.";
      case "session.reconnecting":
        return "The session reconnects.";
      case "session.closed":
        return "The session has ended.";
      case "stream.error":
        return `Problem: ${event.payload.error.message}`;
      default:
        return null;
    }
  }
}
