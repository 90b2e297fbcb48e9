// The panel of the trace: the scrubber, the list of macrosteps, and everything about the chosen one.

import { ApiError, explain, withConversation } from "./api.js";
import { byId, h, inWords, setText } from "./dom.js";
import { changesStates, fateOf } from "./trace.js";

const ASK_AFTER_MS = 150;
const CHOOSE = "Choose a macrostep, or click a line in the chart, to see its event, guards and actions.";

export class TraceView {
  constructor() {
    this.trace = null;
    this.lines = [];
    this.rows = new Map();
    this.told = null;
    this.asked = 0;
    this.list = byId("records");
    this.details = byId("details");
    byId("step-back").addEventListener("click", () => this.trace?.step(-1));
    byId("step-on").addEventListener("click", () => this.trace?.step(1));
    byId("live").addEventListener("click", () => this.trace?.goLive());
    byId("play").addEventListener("click", () => {
      if (!this.trace?.isPlaying) return this.trace?.play();
      this.trace.pause();
      this.draw();
    });
    byId("place").addEventListener("input", (event) => this.trace?.goTo(Number(event.target.value)));
    byId("only-changes").addEventListener("change", (event) => this.trace?.showOnlyChanges(event.target.checked));
    this.list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** How a state or a region is called. */
  nameOf(state) {
    return this.trace.header?.names[state] ?? state;
  }

  follow(trace) {
    this.trace = trace;
    trace.onlyChanges = byId("only-changes").checked;
    this.told = null;
    this.rows.clear();
    this.list.replaceChildren();
    byId("export").setAttribute("href", withConversation("/api/trace", trace.conversationId));
    this.draw();
  }

  draw() {
    const { trace } = this;
    const shown = trace.shown;
    const place = byId("place");
    place.max = String(shown.length);
    place.value = String(trace.place);
    place.setAttribute("aria-valuetext", `${trace.place} of ${shown.length}`);
    byId("live").setAttribute("aria-pressed", String(trace.isLive));
    const play = byId("play");
    setText(play, trace.isPlaying ? "❚❚" : "▶");
    play.setAttribute("aria-label", trace.isPlaying ? "Pause" : "Play");
    byId("step-back").disabled = trace.place === 0;
    byId("step-on").disabled = trace.place >= shown.length;
    play.disabled = shown.length === 0;
    this.#drawList(shown);
    this.#drawDetails();
  }

  /** About the lines of these rows, taken or not. */
  tellOfLines(rows) {
    const { trace } = this;
    const place = trace.chosen ?? Infinity;
    // The newest one up to here; else the next one.
    const took = trace.records
      .filter((record) => record.taken.some((taken) => rows.includes(taken.row)))
      .reduce((best, record) => (best !== null && record.number > place ? best : record), null);
    if (took !== null) {
      if (trace.onlyChanges && !changesStates(took)) byId("only-changes").click();
      trace.choose(took.number);
      return;
    }
    this.told = "lines";
    this.asked += 1;
    this.details.dataset.about = "lines";
    this.details.replaceChildren(
      h("h3", {}, "Not taken lately"),
      h("p", {}, "None of the macrosteps that are kept took a line that is drawn here. As declared:"),
      h("div", {}, ...rows.map((row) => this.lines[row]).filter(Boolean).map((line) => this.#declared(line))),
    );
  }

  // -- the list ---------------------------------------------------------------------------------------------------------

  #drawList(shown) {
    const wanted = new Set(shown.map((record) => record.number));
    for (const [number, row] of this.rows) {
      if (wanted.has(number)) continue;
      row.remove();
      this.rows.delete(number);
    }
    if (shown.length === 0 && this.list.childElementCount === 0) {
      this.list.replaceChildren(h("p", { class: "empty" }, "Nothing has happened yet."));
    } else if (shown.length > 0) {
      this.list.querySelector(".empty")?.remove();
    }
    const isAtEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 48;
    let before = null;
    for (const record of shown.toReversed()) {
      let row = this.rows.get(record.number);
      if (row === undefined) {
        row = this.#row(record);
        this.rows.set(record.number, row);
      }
      if (row.nextElementSibling !== before || row.parentElement === null) this.list.insertBefore(row, before);
      before = row;
    }
    const current = this.trace.isLive ? shown.at(-1) : this.trace.current;
    for (const row of this.list.querySelectorAll("[aria-selected='true']")) row.setAttribute("aria-selected", "false");
    const row = this.rows.get(current?.number);
    row?.setAttribute("aria-selected", "true");
    if (row === undefined) this.list.removeAttribute("aria-activedescendant");
    else this.list.setAttribute("aria-activedescendant", row.id);
    if (this.trace.isLive) {
      if (isAtEnd) this.list.scrollTop = this.list.scrollHeight;
    } else scrollInto(this.list, row ?? this.list.firstElementChild);
  }

  #row(record) {
    const row = h(
      "div",
      {
        class: "record",
        role: "option",
        id: `record-${record.number}`,
        "aria-selected": "false",
        "data-fate": fateOf(record),
        onclick: () => this.trace.choose(record.number),
      },
      h("span", { class: "number" }, String(record.number)),
      h("span", { class: "event" }, inWords(record.event)),
      h("span", { class: "when" }, `${this.trace.secondsOf(record).toFixed(2)} s`),
      h("span", { class: "moves" }, this.#moves(record)),
    );
    return row;
  }

  #moves(record) {
    const regions = this.trace.header?.regions ?? [];
    const moved = regions
      .map((region, place) => [region, record.before[place], record.after[place]])
      .filter(([, before, after]) => before !== after)
      .map(([region, before, after]) => `${this.nameOf(region)}: ${this.nameOf(before)} → ${this.nameOf(after)}`);
    if (moved.length > 0) return moved.join(" · ");
    return record.taken.length > 0 ? "acted, and stayed where it was" : "nothing reacted";
  }

  #onKey(event) {
    const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Home") this.trace.goTo(0);
    else if (event.key === "End") this.trace.goLive();
    else if (step !== undefined) this.trace.step(step);
    else return;
    event.preventDefault();
  }

