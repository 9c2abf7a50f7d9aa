// The brokers, where they keep their data, who is connected, and the broker's configs.

import { api } from "../parts/api.js";
import { bars } from "../parts/bars.js";
import { h, replace } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { bytes, count, plural } from "../parts/format.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { may, notAllowed } from "../parts/session.js";
import { table } from "../parts/table.js";
import { configEditor } from "./configs.js";

const REFRESH_MS = 5000;
const MOST_PARTITIONS = 10;

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const facts = h("dl.facts");
  const folders = h("div.payload");
  const leaderless = h("div.payload");
  const brokers = table(BROKER_COLUMNS, { caption: "Brokers" });
  const clients = table(CLIENT_COLUMNS, { caption: "Clients", empty: "No Kafka client is connected." });
  const [seesAll, seesConfigs] = await Promise.all([may("DESCRIBE"), may("DESCRIBE_CONFIGS")]);
  const configs = seesConfigs
    ? await configEditor("/v1/configs", signal)
    : card("", notAllowed("see them", "DESCRIBE_CONFIGS"));
  await every(REFRESH_MS, signal, () =>
    attempt(refusal, async () => {
      const ask = (path) => api.get(path, signal);
      const paths = ["/v1/broker", "/v1/cluster", ...(seesAll ? ["/v1/log-dirs", "/v1/clients"] : [])];
      const [broker, cluster, dirs, connected] = await Promise.all(paths.map(ask));
      replace(facts, factsOf(broker));
      brokers.update(cluster.brokers.map((one) => ({ ...one, isController: one.broker_id === cluster.controller_id })));
      replace(leaderless, leaderlessOf(cluster.partitions_without_leader));
      if (!seesAll) return;
      replace(folders, dirs.log_dirs.map(folderOf));
      clients.update(connected.clients);
    }),
  );
  return h(
    "div.page",
    heading("Cluster"),
    refusal,
    leaderless,
    card("Brokers", brokers),
    card("This broker", facts),
    card("Log folders", seesAll ? folders : notAllowed("see them", "DESCRIBE")),
    card("Clients connected", seesAll ? clients : notAllowed("see them", "DESCRIBE")),
    h("h2", "Configs of this broker"),
    configs,
  );
}

function leaderlessOf(partitions) {
  if (partitions.length === 0) return [];
  const rows = partitions
    .slice(0, MOST_PARTITIONS)
    .map((one) => h("li", badge(one.reason.replaceAll("_", " "), "bad"), " ", one.problem));
  return [card(`${plural(partitions.length, "partition")} without a leader`, h("ul", rows))];
}

function factsOf(broker) {
  const facts = [
    ["Version", `Ottla ${broker.version}`],
    ["Cluster id", broker.cluster_id],
    ["Kafka", broker.kafka],
    ["Data", broker.data_dir],
    [
      "Holds",
      `${plural(broker.topics, "topic")}, ${plural(broker.partitions, "partition")}, ${plural(broker.groups, "group")}`,
    ],
  ];
  return facts.map(([name, value]) => [h("dt", name), h("dd", value)]);
}

function folderOf({ path, total_bytes: total, usable_bytes: usable, partitions }) {
  const ours = partitions.reduce((sum, one) => sum + Number(one.size_bytes), 0);
  const used = Number(total) - Number(usable);
  const disk = [
    { label: "Disk in use", value: used, shown: bytes(used), isDull: true },
    { label: "Logs in it", value: ours, shown: bytes(ours) },
  ];
  const largest = [...partitions]
    .sort((one, other) => Number(other.size_bytes) - Number(one.size_bytes))
    .slice(0, MOST_PARTITIONS);
  const rows = largest.map((one) => ({
    label: `${one.topic} ${one.partition}`,
    href: place("topics", one.topic, "partitions"),
    value: one.size_bytes,
    shown: bytes(one.size_bytes),
  }));
  return [
    h("p", h("code", path), h("span.soft", ` ${bytes(usable)} free of ${bytes(total)}`)),
    bars(disk, { most: Number(total) || 1 }),
    rows.length > 0 && [h("h2", "Largest partitions"), bars(rows)],
  ];
}

const BROKER_COLUMNS = [
  {
    label: "Broker",
    cell: (one) => h("span", one.broker_id, " ", one.isController && badge("controller", "good")),
    sort: (one) => one.broker_id,
  },
  { label: "Address", cell: (one) => h("code", `${one.host}:${one.port}`) },
  { label: "Rack", cell: (one) => one.rack ?? h("span.soft", "none"), sort: (one) => one.rack ?? "" },
  {
    label: "State",
    cell: (one) =>
      one.state === "up" ? badge("up", "good") : h("span", { title: one.problem }, badge(one.state, "bad")),
    sort: (one) => one.state,
  },
  { label: "Leads", cell: (one) => count(one.leads), sort: (one) => one.leads },
  {
    label: "In sync",
    cell: (one) => `${count(one.in_sync)} of ${count(one.holds)}`,
    sort: (one) => one.in_sync - one.holds,
  },
  {
    label: "Disk",
    cell: (one) =>
      Number(one.total_bytes) < 0 ? "" : `${bytes(one.usable_bytes)} free of ${bytes(one.total_bytes)}`,
    sort: (one) => Number(one.usable_bytes),
  },
];

const CLIENT_COLUMNS = [
  { label: "Address", cell: ({ host, port }) => h("code", `${host}:${port}`), sort: ({ host }) => host },
  {
    label: "Software",
    cell: ({ software }) => software ?? h("span.soft", "unknown"),
    sort: ({ software }) => software ?? "",
  },
  {
    label: "Now",
    cell: ({ is_busy: isBusy }) => (isBusy ? badge("waits for an answer", "good") : badge("idle")),
    sort: ({ is_busy: isBusy }) => String(isBusy),
  },
];
