// All subjects of the schema registry.

import { api } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { badge, card, choice, field, heading } from "../parts/field.js";
import { count } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { attempt, notify } from "../parts/notice.js";
import { LEVELS, MODES, registry, topicOf } from "../parts/registry.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { registerSchema } from "./schema-dialogs.js";

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const search = h("input.grow", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name" });
  const [found, topics] = await Promise.all([registry.latest(signal), topicNames(signal)]);
  const list = table(columns(topics), { caption: "Subjects", empty: "No subject matches." });
  const draw = () => {
    const shown = found.filter((each) => each.subject.includes(search.value.trim()));
    list.update(shown, found.length === 0 ? "No schemas yet." : undefined);
  };
  search.addEventListener("input", draw);
  draw();
  const add = h("button.primary", { onclick: () => registerSchema() }, icon("plus"), "Register schema");
  return h(
    "div.page",
    heading("Schemas", add),
    refusal,
    card("", h("div.bar-of-fields", search), list),
    card("Defaults of all subjects", await settings(undefined, signal)),
  );
}

/** Those that one may see; a topic that is not among them is not linked. */
async function topicNames(signal) {
  const { topics } = await api.get("/v1/topics?internal=false", signal);
  return new Set(topics.map(({ name }) => name));
}

function columns(topics) {
  return [
    {
      label: "Subject",
      cell: ({ subject }) => h("a", { href: place("schemas", subject) }, subject),
      sort: ({ subject }) => subject,
    },
    { label: "Type", cell: ({ schemaType }) => badge(schemaType ?? "AVRO"), sort: ({ schemaType }) => schemaType ?? "" },
    { label: "Version", isNumber: true, cell: ({ version }) => count(version), sort: ({ version }) => version },
    { label: "Id", isNumber: true, cell: ({ id }) => count(id), sort: ({ id }) => id },
    { label: "Topic", cell: ({ subject }) => topicLink(subject, topics) },
  ];
}

export function topicLink(subject, topics) {
  const named = topicOf(subject);
  if (named === undefined || !topics.has(named.topic)) return h("span.soft", "none");
  return h("span", h("a", { href: place("topics", named.topic) }, named.topic), ` (${named.part}s)`);
}

const KINDS = [
  ["config", "Compatibility", LEVELS, (answer) => answer.compatibilityLevel],
  ["mode", "Mode", MODES, (answer) => answer.mode],
];

/** Compatibility and mode, of a subject or of all; what one may not see is said in its place. */
export async function settings(subject, signal) {
  const shown = KINDS.map(async ([kind, label, values, valueOf]) => {
    const refusal = h("div.refusal");
    try {
      const value = valueOf(await registry.setting(kind, subject, signal));
      const select = choice(
        kind,
        values.map((each) => [each, each]),
        value,
      );
      select.addEventListener("change", () =>
        attempt(refusal, async () => {
          await registry.set(kind, subject, select.value);
          notify(`${label} is ${select.value} now`);
        }),
      );
      return h("div", field(label, select), refusal);
    } catch (failed) {
      if (!failed.problem) throw failed;
      return h("div", replace(h("p.soft"), `${label}: ${failed.message}`));
    }
  });
  return h("div.two", await Promise.all(shown));
}
