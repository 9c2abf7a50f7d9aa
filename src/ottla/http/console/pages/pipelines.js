// All data pipelines: whether they run, how fast, and how far behind they are.

import { api } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { count, dateTime, perSecond } from "../parts/format.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";

const REFRESH_MS = 3000;

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const list = table(COLUMNS, { caption: "Pipelines", empty: noPipelines() });
  await every(REFRESH_MS, signal, () =>
    attempt(refusal, async () => list.update((await api.get("/v1/pipelines", signal)).pipelines)),
  );
  return h("div.page", heading("Pipelines"), refusal, card("", list));
}

function noPipelines() {
  return [
    h("span", "No pipelines yet. ", h("code", "ottla pipeline init TOPIC"), " writes the file of one, "),
    h("span", h("code", "ottla pipeline run FILE"), " runs it."),
  ];
}

const COLUMNS = [
  {
    label: "Pipeline",
    cell: ({ name }) => h("a", { href: place("pipelines", name) }, name),
    sort: ({ name }) => name,
  },
  { label: "State", cell: ({ state }) => stateBadge(state), sort: ({ state }) => state },
  {
    label: "Rows/s",
    isNumber: true,
    cell: ({ rows_per_second: rate }) => perSecond(rate),
    sort: ({ rows_per_second: rate }) => rate,
  },
  { label: "Rows read", isNumber: true, cell: ({ rows }) => count(rows), sort: ({ rows }) => rows },
  { label: "Lag", isNumber: true, cell: ({ lag }) => count(lag), sort: ({ lag }) => lag },
  {
    label: "Last heard of",
    isShort: true,
    cell: ({ seen_ms: seen }) => dateTime(seen),
    sort: ({ seen_ms: seen }) => seen,
  },
];

export function stateBadge(state) {
  return badge(state, { running: "good", finished: "good", failed: "bad", lost: "bad" }[state]);
}
