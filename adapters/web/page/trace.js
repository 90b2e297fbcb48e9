// The newest macrosteps, and the place in them that is looked at.

import { Feed } from "./feed.js";
import { withConversation } from "./api.js";

export const KEPT_RECORDS = 512;
const STEP_MS = 650;

/** What became of the fact of a record, as far as the record alone tells. */
export function fateOf(record) {
  return record.taken.length > 0 ? "accepted" : "ignored";
}

export function changesStates(record) {
  return record.before.some((leaf, place) => leaf !== record.after[place]);
}

export class Trace {
  /** `onRecord(record)`: one more, while live. `onChange()`: anything else changed. */
  constructor(conversationId, { onRecord, onChange, onRefused }) {
    this.conversationId = conversationId;
    this.header = null;
    this.records = [];
    this.onlyChanges = true;
    this.chosen = null;
    this.timer = null;
    this.onRecord = onRecord;
    this.onChange = onChange;
    this.feed = new Feed(withConversation("/api/trace/stream", conversationId), {
      onEvent: (event) => this.#take(event),
      onRefused,
    });
  }

  /** The records that are shown. */
  get shown() {
    return this.onlyChanges ? this.records.filter(changesStates) : this.records;
  }

  get isLive() {
    return this.chosen === null;
  }

  get isPlaying() {
    return this.timer !== null;
  }

  /** The record that is looked at: the chosen one, or the newest one; null before the first one, and at the start. */
  get current() {
    if (this.chosen === null) return this.records.at(-1) ?? null;
    return this.records.find((record) => record.number === this.chosen) ?? null;
  }

  /** The active states at the place that is looked at, in the order of `header.regions`. */
  get leaves() {
    const current = this.current;
    if (current !== null) return current.after;
    return this.records[0]?.before ?? this.header?.start.leaves ?? [];
  }

  /** How many of the shown records lie at or before the place: 0 at the start. */
  get place() {
    if (this.chosen === null) return this.shown.length;
    return this.shown.filter((record) => record.number <= this.chosen).length;
  }

  /** Seconds since the first record that is kept. */
  secondsOf(record) {
    return (record.at - this.records[0].at) / 1e9;
  }

  /** Look at one macrostep; `number` 0 is the start. */
  choose(number) {
    this.pause();
    this.chosen = number;
    this.onChange();
  }

  goTo(place) {
    this.choose(place === 0 ? 0 : this.shown[Math.min(place, this.shown.length) - 1].number);
  }

  step(by) {
    const shown = this.shown;
    if (shown.length === 0) return;
    this.goTo(Math.max(0, Math.min(shown.length, this.place + by)));
  }

  goLive() {
    this.pause();
    this.chosen = null;
    this.onChange();
  }

  /** From the place on, or from the start when there is nothing behind it; live again at the end. */
  play() {
    if (this.shown.length === 0) return;
    if (this.chosen === null || this.place >= this.shown.length) this.chosen = 0;
    this.timer = setInterval(() => {
      const next = this.shown[this.place];
      if (next === undefined) return this.goLive();
      this.chosen = next.number;
      this.onChange();
    }, STEP_MS);
    this.onChange();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
  }

  showOnlyChanges(isWanted) {
    this.onlyChanges = isWanted;
    this.onChange();
  }

  stop() {
    this.pause();
    this.feed.stop();
  }

  #take(event) {
    if (event.type === "trace.start") {
      this.pause();
      this.header = event.payload;
      this.records = [];
      this.chosen = null;
      this.onChange();
      return;
    }
    const record = event.payload;
    if (event.type !== "trace.record" || record.number <= (this.records.at(-1)?.number ?? 0)) return;
    this.records.push(record);
    if (this.records.length > KEPT_RECORDS) this.records.shift();
    if (this.chosen > 0 && this.chosen < this.records[0].number) this.chosen = this.records[0].number;
    this.onRecord(record);
  }
}
