// A table that sorts by its headings. On a narrow screen each row becomes a card, and cells name themselves.

import { h, replace } from "./dom.js";
import { count } from "./format.js";

const MOST_ROWS = 500;

/** A column is { label, cell(row) → child, sort?(row) → value, isNumber?, isShort? }. */
export function table(columns, { caption, empty = "Nothing here yet." }) {
  const body = h("tbody");
  const headings = columns.map((column, index) => heading(column, () => sortBy(index)));
  const whole = h("table", h("caption.unseen", caption), h("thead", h("tr", headings)), body);
  const nothing = h("p.empty");
  const rest = h("p.empty");
  const frame = h("div.table", whole, nothing, rest);
  let rows = [];
  let sorted;

  function sortBy(index) {
    const isDescending = sorted?.index === index ? !sorted.isDescending : Boolean(columns[index].isNumber);
    sorted = { index, isDescending };
    for (const cell of headings) cell.removeAttribute("aria-sort");
    headings[index].setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    draw();
  }

  function inOrder() {
    if (!sorted) return rows;
    const { sort } = columns[sorted.index];
    const sign = sorted.isDescending ? -1 : 1;
    return [...rows].sort((one, other) => sign * compare(sort(one), sort(other)));
  }

  function draw() {
    whole.hidden = rows.length === 0;
    nothing.hidden = rows.length > 0;
    rest.hidden = rows.length <= MOST_ROWS;
    replace(rest, `${count(rows.length - MOST_ROWS)} more are not shown.`);
    replace(
      body,
      inOrder()
        .slice(0, MOST_ROWS)
        .map((row) =>
          h(
            "tr",
            columns.map((column) => cellOf(column, row)),
          ),
        ),
    );
  }

  /** Where there are no rows, `why` says so. */
  frame.update = (given, why = empty) => {
    // What has the keyboard's attention keeps it.
    const held = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    rows = given;
    replace(nothing, why);
    draw();
    if (held) [...body.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus();
    return frame;
  };
  return frame.update([]);
}

function heading({ label, sort, isNumber }, onclick) {
  const content = sort ? h("button.sort", { type: "button", onclick }, label) : label;
  return h(isNumber ? "th.number" : "th", { scope: "col" }, content);
}

function cellOf({ label, cell, isNumber, isShort }, row) {
  return h(isNumber ? "td.number" : isShort ? "td.short" : "td", { "data-label": label }, cell(row));
}

function compare(one, other) {
  if (typeof one === "string" && typeof other === "string") return one.localeCompare(other, "en", { numeric: true });
  return Number(one) - Number(other);
}
