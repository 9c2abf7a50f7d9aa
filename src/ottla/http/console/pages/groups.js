// All consumer groups.

import { api } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { count } from "../parts/format.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";

const REFRESH_MS = 3000;

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const search = h("input.grow", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name" });
  const list = table(COLUMNS, { caption: "Groups", empty: "No group matches." });
  let groups = [];
  const draw = () => {
    const found = groups.filter(({ id }) => id.includes(search.value.trim()));
    list.update(found, groups.length === 0 ? noGroups() : undefined);
  };
  search.addEventListener("input", draw);
  await every(REFRESH_MS, signal, () =>
    attempt(refusal, async () => {
      ({ groups } = await api.get("/v1/groups", signal));
      draw();
    }),
  );
  return h("div.page", heading("Groups"), refusal, card("", h("div.bar-of-fields", search), list));
}

function noGroups() {
  return ["No groups yet: the first consumer of one makes it. ", h("a", { href: place("connect") }, "Connect a client")];
}

const COLUMNS = [
  { label: "Group", cell: ({ id }) => h("a", { href: place("groups", id) }, id), sort: ({ id }) => id },
  { label: "State", cell: ({ state }) => stateBadge(state), sort: ({ state }) => state },
  { label: "Type", isShort: true, cell: ({ type }) => type, sort: ({ type }) => type },
  { label: "Members", isNumber: true, cell: ({ members }) => (members === null ? "–" : count(members)), sort: ({ members }) => members },
  { label: "Lag", isNumber: true, cell: ({ lag }) => count(lag), sort: ({ lag }) => lag },
];

export function stateBadge(state) {
  return badge(state, { Stable: "good", Dead: "bad" }[state]);
}
