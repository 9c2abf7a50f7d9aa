// What is going on, at a glance.

import { api } from "../parts/api.js";
import { bars } from "../parts/bars.js";
import { h, replace } from "../parts/dom.js";
import { isFault, isOrdinary } from "../parts/error-kinds.js";
import { card, heading } from "../parts/field.js";
import { bytes, bytesPerSecond, count, perSecond, plural } from "../parts/format.js";
import { rateOf, SPANS, valueOf, watchHistory } from "../parts/history.js";
import { legend, lineChart } from "../parts/line-chart.js";
import { every } from "../parts/live.js";
import { place } from "../parts/router.js";
import { may, notAllowed } from "../parts/session.js";
import { switcher } from "../parts/tabs.js";

const LIST_MS = 5000;
const SPAN_KEY = "overview-span";
const MOST_ROWS = 8;

export async function show({ signal }) {
  const figures = h("div.figures");
  const traffic = lineChart("Bytes per second");
  const messages = lineChart("Messages per second");
  const storage = lineChart("Bytes on disk");
  const errors = h("div");
  const topics = h("div");
  const groups = h("div");
  let spanMs = Number(localStorage.getItem(SPAN_KEY)) || SPANS[1][0];
  const drawCharts = () => {
    const bothWays = [
      { name: "In", points: rateOf("kafka_bytes_in", spanMs) },
      { name: "Out", points: rateOf("kafka_bytes_out", spanMs) },
    ];
    traffic.update(bothWays, { show: bytesPerSecond, spanMs, base: 1024 });
    messages.update([{ name: "Written", points: rateOf("messages", spanMs) }], { show: perSecond, spanMs });
    storage.update([{ name: "On disk", points: valueOf("size_bytes", spanMs) }], { show: bytes, spanMs, base: 1024 });
  };
  watchHistory(signal, ({ totals, broker }) => {
    replace(figures, ...figuresOf(totals, broker));
    if (!totals) return;
    drawCharts();
    replace(errors, errorsOf(totals));
  });
  const span = switcher("Time span", SPANS, spanMs, (chosen) => {
    spanMs = chosen;
    localStorage.setItem(SPAN_KEY, chosen);
    drawCharts();
  });
  every(LIST_MS, signal, () => listAll(topics, groups, signal));
  const seesTotals = await may("DESCRIBE");
  return h(
    "div.page",
    heading("Overview", seesTotals && span),
    figures,
    seesTotals
      ? h(
          "div.columns",
          chartCard("Traffic of Kafka clients", traffic, legend("In", "Out")),
          chartCard("Messages written", messages),
        )
      : card("Traffic, storage and faults", notAllowed("see them", "DESCRIBE")),
    h("div.columns", card("Largest topics", topics), card("Groups with the highest lag", groups)),
    seesTotals && h("div.columns", chartCard("Storage", storage), card("Errors since the start", errors)),
  );
}

function chartCard(title, chart, key) {
  return h("section.card", h("div.card-head", h("h2", title), key), chart);
}

function figuresOf(totals, broker) {
  const faults = totals && faultCount(totals);
  return [
    figure("Topics", count(broker.topics), plural(broker.partitions, "partition"), place("topics")),
    figure("Groups", count(broker.groups), "of consumers", place("groups")),
    figure("Connections", count(broker.connections), "Kafka clients", place("cluster")),
    totals && figure("Storage", bytes(totals.size_bytes), "in all logs", place("cluster")),
    totals && figure("Messages", count(totals.messages), "written so far"),
    totals && figure("Faults", count(faults), faults ? "see below" : "none so far", undefined, faults > 0),
  ];
}

function figure(label, value, hint, href, isBad = false) {
  const content = [h("span", label), h("b", value), h("span", hint)];
  return h(`${href ? "a" : "div"}.figure${isBad ? ".is-bad" : ""}`, { href }, content);
}

function faultCount(totals) {
  const failed = totals.request_errors.filter(isFault).reduce((sum, one) => sum + one.count, 0);
  return totals.offline_partitions.length + failed;
}

function errorsOf(totals) {
  const answered = ({ api: name, error, count: value }, isDull) => ({
    label: `${name} · ${error}`,
    title: `${name} was answered with ${error}`,
    value,
    shown: count(value),
    isDull,
  });
  const { request_errors: errors } = totals;
  const rows = [
    ...totals.offline_partitions.map((name) => ({ label: `Offline: ${name}`, value: 1, shown: "disk" })),
    ...errors.filter(isFault).map((one) => answered(one, false)),
    ...errors.filter((one) => !isFault(one) && !isOrdinary(one)).map((one) => answered(one, true)),
    ...Object.entries(totals.connection_faults).map(([what, value]) => ({
      label: `Connections closed: ${what}`,
      value,
      shown: count(value),
      isDull: true,
    })),
  ];
  return rows.length ? bars(rows.slice(0, MOST_ROWS)) : h("p.empty", "No errors.");
}

async function listAll(topics, groups, signal) {
  const [listed, grouped] = await Promise.all([api.get("/v1/topics", signal), api.get("/v1/groups", signal)]).catch(
    () => [],
  );
  if (!listed) return;
  const largest = top(listed.topics, "size_bytes").map((topic) => ({
    label: topic.name,
    href: place("topics", topic.name),
    value: topic.size_bytes,
    shown: bytes(topic.size_bytes),
    title: `${plural(topic.messages, "message")} in ${plural(topic.partitions, "partition")}`,
  }));
  const behind = top(grouped.groups, "lag").map((group) => ({
    label: group.id,
    href: place("groups", group.id),
    value: group.lag,
    shown: count(group.lag),
    title: `${group.state}, ${group.members === null ? "members hidden" : plural(group.members, "member")}`,
  }));
  replace(topics, largest.length ? bars(largest) : nothing("No topics yet.", "Create one", place("topics")));
  replace(
    groups,
    behind.length ? bars(behind) : nothing("No consumer groups yet.", "Connect a client", place("connect")),
  );
}

function top(rows, name) {
  return [...rows].sort((one, other) => Number(other[name]) - Number(one[name])).slice(0, MOST_ROWS);
}

function nothing(text, link, href) {
  return h("p.empty", text, " ", h("a", { href }, link));
}
