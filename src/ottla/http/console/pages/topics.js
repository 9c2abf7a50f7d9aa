// All topics.

import { api } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { bytes, count } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { createTopic, deleteTopic } from "./topic-dialogs.js";

const REFRESH_MS = 5000;

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const search = h("input.grow", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name" });
  const internal = h("input", { type: "checkbox" });
  const list = table(
    columns(() => load()),
    { caption: "Topics", empty: "No topic matches." },
  );
  let topics = [];

  const draw = () => {
    const found = topics.filter((topic) => topic.name.includes(search.value.trim()));
    list.update(found, topics.length === 0 ? noTopics() : undefined);
  };
  const load = () =>
    attempt(refusal, async () => {
      topics = (await api.get(`/v1/topics?internal=${internal.checked}`, signal)).topics;
      draw();
    });
  search.addEventListener("input", draw);
  internal.addEventListener("change", load);
  await every(REFRESH_MS, signal, load);
  return h(
    "div.page",
    heading("Topics", h("button.primary", { onclick: () => createTopic() }, icon("plus"), "Create topic")),
    refusal,
    card("", h("div.bar-of-fields", search, h("label.check", internal, "Show the broker's own")), list),
  );
}

function noTopics() {
  const create = h("button.link", { type: "button", onclick: () => createTopic() }, "Create one");
  return ["No topics yet. ", create, ", or ", h("a", { href: place("connect") }, "connect a client"), " that writes."];
}

function columns(reload) {
  const name = (topic) => [
    h("a", { href: place("topics", topic.name) }, topic.name),
    topic.is_internal && [" ", badge("internal")],
  ];
  return [
    { label: "Topic", cell: (topic) => h("span", name(topic)), sort: (topic) => topic.name },
    {
      label: "Partitions",
      isNumber: true,
      cell: (topic) => count(topic.partitions),
      sort: (topic) => topic.partitions,
    },
    { label: "Messages", isNumber: true, cell: (topic) => count(topic.messages), sort: (topic) => topic.messages },
    { label: "Size", isNumber: true, cell: (topic) => bytes(topic.size_bytes), sort: (topic) => topic.size_bytes },
    { label: "", isNumber: true, cell: (topic) => actions(topic, reload) },
  ];
}

function actions(topic, reload) {
  if (topic.is_internal) return undefined;
  const label = `Delete ${topic.name}`;
  return h(
    "button.quiet.only-icon.small",
    { "aria-label": label, title: label, onclick: () => deleteTopic(topic.name, reload) },
    icon("trash"),
  );
}
