// One pipeline: its queries, and their lag and speed over time.

import { api, url } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { card, heading } from "../parts/field.js";
import { count, dateTime, duration, perSecond, short } from "../parts/format.js";
import { lineChart } from "../parts/line-chart.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { stateBadge } from "./pipelines.js";

const REFRESH_MS = 3000;
const SPAN_MS = 10 * 60_000;
const GONE = "It should run, and has not been heard of: it was killed, or cannot reach the broker.";

export async function show({ params: { name }, signal }) {
  const path = url`/v1/pipelines/${name}`;
  const about = h("p.soft");
  const refusal = h("div.refusal");
  const problem = h("p.refusal");
  const lag = lineChart("Messages behind");
  const speed = lineChart("Rows a second");
  const queries = table(QUERY_COLUMNS, { caption: "Queries" });
  const lags = [];
  const speeds = [];

  const keep = (points, value) => {
    points.push([Date.now(), Number(value)]);
    if (points.length > SPAN_MS / REFRESH_MS) points.shift();
  };
  const draw = (pipeline) => {
    const runsOn = pipeline.host ? `on ${pipeline.host}, process ${pipeline.pid}, ` : "";
    const times = `since ${dateTime(pipeline.started_ms)}; last heard of ${dateTime(pipeline.seen_ms)}`;
    replace(about, stateBadge(pipeline.state), " ", runsOn, times);
    const reason = pipeline.error || (pipeline.state === "lost" ? GONE : "");
    replace(problem, reason);
    problem.hidden = !reason;
    keep(lags, pipeline.lag);
    keep(speeds, pipeline.rows_per_second);
    lag.update([{ name: "Lag", points: lags }], { show: short, spanMs: SPAN_MS });
    speed.update([{ name: "Rows", points: speeds }], { show: perSecond, spanMs: SPAN_MS });
    queries.update(pipeline.queries);
  };
  await every(REFRESH_MS, signal, () => attempt(refusal, async () => draw(await api.get(path, signal))));
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("pipelines") }, "Pipelines")),
    heading(name),
    about,
    refusal,
    problem,
    h("div.columns", card("Lag", lag), card("Speed", speed)),
    card("Queries", queries),
  );
}

const QUERY_COLUMNS = [
  { label: "Query", cell: ({ name }) => name, sort: ({ name }) => name },
  { label: "Writes to", cell: ({ sink }) => h("code", sink), sort: ({ sink }) => sink },
  { label: "Batch", isNumber: true, cell: ({ batch }) => count(batch), sort: ({ batch }) => batch },
  { label: "Rows read", isNumber: true, cell: ({ rows }) => count(rows), sort: ({ rows }) => rows },
  {
    label: "Rows/s",
    isNumber: true,
    cell: ({ rows_per_second: rate }) => perSecond(rate),
    sort: ({ rows_per_second: rate }) => rate,
  },
  { label: "Batch took", isNumber: true, cell: ({ batch_ms: ms }) => duration(ms), sort: ({ batch_ms: ms }) => ms },
  { label: "Lag", isNumber: true, cell: ({ lag }) => count(lag), sort: ({ lag }) => lag },
  { label: "Watermark", cell: ({ watermark }) => watermark || h("span.soft", "none"), sort: (one) => one.watermark },
  { label: "Late", isNumber: true, cell: ({ late_rows: late }) => count(late), sort: ({ late_rows: late }) => late },
  { label: "In state", isNumber: true, cell: ({ state_rows: held }) => count(held), sort: (one) => one.state_rows },
];
