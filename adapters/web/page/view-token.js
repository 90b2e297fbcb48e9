// The form for the token, shown when the server asks for one. The token goes to the server in a body, and nowhere else.

import { ApiError, openSession } from "./api.js";
import { byId, setText } from "./dom.js";

export class TokenView {
  constructor({ onOpen }) {
    this.dialog = byId("token");
    this.dialog.addEventListener("cancel", (event) => event.preventDefault());
    byId("token-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const field = byId("token-text");
      try {
        await openSession(field.value);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.#tell(`${error.message}.`);
        field.select();
        return;
      }
      field.value = "";
      this.#tell("");
      this.dialog.close();
      onOpen();
    });
  }

  ask() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  #tell(problem) {
    const place = byId("token-problem");
    place.hidden = problem === "";
    setText(place, problem);
  }
}
