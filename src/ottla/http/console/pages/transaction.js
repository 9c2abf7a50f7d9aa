// One transactional id: its producer, and its open transaction.

import { api, url } from "../parts/api.js";
import { confirmByName } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { card, heading } from "../parts/field.js";
import { dateTime, duration } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { every } from "../parts/live.js";
import { attempt, notify } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { transactionBadge } from "./transactions.js";

const REFRESH_MS = 2000;

export async function show({ params: { id }, signal }) {
  const path = url`/v1/transactions/${id}`;
  const refusal = h("div.refusal");
  const facts = h("dl.facts");
  const partitions = table(COLUMNS, { caption: "Partitions", empty: "No open transaction." });
  const draw = (transaction) => {
    replace(facts, factsOf(transaction));
    partitions.update(transaction.partitions);
  };
  draw(await api.get(path, signal));
  const load = () => attempt(refusal, async () => draw(await api.get(path, signal)));
  setTimeout(() => every(REFRESH_MS, signal, load), REFRESH_MS);
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("transactions") }, "Transactions")),
    heading(id, h("button.danger", { onclick: () => abort(id, path, load) }, icon("close"), "Abort")),
    refusal,
    card("", facts),
    card("Partitions of the open transaction", partitions),
  );
}

function factsOf(transaction) {
  const started = transaction.started_ms;
  const facts = [
    ["State", transactionBadge(transaction.state)],
    ["Producer", `id ${transaction.producer_id}, epoch ${transaction.producer_epoch}`],
    ["Timeout", duration(Number(transaction.timeout_ms))],
    ["Started", started === null ? "no open transaction" : `${dateTime(started)}, ${duration(Math.max(0, Date.now() - started))} ago`],
  ];
  return facts.map(([name, value]) => [h("dt", name), h("dd", value)]);
}

function abort(id, path, done) {
  const warning = "The open transaction is aborted, and its producer is fenced: it cannot write any more.";
  return confirmByName(`Abort the transaction of ${id}`, warning, id, "Abort transaction", async () => {
    await api.delete(path);
    notify(`Aborted the transaction of ${id}`);
    done();
  });
}

const COLUMNS = [
  { label: "Topic", cell: ({ topic }) => h("a", { href: place("topics", topic) }, topic), sort: ({ topic }) => topic },
  { label: "Partition", isNumber: true, cell: ({ partition }) => partition, sort: ({ partition }) => partition },
];
