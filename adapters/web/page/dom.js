// Elements, made of names, attributes and children. Text is always text, never markup.

/** `h("button", {type: "button", class: "small", onclick: f}, "Send")`; children that are null are left out. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Put text where it is not yet, so that nothing is announced or selected anew without need. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Call `draw` once before the next frame, however often it is asked for. */
export function onceAFrame(draw) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    const run = () => {
      if (!isWaiting) return;
      isWaiting = false;
      draw();
    };
    // A page in the background gets no frames, and is to be right when it comes to the front.
    if (document.hidden) setTimeout(run, 250);
    else requestAnimationFrame(run);
  };
}

/** "turn_ended" as people write it. */
export function inWords(name) {
  return name.replaceAll("_", " ").replaceAll(".", " ");
}
