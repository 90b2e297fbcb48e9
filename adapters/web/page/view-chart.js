// The panel of the chart: the picture, and the active states in words.

import { byId, h, setText } from "./dom.js";
import { ChartPicture } from "./chart.js";

export class ChartView {
  constructor({ onLines }) {
    this.picture = new ChartPicture(byId("picture"), { onLines });
    this.regions = [];
    this.words = new Map();
    byId("zoom-fit").addEventListener("click", () => this.#resize(() => this.picture.resize(null)));
    byId("zoom-in").addEventListener("click", () => this.#resize(() => this.picture.larger()));
    byId("zoom-out").addEventListener("click", () => this.#resize(() => this.picture.smaller()));
  }

  show(chart, svg) {
    this.regions = chart.states.filter((state) => state.parent !== null && state.region === state.id);
    this.words = new Map(this.regions.map((region) => [region.id, h("dd", {}, "–")]));
    byId("regions").replaceChildren(
      ...this.regions.map((region) => h("div", {}, h("dt", {}, region.name), this.words.get(region.id))),
    );
    this.picture.show(chart, svg);
  }

  /** How the chart stands at the place of the trace that is looked at. */
  draw(trace) {
    const { leaves, current } = trace;
    const order = trace.header?.regions ?? [];
    order.forEach((region, place) => {
      const word = this.words.get(region);
      if (word !== undefined && leaves[place] !== undefined) setText(word, this.picture.nameOf(leaves[place]));
    });
    // Live, the lines that were taken last stay marked while macrosteps come that change no state.
    const marked = trace.isLive ? trace.shown.at(-1) : current;
    this.picture.light(leaves, marked?.taken.map((taken) => taken.row) ?? []);
    const mode = byId("chart-mode");
    mode.dataset.mode = trace.isLive ? "live" : "past";
    const past = current === null ? "before the first macrostep" : `after macrostep ${current.number}`;
    setText(mode, trace.isLive ? "" : past);
  }

  /** Why there is nothing to see. */
  tell(text) {
    byId("regions").replaceChildren();
    byId("picture").replaceChildren(h("p", { class: "empty" }, text));
  }

  #resize(change) {
    change();
    byId("zoom-fit").setAttribute("aria-pressed", String(this.picture.zoom === null));
  }
}
