// A table that sorts by its headings. On a narrow screen each row becomes a card, and cells name themselves. Of a long
// table only the rows near the visible part are in the document.

import { h, replace } from "./dom.js";

const MOST_WHOLE = 200;
const MARGIN_ROWS = 30;
const FIRST_ROW_HEIGHT = 37;
const MOST_TURNS_BEFORE = 120; // until a page is shown

/** A column is { label, cell(row) → child, sort?(row) → value, isNumber?, isShort? }. */
export function table(columns, { caption, empty = "Nothing here yet." }) {
  const body = h("tbody");
  const headings = columns.map((column, index) => heading(column, () => sortBy(index)));
  const whole = h("table", h("caption.unseen", caption), h("thead", h("tr", headings)), body);
  const nothing = h("p.empty");
  const frame = h("div.table", whole, nothing);
  let rows = [];
  let ordered = [];
  let sorted;
  let rowHeight = FIRST_ROW_HEIGHT;
  let shown = { first: 0, last: 0 };

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
    ordered = inOrder();
    drawRows(inSight());
  }

  /** Which rows are near the visible part. */
  function inSight() {
    if (ordered.length <= MOST_WHOLE) return { first: 0, last: ordered.length };
    const above = frame.isConnected ? -body.getBoundingClientRect().top : 0;
    const first = Math.floor(above / rowHeight) - MARGIN_ROWS;
    const last = Math.ceil((above + innerHeight) / rowHeight) + MARGIN_ROWS;
    const within = (number) => Math.min(ordered.length, Math.max(0, number));
    return { first: within(first), last: within(last) };
  }

  function drawRows({ first, last }) {
    shown = { first, last };
    const isWhole = first === 0 && last === ordered.length;
    if (isWhole) whole.removeAttribute("aria-rowcount");
    else whole.setAttribute("aria-rowcount", ordered.length + 1);
    replace(
      body,
      spacer(first),
      ordered.slice(first, last).map((row, index) => rowOf(row, isWhole ? undefined : first + index + 2)),
      spacer(ordered.length - last),
    );
  }

  function spacer(count) {
    if (count === 0) return undefined;
    const cell = h("td", { colspan: columns.length });
    cell.style.blockSize = `${count * rowHeight}px`;
    return h("tr.spacer", { "aria-hidden": "true" }, cell);
  }

  function rowOf(row, index) {
    return h(
      "tr",
      { "aria-rowindex": index },
      columns.map((column) => cellOf(column, row)),
    );
  }

  function follow() {
    if (!frame.isConnected || ordered.length <= MOST_WHOLE) return;
    const measured = measuredHeight();
    const isResized = Math.abs(measured - rowHeight) > 0.5;
    if (isResized) rowHeight = measured;
    const { first, last } = inSight();
    // Half of the margin is left: the rows in sight are still those in the document.
    const isNear = Math.abs(first - shown.first) < MARGIN_ROWS / 2 && Math.abs(last - shown.last) < MARGIN_ROWS / 2;
    if (isResized || !isNear) keepingFocus(() => drawRows({ first, last }));
  }

  function measuredHeight() {
    const drawn = body.querySelectorAll("tr:not(.spacer)");
    if (!drawn.length) return rowHeight;
    const [top, bottom] = [drawn[0].getBoundingClientRect().top, drawn[drawn.length - 1].getBoundingClientRect().bottom];
    return (bottom - top) / drawn.length || rowHeight;
  }

  // What has the keyboard's attention keeps it.
  function keepingFocus(work) {
    const held = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    work();
    if (held) [...body.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus({ preventScroll: true });
  }

  const look = watchScrolling(frame, follow);

  /** Where there are no rows, `why` says so. */
  frame.update = (given, why = empty) => {
    rows = given;
    replace(nothing, why);
    keepingFocus(draw);
    if (rows.length > MOST_WHOLE) look();
    return frame;
  };
  return frame.update([]);
}

/** Call `follow` when the page scrolls, once per frame, while the element is in the document. Returns a function that asks
 * for a call. */
function watchScrolling(element, follow) {
  let isDue = false;
  let wasThere = false;
  let turnsBefore = 0;
  const leaving = new AbortController();
  const turn = () => {
    isDue = false;
    wasThere ||= element.isConnected;
    if (element.isConnected) follow();
    else if (wasThere) leaving.abort();
    else if ((turnsBefore += 1) < MOST_TURNS_BEFORE) schedule();
  };
  const schedule = () => {
    if (!isDue) requestAnimationFrame(turn);
    isDue = true;
  };
  for (const event of ["scroll", "resize"]) {
    addEventListener(event, schedule, { passive: true, capture: true, signal: leaving.signal });
  }
  return schedule;
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
