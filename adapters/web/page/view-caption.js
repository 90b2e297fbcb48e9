// What the user is saying, as far as it is recognised. A hypothesis may change: what a newer one says otherwise is
// marked, and what stood there before is struck out, until the next one comes.

import { byId, h, setText } from "./dom.js";

const SAYS = {
  listening: "Listening …",
  hypothesis: "Hearing, may still change",
  final: "Heard",
  discarded: "Not meant for a turn, discarded",
};

/**
 * How one text becomes another one: `{kept, removed, revised, added}`, by whole words, or by characters where words are
 * not spaced. Text that only grows is added; text that replaces other text is revised.
 */
export function revision(before, after) {
  const old = piecesOf(before);
  const now = piecesOf(after);
  let same = 0;
  while (same < old.length && same < now.length && old[same] === now[same]) same += 1;
  const removed = old.slice(same).join("");
  const rest = now.slice(same);
  const replaced = removed.trim() === "" ? 0 : old.length - same;
  return {
    kept: now.slice(0, same).join(""),
    removed,
    revised: rest.slice(0, replaced).join(""),
    added: rest.slice(replaced).join(""),
  };
}

const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}";
const PIECES = new RegExp(`[${UNSPACED}]|\\s+|[^\\s${UNSPACED}]+`, "gu");

function piecesOf(text) {
  return text.match(PIECES) ?? [];
}

export class CaptionView {
  constructor() {
    this.shown = null;
  }

  draw(caption) {
    const isOpen = caption !== null && caption.state in SAYS;
    const before = this.shown;
    this.shown = isOpen ? caption : null;
    const place = byId("caption");
    place.hidden = !isOpen;
    if (!isOpen || caption === before) return;
    place.dataset.state = caption.state;
    setText(byId("caption-state"), SAYS[caption.state]);
    const isSame = before !== null && before.turn_id === caption.turn_id && before.segment_id === caption.segment_id;
    const text = byId("caption-text");
    if (isSame && before.text === caption.text) return;
    const { kept, removed, revised, added } = revision(isSame ? before.text : "", caption.text);
    text.replaceChildren(
      ...[
        kept,
        removed.trim() === "" ? null : h("del", {}, removed.trim()),
        revised === "" ? null : h("ins", { class: "revised" }, revised),
        added === "" ? null : h("span", { class: "added" }, added),
      ].filter((part) => part !== null),
    );
    place.scrollTop = place.scrollHeight;
  }
}
