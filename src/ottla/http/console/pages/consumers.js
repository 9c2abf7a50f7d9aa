// The groups that read a topic: members, and lag by partition.

import { api, url } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { card } from "../parts/field.js";
import { count } from "../parts/format.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { OFFSET_NUMBERS } from "./group.js";
import { stateBadge } from "./groups.js";

const REFRESH_MS = 3000;

export async function show({ topic, signal }) {
  const refusal = h("div.refusal");
  const groups = table(GROUP_COLUMNS, { caption: "Groups", empty: "No group reads this topic." });
  const offsets = table(OFFSET_COLUMNS, { caption: "Offsets", empty: "No group has committed offsets here." });
  await every(REFRESH_MS, signal, () =>
    attempt(refusal, async () => {
      const found = (await api.get(url`/v1/topics/${topic.name}/groups`, signal)).groups;
      groups.update(found);
      offsets.update(found.flatMap(rowsOf));
    }),
  );
  return h("div.page", refusal, card("Groups", groups), card("By partition", offsets));
}

function rowsOf({ id, members, offsets }) {
  const readers = new Map(members.flatMap((one) => one.partitions.map((partition) => [partition, one])));
  return offsets.map((one) => ({ ...one, group: id, reader: readers.get(one.partition) }));
}

const link = (id) => h("a", { href: place("groups", id) }, id);

const GROUP_COLUMNS = [
  { label: "Group", cell: ({ id }) => link(id), sort: ({ id }) => id },
  { label: "State", cell: ({ state }) => stateBadge(state), sort: ({ state }) => state },
  { label: "Type", isShort: true, cell: ({ type }) => type, sort: ({ type }) => type },
  {
    label: "Members here",
    isNumber: true,
    cell: ({ members }) => count(members.length),
    sort: ({ members }) => members.length,
  },
  { label: "Lag here", isNumber: true, cell: ({ lag }) => count(lag), sort: ({ lag }) => lag },
];

const OFFSET_COLUMNS = [
  { label: "Group", cell: ({ group }) => link(group), sort: ({ group }) => group },
  {
    label: "Member",
    cell: ({ reader }) => (reader ? `${reader.client_id} (${reader.client_host})` : h("span.soft", "none")),
    sort: ({ reader }) => reader?.client_id ?? "",
  },
  ...OFFSET_NUMBERS,
];
