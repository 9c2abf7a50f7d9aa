// Inputs with their names, and times as inputs write them.

import { h } from "./dom.js";

let fields = 0;

export function field(label, input, hint) {
  fields += 1;
  input.id = `field-${fields}`;
  const told = hint && h("small", { id: `hint-${fields}` }, hint);
  if (told) input.setAttribute("aria-describedby", told.id);
  return h("div.field", h("label", { for: input.id }, label), input, told);
}

export function choice(name, options, chosen) {
  const list = options.map(([value, label]) =>
    h("option", { value, selected: String(value) === String(chosen) }, label),
  );
  return h("select", { name }, list);
}

const MOST_CHOICES = 200;

/** A choice of one partition of a topic; of very many, its number. `none` is the label of no choice, if there is one. */
export function partitionChoice(topic, none, chosen = "") {
  const numbers = topic.partitions.map(({ partition }) => partition);
  if (numbers.length > MOST_CHOICES) {
    const range = { type: "number", min: 0, max: numbers.length - 1 };
    return h("input", { name: "partition", ...range, placeholder: none, required: !none, value: chosen || (none ? "" : "0") });
  }
  const options = numbers.map((number) => [number, `Partition ${number}`]);
  return choice("partition", none ? [["", none], ...options] : options, chosen);
}

export function heading(title, ...actions) {
  return h("header.title", h("h1", title), h("div.actions", actions));
}

export function card(title, ...content) {
  return h("section.card", title && h("h2", title), content);
}

/** A timestamp in the browser's time zone; `ms` fills it in. */
export function timeInput(name, ms) {
  const at = ms ? new Date(Number(ms)) : undefined;
  const value = at && new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  return h("input", { type: "datetime-local", name, step: 1, value });
}

export function msOf(input) {
  return input.value ? new Date(input.value).getTime() : undefined;
}

const FILTER = "filter.";

/** What to call the input of a filter: a form has methods, and an input named "contains" would hide one. */
export function filterName(name) {
  return FILTER + name;
}

/** What is filled in of a form, filters by their own names. */
export function filledIn(form) {
  const given = [...new FormData(form)].filter(([, value]) => value !== "");
  return Object.fromEntries(given.map(([name, value]) => [name.replace(FILTER, ""), value]));
}

export function badge(text, kind = "") {
  return h(kind ? `span.badge.${kind}` : "span.badge", text);
}
