// Tabs are links, so that each has an address.

import { h } from "./dom.js";
import { place } from "./router.js";

export function tabs(label, base, names, current) {
  const links = names.map(([name, shown]) =>
    h("a", { href: place(...base, name), "aria-current": name === current ? "page" : undefined }, shown),
  );
  // On a narrow screen the one that is shown may lie outside.
  const shown = links.find((link) => link.hasAttribute("aria-current"));
  requestAnimationFrame(() => shown?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  return h("nav.tabs", { "aria-label": label }, links);
}

/** Buttons of which one is pressed: views of one thing that need no address. */
export function switcher(label, names, current, pick) {
  const buttons = names.map(([name, shown]) =>
    h("button", { type: "button", "aria-pressed": String(name === current), onclick: () => choose(name) }, shown),
  );
  function choose(name) {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(names[index][0] === name)));
    pick(name);
  }
  return h("div.switcher", { role: "group", "aria-label": label }, buttons);
}
