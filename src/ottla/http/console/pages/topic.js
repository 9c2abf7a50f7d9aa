// One topic: its head, and a tab for each thing to do with it.

import { api, url } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { bytes, plural } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { place } from "../parts/router.js";
import { notAllowed } from "../parts/session.js";
import { tabs } from "../parts/tabs.js";
import { configEditor } from "./configs.js";
import { deleteTopic } from "./topic-dialogs.js";

// The last of each: the operation on the topic that it needs, beside DESCRIBE.
const TABS = [
  ["messages", "Messages", () => import("./messages.js"), "READ"],
  ["live", "Live tail", () => import("./tail.js"), "READ"],
  ["produce", "Produce", () => import("./produce.js"), "WRITE"],
  ["consumers", "Consumers", () => import("./consumers.js")],
  ["partitions", "Partitions", () => import("./partitions.js")],
  ["configs", "Configs", async () => ({ show: showConfigs }), "DESCRIBE_CONFIGS"],
];

export async function show(here) {
  const { name, tab = "messages" } = here.params;
  const path = url`/v1/topics/${name}`;
  const topic = await api.get(path, here.signal);
  const about = h("p.soft");
  const describe = (shown) => {
    const facts = [
      plural(shown.messages, "message"),
      plural(shown.partitions.length, "partition"),
      bytes(shown.size_bytes),
    ];
    replace(about, facts.join(" · "), shown.is_internal && [" ", badge("internal")]);
  };
  describe(topic);
  const reload = async () => {
    const shown = await api.get(path, here.signal);
    describe(shown);
    return shown;
  };
  const [, label, load, needed] = TABS.find(([known]) => known === tab) ?? TABS[0];
  const isAllowed = needed === undefined || topic.operations.includes(needed);
  const content = isAllowed
    ? await (await load()).show({ ...here, topic, reload })
    : card(label, notAllowed("see or use this", needed, `the topic ${name}`));
  const remove = h(
    "button.danger",
    { onclick: () => deleteTopic(name, () => (location.hash = place("topics"))) },
    icon("trash"),
    "Delete",
  );
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("topics") }, "Topics")),
    heading(name, !topic.is_internal && topic.operations.includes("DELETE") && remove),
    about,
    tabs("Topic", ["topics", name], TABS, tab),
    content,
  );
}

function showConfigs({ topic, signal }) {
  return configEditor(url`/v1/topics/${topic.name}/configs`, signal);
}
