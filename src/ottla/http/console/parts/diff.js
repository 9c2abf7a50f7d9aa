// Two texts side by side, line by line.

import { h } from "./dom.js";

const MOST_LINES = 2000;

/** [[left, right], …]: lines that are in both stand beside each other; undefined where one has none. */
export function aligned(before, after) {
  const left = before.split("\n").slice(0, MOST_LINES);
  const right = after.split("\n").slice(0, MOST_LINES);
  const common = lengths(left, right);
  const rows = [];
  let at = 0;
  let to = 0;
  while (at < left.length || to < right.length) {
    if (at < left.length && to < right.length && left[at] === right[to]) rows.push([left[at++], right[to++]]);
    else if (to >= right.length || (at < left.length && common[at + 1][to] >= common[at][to + 1])) {
      rows.push([left[at++], undefined]);
    } else rows.push([undefined, right[to++]]);
  }
  return rows;
}

/** How many lines two rests have in common. */
function lengths(left, right) {
  const found = Array.from({ length: left.length + 1 }, () => new Uint16Array(right.length + 1));
  for (let at = left.length - 1; at >= 0; at -= 1) {
    for (let to = right.length - 1; to >= 0; to -= 1) {
      const isSame = left[at] === right[to];
      found[at][to] = isSame ? found[at + 1][to + 1] + 1 : Math.max(found[at + 1][to], found[at][to + 1]);
    }
  }
  return found;
}

export function diffView(before, after, label) {
  const cells = aligned(before, after).flatMap(([left, right]) => [
    h(right === undefined ? "span.removed" : "span", left ?? ""),
    h(left === undefined ? "span.added" : "span", right ?? ""),
  ]);
  return h("div.diff", { role: "group", tabindex: 0, "aria-label": label }, cells);
}
