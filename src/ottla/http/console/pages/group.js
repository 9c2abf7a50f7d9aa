// One group: who is in it, what each reads, and how far behind it is.

import { api, url } from "../parts/api.js";
import { bars } from "../parts/bars.js";
import { confirmByName } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { card, heading } from "../parts/field.js";
import { count, plural, short } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { lineChart } from "../parts/line-chart.js";
import { every } from "../parts/live.js";
import { attempt, notify } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { stateBadge } from "./groups.js";
import { resetGroup } from "./reset.js";

const REFRESH_MS = 2000;
const SPAN_MS = 5 * 60_000;
const MOST_BARS = 40;

export async function show({ params: { id }, signal }) {
  const path = url`/v1/groups/${id}`;
  const about = h("p.soft");
  const refusal = h("div.refusal");
  const chart = lineChart("Messages behind");
  const lags = h("div");
  const members = table(MEMBER_COLUMNS, { caption: "Members", empty: "This group has no members." });
  const offsets = table(OFFSET_COLUMNS, { caption: "Offsets", empty: "It has no committed offsets." });
  const points = [];
  let group = await api.get(path, signal);

  const draw = () => {
    const kind = group.epoch === null ? group.type : `${group.type}, epoch ${group.epoch}`;
    const size = plural(group.members.length, "member");
    replace(about, stateBadge(group.state), ` ${kind} · ${size} · ${count(group.lag)} behind`);
    points.push([Date.now(), Number(group.lag)]);
    if (points.length > SPAN_MS / REFRESH_MS) points.shift();
    chart.update([{ name: "Lag", points }], { show: short, spanMs: SPAN_MS });
    replace(lags, lagBars(group.offsets));
    members.update(group.members);
    offsets.update(group.offsets);
  };
  const load = () =>
    attempt(refusal, async () => {
      group = await api.get(path, signal);
      draw();
    });
  draw();
  setTimeout(() => every(REFRESH_MS, signal, load), REFRESH_MS);
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("groups") }, "Groups")),
    heading(
      id,
      h("button", { onclick: () => resetGroup(group, load) }, "Reset offsets"),
      h("a.button", { href: `${path}/offsets`, download: `${id}-offsets.json` }, "Save offsets"),
      h("button.danger", { onclick: () => deleteGroup(id) }, icon("trash"), "Delete"),
    ),
    about,
    refusal,
    h("div.columns", card("Lag", chart), card("Lag by partition", lags)),
    card("Members", members),
    card("Offsets", offsets),
  );
}

function lagBars(offsets) {
  if (!offsets.length) return h("p.empty", "It has no committed offsets.");
  const rows = [...offsets].sort((one, other) => Number(other.lag) - Number(one.lag)).slice(0, MOST_BARS);
  return bars(
    rows.map(({ topic, partition, lag, committed, end }) => ({
      label: `${topic} ${partition}`,
      href: `${place("topics", topic, "messages")}?from=${from(committed)}&partition=${partition}`,
      value: lag,
      shown: count(lag),
      title: committed === null ? "no committed offset" : `committed ${committed} of ${end}`,
    })),
  );
}

function from(committed) {
  return committed === null ? "oldest" : `offset&offset=${committed}`;
}

function deleteGroup(id) {
  const warning = "Its committed offsets are deleted. Consumers start over if they rejoin.";
  confirmByName(`Delete ${id}`, warning, id, "Delete group", async () => {
    await api.delete(url`/v1/groups/${id}`);
    notify(`Deleted ${id}`);
    location.hash = place("groups");
  });
}

const MEMBER_COLUMNS = [
  {
    label: "Member",
    cell: (member) => h("span", { title: member.member_id }, member.instance_id ?? member.client_id),
    sort: (member) => member.client_id,
  },
  { label: "Epoch", isNumber: true, cell: (member) => member.epoch ?? "", sort: (member) => member.epoch ?? -1 },
  { label: "Host", cell: (member) => member.client_host, sort: (member) => member.client_host },
  { label: "Reads", cell: (member) => assigned(member.assignment) },
];

function assigned(assignment) {
  if (!assignment.length) return h("span.soft", "nothing");
  return h(
    "span",
    assignment.map(({ topic, partitions }) =>
      h("div", h("a", { href: place("topics", topic) }, topic), ` ${partitions.join(", ")}`),
    ),
  );
}

function committedCell({ committed }) {
  return committed === null ? h("span.soft", "none") : count(committed);
}

export const OFFSET_NUMBERS = [
  { label: "Partition", isNumber: true, cell: ({ partition }) => partition, sort: ({ partition }) => partition },
  { label: "Committed", isNumber: true, cell: committedCell, sort: ({ committed }) => committed ?? -1 },
  { label: "End", isNumber: true, cell: ({ end }) => count(end), sort: ({ end }) => end },
  { label: "Lag", isNumber: true, cell: ({ lag }) => count(lag), sort: ({ lag }) => lag },
];

const OFFSET_COLUMNS = [
  { label: "Topic", cell: ({ topic }) => h("a", { href: place("topics", topic) }, topic), sort: ({ topic }) => topic },
  ...OFFSET_NUMBERS,
];
