// Forms and questions in front of the page.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { attempt } from "./notice.js";

/** Open a dialog with this content; it is gone once closed, or when another page is shown. */
export function open(title, content, { kind = "" } = {}) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const close = h(
    "button.quiet.only-icon",
    { type: "button", "aria-label": "Close", onclick: () => dialog.close() },
    icon("close"),
  );
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: kind }, h("header", heading, close), content);
  const leave = () => dialog.close();
  addEventListener("hashchange", leave);
  dialog.addEventListener("close", () => {
    removeEventListener("hashchange", leave);
    dialog.remove();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A form; `send` gets what was filled in, and its refusal is shown where it was. */
export function form(title, fields, { submit, isDangerous = false, send }) {
  const refusal = h("div.refusal");
  const button = h(isDangerous ? "button.danger" : "button.primary", { type: "submit" }, submit);
  const whole = h(
    "form",
    { method: "dialog", autocomplete: "off" },
    fields,
    refusal,
    h("footer", h("button.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"), button),
  );
  const dialog = open(title, whole);
  whole.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const isDone = await attempt(refusal, () => send(new FormData(whole), whole));
    button.disabled = false;
    if (isDone) dialog.close();
  });
  return dialog;
}

/** Something that cannot be undone: its name has to be typed. */
export function confirmByName(title, warning, name, submit, send) {
  const input = h("input", { name: "typed", required: true, autocapitalize: "off", spellcheck: "false" });
  input.addEventListener("input", () => input.setCustomValidity(input.value === name ? "" : `Type ${name}`));
  input.setCustomValidity(`Type ${name}`);
  const fields = [h("p", warning), h("label", h("span", "Type ", h("code", name), " to go on"), input)];
  return form(title, fields, { submit, isDangerous: true, send });
}
