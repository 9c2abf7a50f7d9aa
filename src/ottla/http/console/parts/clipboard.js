// Copying, also where the page came over plain HTTP from another machine and browsers allow no clipboard.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { notify } from "./notice.js";

export async function copy(text, from = document.body) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyBySelection(text, from);
  notify("Copied");
}

function copyBySelection(text, from) {
  // Inside the dialog that is open: nothing outside it can be selected.
  const home = from.closest("dialog") ?? document.body;
  const area = h("textarea.unseen", { value: text });
  home.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function copyButton(text, label = "Copy") {
  const button = h("button.quiet.small", { type: "button", onclick: () => copy(text, button) }, icon("copy"), label);
  return button;
}

export function snippet(code) {
  return h("div.snippet", copyButton(code), h("pre", { tabindex: 0 }, h("code", code)));
}
