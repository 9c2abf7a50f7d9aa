// Amounts side by side, longest first or in the order given.

import { h } from "./dom.js";

/** `rows` is [{ label, href, value, shown, title }]. */
export function bars(rows, { most } = {}) {
  const longest = most ?? Math.max(1, ...rows.map((row) => Number(row.value)));
  return h(
    "ul.bars",
    rows.map((row) => h("li", { title: row.title }, labelOf(row), trackOf(row, longest), h("b", row.shown))),
  );
}

function labelOf({ label, href }) {
  return href ? h("a.label", { href }, label) : h("span.label", label);
}

function trackOf({ value, isDull }, longest) {
  const bar = h(isDull ? "i.bar.is-dull" : "i.bar");
  bar.style.inlineSize = Number(value) ? `max(3px, ${Math.min(100, (Number(value) / longest) * 100)}%)` : 0;
  return h("span.track", bar);
}
