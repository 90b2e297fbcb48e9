// Dark or light: as the system says, until somebody chooses.

import { byId, setText } from "./dom.js";

const KEY = "voicechart.theme";
const THEMES = ["system", "light", "dark"];

export function beginTheme() {
  let theme = stored();
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const button = byId("theme");
    setText(button, { system: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[theme]);
    button.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}. Change`);
  };
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Storage may be forbidden; the choice then lasts as long as the page.
    }
    show();
  });
  show();
}

function stored() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}
