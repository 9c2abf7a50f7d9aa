// One topic: its head, and a tab for each thing to do with it.

import { api, url } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { badge, heading } from "../parts/field.js";
import { bytes, plural } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { place } from "../parts/router.js";
import { tabs } from "../parts/tabs.js";
import { configEditor } from "./configs.js";
import { deleteTopic } from "./topic-dialogs.js";

const TABS = [
  ["messages", "Messages", () => import("./messages.js")],
  ["live", "Live tail", () => import("./tail.js")],
  ["produce", "Produce", () => import("./produce.js")],
  ["partitions", "Partitions", () => import("./partitions.js")],
  ["configs", "Configs", async () => ({ show: showConfigs })],
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
  const [, , load] = TABS.find(([known]) => known === tab) ?? TABS[0];
  const content = await (await load()).show({ ...here, topic, reload });
  const remove = h(
    "button.danger",
    { onclick: () => deleteTopic(name, () => (location.hash = place("topics"))) },
    icon("trash"),
    "Delete",
  );
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("topics") }, "Topics")),
    heading(name, topic.is_internal ? [] : remove),
    about,
    tabs("Topic", ["topics", name], TABS, tab),
    content,
  );
}

function showConfigs({ topic, signal }) {
  return configEditor(url`/v1/topics/${topic.name}/configs`, signal);
}
