// One subject: its versions side by side, its compatibility and mode, and the topic that uses it.

import { api, url } from "../parts/api.js";
import { diffView } from "../parts/diff.js";
import { h, replace } from "../parts/dom.js";
import { badge, card, choice, field, heading } from "../parts/field.js";
import { plural } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { readable, registry, topicOf } from "../parts/registry.js";
import { note, place } from "../parts/router.js";
import { deleteSubject, registerSchema } from "./schema-dialogs.js";
import { settings } from "./schemas.js";

export async function show({ params: { subject }, query, signal }) {
  const numbers = await registry.versions(subject, signal);
  const load = (number) => registry.version(subject, number, signal);
  const latest = await load(numbers.at(-1));
  const actions = [
    h(
      "button.primary",
      { onclick: () => registerSchema(subject, { ...latest, text: readable(latest) }) },
      icon("plus"),
      "Register version",
    ),
    h("button.danger", { onclick: () => deleteSubject(subject) }, icon("trash"), "Delete"),
  ];
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("schemas") }, "Schemas")),
    heading(subject, actions),
    await about(subject, numbers, latest, signal),
    card("Settings", await settings(subject, signal)),
    await versionsCard(numbers, load, query),
  );
}

async function about(subject, numbers, latest, signal) {
  const named = topicOf(subject);
  const referring = await registry.referring(subject, latest.version, signal);
  const hasTopic = named !== undefined && (await exists(named.topic, signal));
  const facts = [
    badge(latest.schemaType ?? "AVRO"),
    ` ${plural(numbers.length, "version")}, the latest with id ${latest.id}. `,
    hasTopic && ["Used by ", h("a", { href: place("topics", named.topic) }, named.topic), ` (${named.part}s). `],
    referring.length > 0 && `Referenced by the schemas ${referring.join(", ")}. `,
    latest.references?.length > 0 && [
      "References ",
      latest.references.map((each) => [h("a", { href: place("schemas", each.subject) }, each.subject), " "]),
    ],
  ];
  return h("p.soft", facts);
}

async function exists(topic, signal) {
  try {
    await api.get(url`/v1/topics/${topic}`, signal);
    return true;
  } catch (failed) {
    if (!failed.problem) throw failed;
    return false; // or may not be seen
  }
}

async function versionsCard(numbers, load, query) {
  const options = numbers.map((number) => [number, `Version ${number}`]);
  const given = (name, otherwise) => (numbers.includes(Number(query.get(name))) ? query.get(name) : otherwise);
  const left = choice("left", options, given("left", numbers.at(-2) ?? numbers[0]));
  const right = choice("right", options, given("right", numbers.at(-1)));
  const content = h("div");
  const draw = async () => {
    note({ left: left.value, right: right.value });
    const [before, after] = await Promise.all([load(left.value), load(right.value)]);
    const label = `Version ${before.version} and version ${after.version}`;
    const ids = h("p.soft", `Ids ${before.id} and ${after.id}.`);
    replace(content, ids, diffView(readable(before), readable(after), label));
  };
  left.addEventListener("change", draw);
  right.addEventListener("change", draw);
  await draw();
  return card("Versions", h("div.two", field("Left", left), field("Right", right)), content);
}
