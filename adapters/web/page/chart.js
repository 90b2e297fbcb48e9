// The picture of the chart: which states are lit, which lines were taken, and what belongs to a click on a line.

const LABEL = "g.node[class*='row_']";
const FLASH_MS = 1_000;
const ZOOMS = [0.6, 0.8, 1, 1.25, 1.6, 2];

export class ChartPicture {
  /** `onLines(rows)`: somebody wants to know of the lines of these rows. */
  constructor(place, { onLines }) {
    this.place = place;
    this.onLines = onLines;
    this.svg = null;
    this.parents = new Map();
    this.regions = new Set();
    this.lines = [];
    this.names = new Map();
    this.zoom = null;
  }

  /** `chart` as the interface describes it, `svg` its picture. */
  show(chart, svg) {
    this.svg = document.importNode(svg, true);
    this.parents = new Map(chart.states.map((state) => [state.id, state.parent]));
    this.regions = new Set(chart.states.map((state) => state.region));
    this.names = new Map(chart.states.map((state) => [state.id, state.name]));
    this.lines = chart.transitions;
    this.svg.querySelector("title")?.remove();
    this.svg.querySelector("#graph0 > polygon")?.remove();
    this.natural = { width: this.svg.viewBox.baseVal.width, height: this.svg.viewBox.baseVal.height };
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    // An image has no parts for whoever cannot see it; the labels of the lines are buttons.
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "The chart. Arrow keys go from line to line, Enter tells about one.");
    this.#makeButtons();
    this.place.replaceChildren(this.svg);
    this.resize(this.zoom);
  }

  /** The active leaves, and the rows of the lines that led there. */
  light(leaves, rows) {
    if (this.svg === null) return;
    this.#mark("lit", leaves.map((leaf) => `state_${leaf}`));
    const around = leaves.flatMap((leaf) => this.#ancestors(leaf)).map((state) => `state_${state}`);
    this.#mark("lit-around", around);
    for (const element of this.svg.querySelectorAll(".taken")) element.classList.remove("taken");
    for (const element of this.#ofRows(rows)) element.classList.add("taken");
  }

  /** Draw attention to lines that are being taken. */
  flash(rows) {
    if (this.svg === null) return;
    for (const element of this.#ofRows(rows)) {
      element.classList.remove("flash");
      element.getBoundingClientRect();
      element.classList.add("flash");
      // Not at the end of the animation: that of a picture that is not shown never ends.
      setTimeout(() => element.classList.remove("flash"), FLASH_MS);
    }
  }

  /** Which leaves are lit. */
  get lit() {
    const lit = this.svg?.querySelectorAll(".lit") ?? [];
    return Array.from(lit, (element) => element.id.slice("state_".length));
  }

  nameOf(state) {
    return this.names.get(state) ?? state;
  }

  /** null: as large as there is room. */
  resize(zoom) {
    this.zoom = zoom;
    this.place.classList.toggle("zoomed", zoom !== null);
    if (this.svg === null) return;
    // Of the picture's points there are three to four of the screen.
    this.svg.style.width = zoom === null ? "" : `${(this.natural.width * 4 * zoom) / 3}px`;
    this.svg.style.height = zoom === null ? "" : `${(this.natural.height * 4 * zoom) / 3}px`;
  }

  larger() {
    const now = this.#scale();
    this.resize(ZOOMS.find((zoom) => zoom > now * 1.05) ?? ZOOMS.at(-1));
  }

  smaller() {
    const now = this.#scale();
    this.resize(ZOOMS.findLast((zoom) => zoom < now * 0.95) ?? ZOOMS[0]);
  }

  #scale() {
    if (this.zoom !== null || this.svg === null) return this.zoom ?? 1;
    const box = this.svg.getBoundingClientRect();
    return (Math.min(box.width / this.natural.width, box.height / this.natural.height) * 3) / 4;
  }

  /** The states between a leaf and its region, which is always active. */
  #ancestors(leaf) {
    const found = [];
    for (let state = this.parents.get(leaf); !this.regions.has(state) && state; state = this.parents.get(state)) {
      found.push(state);
    }
    return found;
  }

  #mark(name, ids) {
    const wanted = new Set(ids);
    for (const element of this.svg.querySelectorAll(`.${name}`)) {
      if (!wanted.has(element.id)) element.classList.remove(name);
    }
    for (const id of wanted) this.svg.querySelector(`#${CSS.escape(id)}`)?.classList.add(name);
  }

  #ofRows(rows) {
    return rows.flatMap((row) => Array.from(this.svg.querySelectorAll(`.row_${Number(row)}`)));
  }

  /** One of the labels is in the order of focus; arrow keys go to the others. */
  #makeButtons() {
    const labels = Array.from(this.svg.querySelectorAll(LABEL));
    labels.forEach((label, place) => {
      const rows = rowsOf(label);
      label.setAttribute("role", "button");
      label.setAttribute("tabindex", place === 0 ? "0" : "-1");
      label.setAttribute("aria-label", this.#spoken(rows));
      label.addEventListener("click", () => this.onLines(rows));
      label.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Enter" || event.key === " ") this.onLines(rows);
        else if (step === undefined) return;
        else {
          const next = labels[(place + step + labels.length) % labels.length];
          label.setAttribute("tabindex", "-1");
          next.setAttribute("tabindex", "0");
          next.focus();
        }
        event.preventDefault();
      });
    });
    for (const edge of this.svg.querySelectorAll("g.edge[class*='row_']")) {
      edge.addEventListener("click", () => this.onLines(rowsOf(edge)));
    }
  }

  #spoken(rows) {
    return rows
      .map((row) => this.lines[row])
      .filter((line) => line !== undefined)
      .map((line) => `${line.events.join(" or ")}: ${this.nameOf(line.source)} to ${this.nameOf(line.target)}`)
      .filter((text, place, all) => all.indexOf(text) === place)
      .join("; ");
  }
}

function rowsOf(element) {
  return Array.from(element.classList)
    .filter((name) => name.startsWith("row_"))
    .map((name) => Number(name.slice("row_".length)));
}
