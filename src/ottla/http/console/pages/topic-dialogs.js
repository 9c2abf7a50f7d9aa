// Creating, growing, emptying and deleting topics.

import { api, url } from "../parts/api.js";
import { confirmByName, form } from "../parts/dialog.js";
import { h } from "../parts/dom.js";
import { choice, field, partitionChoice } from "../parts/field.js";
import { notify } from "../parts/notice.js";
import { place } from "../parts/router.js";

const DAY_MS = 86_400_000;

const RETENTIONS = [
  ["", "The broker's default"],
  [String(DAY_MS / 24), "1 hour"],
  [String(DAY_MS), "1 day"],
  [String(7 * DAY_MS), "7 days"],
  [String(30 * DAY_MS), "30 days"],
  ["-1", "Forever"],
];

export function createTopic() {
  const name = h("input", {
    name: "name",
    required: true,
    autofocus: true,
    maxlength: 249,
    pattern: "[A-Za-z0-9._\\-]+",
    title: "ASCII letters, digits, '.', '_' and '-'",
    autocapitalize: "off",
    spellcheck: "false",
  });
  const partitions = h("input", { name: "partitions", type: "number", min: 1, max: 10000, placeholder: "default" });
  const others = h("textarea", { name: "configs", rows: 3, placeholder: "max.message.bytes=2097152" });
  const fields = [
    field("Name", name),
    h("div.two", field("Partitions", partitions), field("Keep messages for", choice("retention", RETENTIONS, ""))),
    field(
      "Clean up by",
      choice("cleanup", [
        ["", "Deleting old messages (default)"],
        ["compact", "Keeping the newest of each key"],
      ]),
    ),
    field("Other configs", others, "One to a line: name=value"),
  ];
  return form("Create topic", fields, {
    submit: "Create",
    send: async (given) => {
      const made = await api.post("/v1/topics", bodyOf(given));
      notify("Created ", h("a", { href: place("topics", made.name) }, made.name));
      location.hash = place("topics", made.name);
    },
  });
}

function bodyOf(given) {
  const lines = given
    .get("configs")
    .split("\n")
    .filter((line) => line.includes("="));
  const configs = Object.fromEntries(
    lines.map((line) => [line.split("=")[0].trim(), line.slice(line.indexOf("=") + 1).trim()]),
  );
  if (given.get("retention")) configs["retention.ms"] = given.get("retention");
  if (given.get("cleanup")) configs["cleanup.policy"] = given.get("cleanup");
  return { name: given.get("name"), partitions: Number(given.get("partitions") || -1), configs };
}

export function deleteTopic(name, done) {
  const warning = "All its messages are deleted permanently.";
  return confirmByName(`Delete ${name}`, warning, name, "Delete topic", async () => {
    await api.delete(url`/v1/topics/${name}`);
    notify(`Deleted ${name}`);
    done();
  });
}

export function addPartitions(topic, done) {
  const now = topic.partitions.length;
  const input = h("input", {
    name: "count",
    type: "number",
    min: now + 1,
    value: now + 1,
    required: true,
    autofocus: true,
  });
  const warning = "Keys may then go to other partitions than before. Partitions cannot be taken away again.";
  return form(`Partitions of ${topic.name}`, [h("p", warning), field("Partitions altogether", input)], {
    submit: "Add partitions",
    send: async (given) => {
      await api.post(url`/v1/topics/${topic.name}/partitions`, { count: Number(given.get("count")) });
      done();
    },
  });
}

export function deleteRecords(topic, done) {
  const partition = partitionChoice(topic);
  const extent = choice("extent", [
    ["before", "Those before an offset"],
    ["all", "All"],
  ]);
  const before = h("input", { name: "before", inputmode: "numeric", pattern: "[0-9]{1,19}", required: true });
  const typed = h("input", { name: "typed", autocapitalize: "off", spellcheck: "false" });
  const beforeField = field("Before offset", before, "This offset becomes the first.");
  const typedField = h("label", h("span", "Nothing will be left. Type ", h("code", topic.name), " to continue"), typed);
  const follow = () => {
    const end = topic.partitions.find((one) => String(one.partition) === partition.value)?.end_offset ?? 0;
    const isBefore = extent.value === "before";
    const isAll = !isBefore || (/^\d+$/.test(before.value) && BigInt(before.value) >= BigInt(end));
    beforeField.hidden = !isBefore;
    before.disabled = !isBefore;
    typedField.hidden = !isAll;
    typed.setCustomValidity(isAll && typed.value !== topic.name ? `Type ${topic.name}` : "");
  };
  for (const input of [partition, extent, before, typed]) input.addEventListener("input", follow);
  follow();
  const fields = [
    h("p", "Deleted messages cannot be restored."),
    h("div.two", field("Partition", partition), field("Messages", extent)),
    beforeField,
    typedField,
  ];
  return form(`Delete messages of ${topic.name}`, fields, {
    submit: "Delete messages",
    isDangerous: true,
    send: async (given) => {
      const offset = given.get("before");
      const body = { partition: Number(given.get("partition")), before_offset: offset ? BigInt(offset) : null };
      const left = await api.post(url`/v1/topics/${topic.name}/delete-records`, body);
      notify(`Partition ${left.partition} now begins at offset ${left.start_offset}`);
      done();
    },
  });
}
