// One conversation as the page knows it: the folded state, and the cursor behind its last event.

import { emptyState, fold } from "./fold.js";
import { Feed, isBehind, parseCursor } from "./feed.js";
import { withConversation } from "./api.js";

export class Conversation {
  /** `onChange(state, event)` after every event; `onStatus` and `onRefused` as for a `Feed`. */
  constructor(conversationId, { onChange, onStatus, onRefused }) {
    this.conversationId = conversationId;
    this.state = emptyState();
    this.at = null;
    this.isKnown = false;
    this.counts = { folded: 0, repeated: 0, snapshots: 0 };
    this.onChange = onChange;
    this.feed = new Feed(withConversation("/api/events", conversationId), {
      onEvent: (event) => this.#take(event),
      onStatus,
      onRefused,
    });
  }

  get cursor() {
    return this.at === null ? null : `${this.at.epoch}:${this.at.sequence}`;
  }

  /** The newest reply that is not over: what a cancel would mean. */
  get openReply() {
    const entry = this.state.entries.findLast((one) => one.kind === "assistant");
    if (entry === undefined) return null;
    const isOver = entry.delivery !== null && !["running", "cancelling"].includes(entry.state);
    return isOver ? null : entry;
  }

  #take(event) {
    if (event.type === "snapshot") {
      const isAnother = this.at !== null && parseCursor(event.payload.watermark).epoch !== this.at.epoch;
      this.at = parseCursor(event.payload.watermark);
      this.counts.snapshots += 1;
      this.isKnown = true;
      this.state = fold(this.state, event);
      this.onChange(this.state, event, { isAnother });
      return;
    }
    const at = { epoch: event.session_epoch, sequence: event.sequence };
    if (this.at !== null && isBehind(at, this.at)) {
      this.counts.repeated += 1;
      return;
    }
    this.at = at;
    this.counts.folded += 1;
    this.state = fold(this.state, event);
    this.onChange(this.state, event, { isAnother: false });
  }
}