  // -- the details ------------------------------------------------------------------------------------------------------

  #drawDetails() {
    const record = this.trace.current;
    if (this.trace.isLive) {
      if (this.told === "live") return;
      this.told = "live";
      this.asked += 1;
      this.details.dataset.about = "nothing";
      this.details.replaceChildren(
        h("p", { class: "empty" }, CHOOSE),
      );
      return;
    }
    const about = record?.number ?? "start";
    if (this.told === about) return;
    this.told = about;
    this.details.dataset.about = "macrostep";
    if (record === null) {
      this.details.replaceChildren(h("p", { class: "empty" }, "This is where the trace begins."));
      return;
    }
    this.#tell(record, null);
    this.#ask(record);
  }

  async #ask(record) {
    const asked = ++this.asked;
    // Whoever drags through the trace asks about the place where they stop.
    await new Promise((resolve) => setTimeout(resolve, ASK_AFTER_MS));
    if (asked !== this.asked) return;
    try {
      const explanation = await explain(this.trace.conversationId, record.number);
      if (asked === this.asked) this.#tell(record, explanation);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (asked === this.asked) this.details.append(h("p", { class: "hint" }, `No explanation: ${error.message}.`));
    }
  }

  #tell(record, explanation) {
    const { type, at, ...fact } = record.fact;
    const taken = record.taken.map((one) => ({ ...this.lines[one.row], ...one }));
    const tried = explanation?.tried ?? [];
    const followed = taken.filter((one) => !tried.some((line) => line.row === one.row));
    const facts = Object.entries({ fact: type, ...fact }).flatMap(([name, value]) => pair(name, value));
    const changed = JSON.stringify(record.delta, null, 1);
    this.details.replaceChildren(
      ...[
        h("h3", {}, `${record.number} · ${inWords(record.event)}`),
        explanation === null ? null : h("p", { class: "sentence" }, explanation.sentence),
        section("Event", h("dl", {}, ...facts)),
        tried.length === 0 ? null : section("Lines that were tried", ...tried.map((line) => this.#tried(line))),
        explanation?.judgement ? section("The interruption policy", h("p", {}, explanation.judgement)) : null,
        followed.length === 0
          ? null
          : section(
              explanation === null ? "Lines that were taken" : "And then, by what was decided",
              ...followed.map((line) => this.#declared(line)),
            ),
        record.actions.length === 0
          ? section("Actions", h("p", {}, "none"))
          : section("Actions", h("ol", { class: "actions" }, ...record.actions.map(actionOf))),
        h("details", {}, h("summary", {}, "What changed in the context"), h("pre", {}, changed)),
      ].filter((part) => part !== null),
    );
    this.details.scrollTop = 0;
  }

  #tried(line) {
    return h(
      "div",
      { class: line.enabled ? "line" : "line off" },
      h("p", { class: "path" }, this.#path(line.region, line.leaf, line.target), line.enabled ? "" : " (not taken)"),
      ...line.guards.map((guard) =>
        h(
          "div",
          { class: guard.held ? "guard held" : "guard failed" },
          h("span", { class: "mark" }, guard.held ? "✓ " : "✗ "),
          `${guard.wanted ? "" : "not "}${guard.name}: ${guard.answer ? "yes" : "no"}`,
          guard.looked_at.length === 0 ? null : h("div", { class: "looked" }, seenBy(guard)),
        ),
      ),
      line.guards.length === 0 ? h("p", {}, "without a guard") : null,
      line.enabled && line.actions.length > 0 ? h("p", {}, `does ${line.actions.join(", ")}`) : null,
    );
  }

  #declared(line) {
    const guards = line.guards ?? [];
    return h(
      "div",
      { class: "line" },
      h("p", { class: "path" }, this.#path(line.region, line.source, line.target)),
      h("p", {}, `on ${line.event ?? line.events.join(" or ")}`),
      guards.length === 0 ? null : h("p", {}, `if ${guards.join(" and ")}`),
      line.actions?.length > 0 ? h("p", {}, `does ${line.actions.join(", ")}`) : null,
    );
  }

  #path(region, from, to) {
    const start = region === from ? "" : this.nameOf(from);
    const way = to === null ? `stays${start && ` in ${start}`}` : `${start} → ${this.nameOf(to)}`.trim();
    return `${this.nameOf(region)}: ${way}`;
  }
}

function seenBy(guard) {
  return guard.looked_at.map(([name, value]) => `${name} = ${value}`).join(", ");
}

function section(title, ...children) {
  return h("div", {}, h("h4", {}, title), ...children);
}

function pair(name, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [h("dt", {}, name), h("dd", {}, text)];
}

function actionOf(action) {
  const { type, stamp, ...rest } = action;
  const name = type === "Publish" ? `Publish ${action.payload.type}` : type;
  const values = JSON.stringify({ ...rest, stamp }, null, 1);
  return h("li", {}, h("details", {}, h("summary", {}, name), h("pre", {}, values)));
}

function scrollInto(list, row) {
  if (!row) return;
  const top = row.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + row.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top + row.offsetHeight - list.clientHeight;
  }
}
