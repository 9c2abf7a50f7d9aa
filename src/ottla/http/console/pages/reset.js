// Moving a group to another place, after a look at what that would change.

import { api, parse, url } from "../parts/api.js";
import { open } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { choice, field, msOf, timeInput } from "../parts/field.js";
import { count, plural } from "../parts/format.js";
import { attempt, notify } from "../parts/notice.js";
import { table } from "../parts/table.js";

const PLACES = [
  ["earliest", "The first message there is"],
  ["latest", "The end"],
  ["timestamp", "A time"],
  ["by", "By a number of messages, forward or back"],
  ["offsets", "Offsets from a file"],
];

export function resetGroup(group, done) {
  const to = choice("to", PLACES, "earliest");
  const time = timeInput("time");
  const by = h("input", { name: "by", type: "number", step: 1, value: -100 });
  const file = h("input", { name: "file", type: "file", accept: ".json,application/json" });
  const topics = h("input", { name: "topics", placeholder: "all that it reads", autocapitalize: "off" });
  const details = {
    timestamp: field("Time", time),
    by: field("Messages", by, "Negative: back"),
    offsets: field("File", file, "As saved by “Save offsets”"),
  };
  const preview = h("div");
  const refusal = h("div.refusal");
  const apply = h("button.primary", { type: "button", disabled: true }, "Reset offsets");
  const look = h("button", { type: "submit" }, "Preview");
  const path = url`/v1/groups/${group.id}/reset`;
  let wanted;

  const forget = () => {
    apply.disabled = true;
    replace(preview);
    for (const [name, element] of Object.entries(details)) element.hidden = to.value !== name;
  };
  const form = h(
    "form",
    { method: "dialog" },
    group.members.length > 0 &&
      h("p.problem", "The group has members. Stop them first: they would overwrite the reset."),
    field("Move to", to),
    Object.values(details),
    field("Topics", topics, "Separated by commas; empty for all that it has committed offsets for"),
    preview,
    refusal,
    h("footer", h("button.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"), look, apply),
  );
  form.addEventListener("input", forget);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await attempt(refusal, async () => {
      wanted = await bodyOf(to.value, { time, by, file, topics });
      const answer = await api.post(path, { ...wanted, dry_run: true });
      replace(preview, table(COLUMNS, { caption: "What would change" }).update(answer.offsets));
      apply.disabled = false;
    });
  });
  apply.addEventListener("click", async () => {
    apply.disabled = true;
    const isDone = await attempt(refusal, async () => {
      const answer = await api.post(path, wanted);
      notify(`${plural(answer.offsets.length, "partition")} of ${group.id} moved`);
      await done();
    });
    if (isDone) dialog.close();
  });
  forget();
  const dialog = open(`Reset ${group.id}`, form, { kind: "wide" });
  return dialog;
}

async function bodyOf(to, { time, by, file, topics }) {
  if (to === "offsets") {
    if (!file.files.length) throw new Error("Choose a file.");
    const saved = parse(await file.files[0].text());
    return { to, offsets: saved.offsets.map((one) => ({ ...one, offset: BigInt(one.offset) })) };
  }
  const body = { to };
  const names = topics.value
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  if (names.length) body.topics = names;
  if (to === "timestamp") {
    body.timestamp = msOf(time);
    if (body.timestamp === undefined) throw new Error("Choose a time.");
  }
  if (to === "by") body.by = Number(by.value);
  return body;
}

const COLUMNS = [
  { label: "Topic", cell: ({ topic }) => topic },
  { label: "Partition", isNumber: true, cell: ({ partition }) => partition },
  { label: "Now", isNumber: true, cell: ({ before }) => (before === null ? "none" : count(before)) },
  { label: "Then", isNumber: true, cell: ({ after }) => count(after) },
  { label: "Change", isNumber: true, cell: changeOf },
];

function changeOf({ before, after }) {
  const change = BigInt(after) - BigInt(before ?? 0);
  return `${change > 0n ? "+" : ""}${count(change)}`;
}
