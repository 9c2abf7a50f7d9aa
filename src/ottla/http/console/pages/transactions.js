// Transactional ids and the state of their transactions.

import { api } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";

const REFRESH_MS = 3000;

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const search = h("input.grow", { type: "search", placeholder: "Filter by id", "aria-label": "Filter by id" });
  const open = h("input", { type: "checkbox" });
  const list = table(COLUMNS, { caption: "Transactions", empty: "No transactional id matches." });
  let found = [];
  const draw = () => {
    const isWanted = ({ id, state }) => id.includes(search.value.trim()) && !(open.checked && !isOpen(state));
    list.update(found.filter(isWanted), found.length === 0 ? "No producer has used transactions yet." : undefined);
  };
  search.addEventListener("input", draw);
  open.addEventListener("change", draw);
  await every(REFRESH_MS, signal, () =>
    attempt(refusal, async () => {
      found = (await api.get("/v1/transactions", signal)).transactions;
      draw();
    }),
  );
  const filters = h("div.bar-of-fields", search, h("label.check", open, "Only open transactions"));
  return h("div.page", heading("Transactions"), refusal, card("", filters, list));
}

function isOpen(state) {
  return state === "Ongoing" || state.startsWith("Prepare");
}

export function transactionBadge(state) {
  return badge(state, isOpen(state) ? "good" : "");
}

const COLUMNS = [
  { label: "Transactional id", cell: ({ id }) => h("a", { href: place("transactions", id) }, id), sort: ({ id }) => id },
  { label: "State", cell: ({ state }) => transactionBadge(state), sort: ({ state }) => state },
  { label: "Producer id", isNumber: true, cell: ({ producer_id: id }) => String(id), sort: ({ producer_id: id }) => id },
];
