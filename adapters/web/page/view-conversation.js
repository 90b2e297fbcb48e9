// What was said: turns and replies, each drawn once and then changed in place.

import { byId, h, inWords, setText } from "./dom.js";
import { partsOf } from "./heard.js";

const NEAR_END_PX = 60;
const SOURCES = { client: "by a message or Stop", speech: "by speech", words: "by words", button: "by the button" };
const FATES = { never: " Not heard:", unsure: " Perhaps not heard:" };

export class ConversationView {
  constructor() {
    this.list = byId("entries");
    this.scroll = byId("scroll");
    this.views = new Map();
    this.order = "";
  }

  clear() {
    this.views.clear();
    this.order = "";
    this.list.replaceChildren();
  }

  draw(state) {
    const wasAtEnd = this.#isAtEnd();
    const keys = state.entries.map(keyOf);
    for (const [key, view] of this.views) {
      if (keys.includes(key)) continue;
      view.element.remove();
      this.views.delete(key);
    }
    state.entries.forEach((entry, place) => {
      const key = keys[place];
      let view = this.views.get(key);
      if (view === undefined) {
        view = entry.kind === "user" ? new UserView() : new ReplyView();
        this.views.set(key, view);
      }
      const there = this.list.children[place] ?? null;
      if (there !== view.element) this.list.insertBefore(view.element, there);
      view.draw(entry, state.playback);
    });
    byId("empty").hidden = state.entries.length > 0;
    byId("legend").hidden = !state.entries.some((entry) => entry.kind === "assistant" && hasVoice(entry));
    drawTasks(state.tasks);
    if (wasAtEnd) this.toEnd();
  }

  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  #isAtEnd() {
    return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < NEAR_END_PX;
  }
}

class UserView {
  constructor() {
    this.said = h("div", { class: "said", dir: "auto" });
    this.about = h("div", { class: "about" });
    this.who = h("span", { class: "who" });
    this.element = h("li", { class: "entry user" }, this.who, this.said, this.about);
  }

  draw(entry) {
    if (this.drawn === entry) return;
    this.drawn = entry;
    setText(this.who, entry.authority === "client" ? "You, in writing" : "You, spoken");
    setText(this.said, entry.text);
    this.about.replaceChildren(
      ...notes([
        entry.revision > 1 && ["", "went on, and was taken anew"],
        entry.status === "dropped" && ["warn", `will not be answered: ${inWords(entry.reason)}`],
      ]),
    );
  }
}

class ReplyView {
  constructor() {
    this.said = h("div", { class: "said", dir: "auto" });
    this.about = h("div", { class: "about" });
    this.tools = h("ul", { class: "tools", "aria-label": "Tools" });
    this.who = h("span", { class: "who" });
    this.element = h("li", { class: "entry assistant" }, this.who, this.tools, this.said, this.about);
  }

  draw(entry, playback) {
    const isHeardNow = playback !== null && playback.stream_id !== null && playback.stream_id === entry.stream_id;
    const sound = isHeardNow ? playback : null;
    if (this.drawn === entry && this.sound === sound) return;
    [this.drawn, this.sound] = [entry, sound];
    this.element.classList.toggle("announced", entry.announced);
    setText(this.who, entry.announced ? "Announcement" : "Assistant");
    this.#drawText(entry, sound);
    this.#drawAbout(entry, sound);
    this.#drawTools(entry.tools);
  }

  #drawText(entry, sound) {
    const parts = partsOf(entry, sound);
    const cut = entry.interrupted === null ? null : wordsOfCut(entry.interrupted);
    const at = cut === null ? -1 : endOfHeard(parts);
    const shape = parts.map((part) => part.fate).join() + at + (cut ?? "");
    if (shape !== this.shape) {
      this.shape = shape;
      this.spans = parts.map((part) => h("span", { class: `part ${part.fate}` }));
      const children = parts.flatMap((part, place) => [
        part.fate in FATES ? h("span", { class: "unseen" }, FATES[part.fate]) : null,
        this.spans[place],
      ]);
      if (cut !== null) {
        const mark = h("span", { class: "cut" }, cut);
        const place = at === parts.length ? children.length : at * 2;
        children.splice(place, 0, mark);
      }
      this.said.replaceChildren(...children.filter((child) => child !== null));
    }
    parts.forEach((part, place) => setText(this.spans[place], part.text));
  }

  #drawAbout(entry, sound) {
    const isOpen = entry.state === "running" || entry.state === "cancelling";
    const told = notes([
      entry.state === "running" && !entry.is_final && ["", entry.text === "" ? "thinking …" : "writing …"],
      entry.state === "cancelling" && ["warn", "being stopped …"],
      sound !== null && entry.delivery === null && ["", soundOf(sound)],
      entry.attempt > 1 && ["", `attempt ${entry.attempt}`],
      entry.state === "failed" && ["bad", `failed: ${inWords(entry.reason)}`],
      entry.state === "cancelled" && entry.interrupted === null && ["warn", `stopped: ${inWords(entry.reason)}`],
      entry.delivery !== null && !isOpen && deliveryOf(entry, sound),
      sound !== null && sound.underruns > 0 && ["warn", `${sound.underruns} gaps in the sound`],
    ]);
    const shape = told.map((note) => note.textContent).join("|");
    if (shape === this.aboutShape) return;
    this.aboutShape = shape;
    this.about.replaceChildren(...told);
  }

  #drawTools(tools) {
    if (this.drawnTools === tools) return;
    this.drawnTools = tools;
    this.tools.replaceChildren(...tools.map(toolOf));
  }
}

