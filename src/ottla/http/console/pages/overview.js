// What is going on, at a glance.

import { api } from "../parts/api.js";
import { bars } from "../parts/bars.js";
import { h, replace } from "../parts/dom.js";
import { card } from "../parts/field.js";
import { bytes, bytesPerSecond, count, perSecond, plural } from "../parts/format.js";
import { rateOf, spanMs, valueOf, watchHistory } from "../parts/history.js";
import { legend, lineChart } from "../parts/line-chart.js";
import { every } from "../parts/live.js";
import { place } from "../parts/router.js";

const LIST_MS = 5000;
const MOST_ROWS = 8;

export function show({ signal }) {
  const figures = h("div.figures");
  const traffic = lineChart("Bytes per second");
  const messages = lineChart("Messages per second");
  const storage = lineChart("Bytes on disk");
  const faults = h("div");
  const topics = h("div");
  const groups = h("div");
  watchHistory(signal, ({ totals, broker }) => {
    replace(figures, ...figuresOf(totals, broker));
    const bothWays = [
      { name: "In", points: rateOf("kafka_bytes_in") },
      { name: "Out", points: rateOf("kafka_bytes_out") },
    ];
    traffic.update(bothWays, { show: bytesPerSecond, spanMs, base: 1024 });
    messages.update([{ name: "Written", points: rateOf("messages") }], { show: perSecond, spanMs });
    storage.update([{ name: "On disk", points: valueOf("size_bytes") }], { show: bytes, spanMs, base: 1024 });
    replace(faults, faultsOf(totals));
  });
  every(LIST_MS, signal, () => listAll(topics, groups, signal));
  return h(
    "div.page",
    h("h1", "Overview"),
    figures,
    h(
      "div.columns",
      chartCard("Traffic of Kafka clients", traffic, legend("In", "Out")),
      chartCard("Messages written, through any door", messages),
    ),
    h("div.columns", card("Largest topics", topics), card("Groups furthest behind", groups)),
    h("div.columns", chartCard("Storage", storage), card("Faults since the start", faults)),
  );
}

function chartCard(title, chart, key) {
  return h("section.card", h("div.card-head", h("h2", title), key), chart);
}

function figuresOf(totals, broker) {
  const faults = faultCount(totals);
  return [
    figure("Topics", count(broker.topics), plural(broker.partitions, "partition"), place("topics")),
    figure("Groups", count(broker.groups), "of consumers", place("groups")),
    figure("Connections", count(broker.connections), "Kafka clients", place("cluster")),
    figure("Storage", bytes(totals.size_bytes), "in all logs", place("cluster")),
    figure("Messages", count(totals.messages), "ever written"),
    figure("Faults", count(faults), faults ? "see below" : "none so far", undefined, faults > 0),
  ];
}

function figure(label, value, hint, href, isBad = false) {
  const content = [h("span", label), h("b", value), h("span", hint)];
  return h(`${href ? "a" : "div"}.figure${isBad ? ".is-bad" : ""}`, { href }, content);
}

// Errors that clients get in normal operation are not shown.
const ORDINARY = new Set(["MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "UNKNOWN_TOPIC_OR_PARTITION"]);

function listedErrors(totals) {
  return totals.request_errors.filter(({ error }) => !ORDINARY.has(error));
}

function faultCount(totals) {
  const closed = Object.values(totals.connection_faults).reduce((sum, one) => sum + one, 0);
  const refused = listedErrors(totals).reduce((sum, one) => sum + one.count, 0);
  return totals.offline_partitions.length + closed + refused;
}

function faultsOf(totals) {
  const rows = [
    ...totals.offline_partitions.map((name) => ({ label: `Offline: ${name}`, value: 1, shown: "disk" })),
    ...listedErrors(totals).map(({ api: name, error, count: value }) => ({
      label: `${name} · ${error}`,
      title: `${name} was answered with ${error}`,
      value,
      shown: count(value),
    })),
    ...Object.entries(totals.connection_faults).map(([what, value]) => ({
      label: `Connections closed: ${what}`,
      value,
      shown: count(value),
    })),
  ];
  return rows.length ? bars(rows.slice(0, MOST_ROWS)) : h("p.empty", "Nothing went wrong.");
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
