// Inputs with their names, and times as inputs write them.

import { h } from "./dom.js";

export function field(label, input, hint) {
  return h("label.field", h("span", label), input, hint && h("small", hint));
}

export function choice(name, options, chosen) {
  const list = options.map(([value, label]) => h("option", { value, selected: String(value) === String(chosen) }, label));
  return h("select", { name }, list);
}

export function heading(title, ...actions) {
  return h("header.title", h("h1", title), h("div.actions", actions));
}

export function card(title, ...content) {
  return h("section.card", title && h("h2", title), content);
}

export function timeInput(name) {
  return h("input", { type: "datetime-local", name, step: 1 });
}

export function msOf(input) {
  return input.value ? new Date(input.value).getTime() : undefined;
}

export function badge(text, kind = "") {
  return h(kind ? `span.badge.${kind}` : "span.badge", text);
}