function keyOf(entry) {
  return entry.kind === "user" ? `u ${entry.turn_id}` : `a ${entry.response_id}`;
}

function hasVoice(entry) {
  return entry.stream_id !== null || entry.units.length > 0;
}

/** `[class, text]` for each that applies. */
function notes(those) {
  return those.filter(Boolean).map(([name, text]) => h("span", { class: name === "" ? null : name }, text));
}

function wordsOfCut({ source, reason }) {
  const by = SOURCES[source] ?? `by ${inWords(source)}`;
  return reason === "asked_for" || reason === "" ? `■ interrupted ${by}` : `■ interrupted ${by}: ${inWords(reason)}`;
}

/** Before which part the interruption stands. */
function endOfHeard(parts) {
  const place = parts.findIndex((part) => ["ahead", "never", "unsure"].includes(part.fate));
  return place === -1 ? parts.length : place;
}

function soundOf(sound) {
  const says = { buffering: "about to be heard", playing: "being said", drained: "said" };
  return `${says[sound.state] ?? sound.state}${secondsOf(sound)}`;
}

function secondsOf(sound) {
  if (!sound?.sample_rate_hz || !sound.played_samples) return "";
  return `, ${(sound.played_samples / sound.sample_rate_hz).toFixed(1)} s`;
}

function deliveryOf(entry, sound) {
  const { status, played_samples: played } = entry.delivery;
  const seconds = sound === null ? "" : secondsOf({ ...sound, played_samples: played });
  if (status === "delivered") return ["", `heard to its end${seconds}`];
  if (status === "interrupted" && hasVoice(entry)) return ["warn", `heard in part${seconds}`];
  if (status === "unknown") return ["warn", "nobody can tell how much was heard"];
  if (status === "failed") return ["bad", `was not heard to its end${seconds}`];
  return null;
}

function toolOf(tool) {
  const isRunning = tool.state === "running";
  return h(
    "li",
    { class: "tool", "data-how": tool.state },
    h("b", {}, tool.name),
    h("span", { class: "how" }, `${markOf(tool.state)} ${wordsOfTool(tool)}`),
    isRunning ? progressOf(tool) : null,
    typeof tool.progress?.message === "string" ? h("span", { class: "how" }, tool.progress.message) : null,
  );
}

/** The call of a background tool ends when its task is queued; the task has a line of its own. */
function wordsOfTool(tool) {
  if (!tool.background) return inWords(tool.state);
  return tool.state === "completed" ? "goes on in the background" : `${inWords(tool.state)}, in the background`;
}

function progressOf(tool) {
  const fraction = tool.progress?.fraction;
  const value = typeof fraction === "number" ? String(fraction) : null;
  return h("progress", { max: "1", value, "aria-label": `${tool.name}: how far it is` });
}

function markOf(state) {
  return { completed: "✓", failed: "✗", cancelled: "■", unknown: "?" }[state] ?? "…";
}

function drawTasks(tasks) {
  const place = byId("tasks");
  place.hidden = tasks.length === 0;
  const list = place.querySelector("ul");
  if (list.drawn === tasks) return;
  list.drawn = tasks;
  list.replaceChildren(
    ...tasks.map((task) =>
      h(
        "li",
        { class: "task", "data-how": task.state },
        h("b", {}, task.name),
        h("span", { class: "how" }, `${markOf(task.state)} ${inWords(task.state)}`),
        task.state === "running" ? h("progress", { "aria-label": `${task.name} is running` }) : null,
      ),
    ),
  );
}
