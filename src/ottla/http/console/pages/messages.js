// The message browser: jump to a place, search from there, look at one.

import { h, replace } from "../parts/dom.js";
import { choice, field, filledIn, filterName, msOf, partitionChoice, timeInput } from "../parts/field.js";
import { count, plural } from "../parts/format.js";
import { attempt } from "../parts/notice.js";
import { note, place } from "../parts/router.js";
import { exportButtons } from "./export.js";
import { messageRow } from "./message-row.js";
import { viewMessage } from "./message-view.js";
import { Search } from "./search.js";

const LIMITS = [50, 100, 500, 1000];
const STARTS = [
  ["newest", "Newest"],
  ["oldest", "Oldest"],
  ["offset", "Offset"],
  ["time", "Time"],
];
const FILTERS = [
  ["key", "Key is", "customer-1"],
  ["contains", "Value contains", "coffee"],
  ["header", "Header", "name or name:value"],
  ["path", "JSON path", "$.user.id"],
  ["equals", "…is", "42"],
];

export async function show({ topic, query, signal }) {
  const rows = h("div.rows.has-dates", { hidden: true });
  const status = h("div.progress", { role: "status" });
  const refusal = h("div.refusal");
  const search = searchForm(topic, query);
  const view = { topic, rows, status, refusal, signal, messages: [] };
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = wantedBy(search);
    note(wanted);
    begin(view, wanted);
  });
  await begin(view, wantedBy(search));
  return h("div.page", search, refusal, status, rows);
}

function searchForm(topic, query) {
  const from = choice("from", STARTS, query.get("from") ?? (query.has("offset") ? "offset" : "newest"));
  const offset = h("input", {
    name: "offset",
    inputmode: "numeric",
    pattern: "[0-9]{1,19}",
    value: query.get("offset") ?? "0",
  });
  const time = timeInput("time", query.get("timestamp"));
  const where = { offset: field("Offset", offset), time: field("Time", time) };
  const follow = () => {
    for (const [name, element] of Object.entries(where)) element.hidden = from.value !== name;
    offset.required = from.value === "offset";
    time.required = from.value === "time";
  };
  from.addEventListener("change", follow);
  follow();
  const filters = FILTERS.map(([name, label, placeholder]) =>
    field(label, h("input", { name: filterName(name), placeholder, value: query.get(name) ?? "" })),
  );
  const isFiltered = FILTERS.some(([name]) => query.get(name));
  return h(
    "form.card",
    h(
      "div.bar-of-fields",
      field("From", from),
      where.offset,
      where.time,
      field("Partition", partitionChoice(topic, "All", query.get("partition") ?? "")),
      field(
        "At most",
        choice(
          "limit",
          LIMITS.map((limit) => [limit, count(limit)]),
          query.get("limit") ?? 50,
        ),
      ),
      h("button.primary", { type: "submit" }, "Show"),
    ),
    h("details", { open: isFiltered }, h("summary", "Filter"), h("div.bar-of-fields.filters", filters)),
  );
}

function wantedBy(form) {
  const given = filledIn(form);
  const wanted = { ...given, limit: Number(given.limit), timestamp: msOf(form.elements.time) };
  if (wanted.from !== "offset") delete wanted.offset;
  else wanted.partition ??= "0";
  if (wanted.from !== "time") delete wanted.timestamp;
  delete wanted.time;
  return wanted;
}

function begin(view, wanted) {
  view.search = new Search(view.topic, wanted);
  view.messages = [];
  replace(view.rows, headRow());
  return goOn(view);
}

function headRow() {
  return h(
    "div.row-head",
    { "aria-hidden": "true" },
    ["Time", "Partition:offset", "Key", "Value"].map((label) => h("span", label)),
  );
}

async function goOn(view) {
  const { search, messages, status, topic } = view;
  const stopping = new AbortController();
  view.stop?.abort();
  view.stop = stopping;
  const stop = h("button.small", { onclick: () => stopping.abort() }, "Stop");
  const say = (found) => replace(status, `Found ${count(found)}, looked at ${count(search.scanned)} …`, stop);
  await attempt(view.refusal, async () => {
    const found = await search.next(AbortSignal.any([view.signal, stopping.signal]), say);
    // Another search was started meanwhile.
    if (view.search !== search) return;
    const first = messages.length;
    messages.push(...found);
    view.rows.append(
      ...found.map((one, index) =>
        messageRow(one, { hasDate: true, open: () => viewMessage(topic.name, messages, first + index) }),
      ),
    );
  });
  if (view.search !== search) return;
  view.rows.hidden = messages.length === 0;
  replace(status, summary(view));
}

function summary(view) {
  const { search, messages, topic } = view;
  const more = h("button.small", { onclick: () => goOn(view) }, search.isBackwards ? "Older" : "More");
  if (messages.length === 0) {
    if (search.hasFilter)
      return [h("span", `Nothing found in ${plural(search.scanned, "message")}.`), !search.isEnd && more];
    return h("span", "No messages here. ", h("a", { href: place("topics", topic.name, "produce") }, "Write one"));
  }
  const told = search.hasFilter ? `, found in ${plural(search.scanned, "message")}` : "";
  const order = search.isBackwards ? ", newest first" : "";
  const all = search.isEnd ? " That is all." : "";
  const saved = exportButtons(topic.name, () => messages);
  return [h("span", `${plural(messages.length, "message")}${order}${told}.${all}`), !search.isEnd && more, saved];
}
