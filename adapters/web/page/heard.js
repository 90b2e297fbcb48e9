// What of a reply was generated, and what of it was heard. Two things: a model writes ahead of the voice, and whoever
// interrupts has not heard the rest.

/**
 * The text of a reply in parts, in order: `{text, fate}`.
 *
 * fate: "shown"  it is read, not heard: there is no voice
 *       "heard"  it was played
 *       "now"    the unit that is being said, behind what was heard of it
 *       "ahead"  written, and still to be said
 *       "never"  written, and never heard
 *       "unsure" nobody can tell: the speaker did not say how far it came
 */
export function partsOf(entry, playback) {
  const chars = Array.from(entry.text);
  const whole = (fate) => (chars.length === 0 ? [] : [{ text: entry.text, fate }]);
  const status = entry.delivery?.status ?? null;
  const hasVoice = entry.stream_id !== null || entry.units.length > 0;
  if (status === "text_only" || (!hasVoice && status !== "unknown")) return whole("shown");
  if (status === "delivered") return whole("heard");
  const played = playedSamples(entry, playback);
  if (played === null) return whole("unsure");
  const reached = reach(entry.units, chars, played, status === null);
  const [heardTo, saidTo] = [behindSpace(chars, reached.heardTo), behindSpace(chars, reached.saidTo)];
  const rest = status === null ? "ahead" : status === "unknown" ? "unsure" : "never";
  return [
    { text: chars.slice(0, heardTo).join(""), fate: "heard" },
    { text: chars.slice(heardTo, saidTo).join(""), fate: "now" },
    { text: chars.slice(saidTo).join(""), fate: rest },
  ].filter((part) => part.text !== "");
}

/** Samples of the reply's stream that were played; null where nobody knows. */
function playedSamples(entry, playback) {
  if (entry.delivery !== null) return entry.delivery.played_samples;
  return playback !== null && playback.stream_id === entry.stream_id ? playback.played_samples : 0;
}

/** How far into the text the played samples reach, and where the unit ends that is being said; both in characters. */
function reach(units, chars, played, isOpen) {
  let start = 0;
  let startSample = 0;
  for (const unit of units) {
    const end = Math.min(unit.source_end ?? start + Array.from(unit.text).length, chars.length);
    if (unit.end_sample !== null && played >= unit.end_sample) {
      [start, startSample] = [end, unit.end_sample];
      continue;
    }
    // Within a unit the sound tells no words: they are taken to be as long as they are written.
    const ratio = unit.end_sample === null ? 0 : (played - startSample) / (unit.end_sample - startSample);
    const heardTo = wholeWords(chars, start, start + Math.floor((end - start) * Math.max(0, ratio)));
    const isBeingSaid = isOpen && played > startSample;
    return { heardTo, saidTo: isBeingSaid ? end : heardTo };
  }
  return { heardTo: start, saidTo: start };
}

/** The place of the next character that is not white space. */
function behindSpace(chars, place) {
  let next = place;
  while (next < chars.length && next > 0 && chars[next].trim() === "") next += 1;
  return next;
}

const WORD = /[\p{Letter}\p{Number}\p{Mark}'’-]/u;
const ALONE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/** The last place at or before `at`, and not before `from`, that cuts no word in two. */
function wholeWords(chars, from, at) {
  const joins = (place) =>
    WORD.test(chars[place] ?? " ") && WORD.test(chars[place - 1] ?? " ") && !ALONE.test(chars[place] ?? " ");
  let place = Math.min(at, chars.length);
  while (place > from && joins(place)) place -= 1;
  return place;
}
