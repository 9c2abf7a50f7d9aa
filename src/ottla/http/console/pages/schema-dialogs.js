// Registering schemas, checked first, and deleting them.

import { confirmByName, form } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { choice, field } from "../parts/field.js";
import { attempt, notify } from "../parts/notice.js";
import { registry, TYPES } from "../parts/registry.js";
import { place } from "../parts/router.js";

/** A new version of `subject`, which begins with `latest`; without it, a subject of any name. */
export function registerSchema(subject, latest) {
  const name = h("input", {
    name: "subject",
    required: true,
    value: subject ?? "",
    readonly: subject !== undefined,
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "orders-value",
  });
  const type = choice(
    "type",
    TYPES.map((each) => [each, each]),
    latest?.schemaType ?? "AVRO",
  );
  const text = h("textarea.schema", { name: "schema", rows: 14, required: true, spellcheck: "false" });
  text.value = latest?.text ?? "";
  const result = h("div", { role: "status" });
  const body = () => ({ schema: text.value, schemaType: type.value, references: latest?.references ?? [] });
  const check = async () => {
    const found = await registry.check(name.value, body());
    replace(result, verdict(found));
  };
  text.addEventListener("input", () => replace(result));
  const button = h("button", { type: "button", onclick: () => attempt(result, check) }, "Check");
  const fields = [
    h("div.two", field("Subject", name, "TOPIC-value or TOPIC-key"), field("Type", type)),
    field("Schema", text),
    h("div.actions", button),
    result,
  ];
  return form(subject === undefined ? "Register schema" : "Register version", fields, {
    submit: "Register",
    send: async () => {
      const { id, version } = await registry.register(name.value, body());
      notify(`Registered ${name.value}, version ${version}, id ${id}`);
      const goal = place("schemas", name.value);
      if (location.hash === goal) dispatchEvent(new HashChangeEvent("hashchange"));
      else location.hash = goal;
    },
  });
}

function verdict({ is_compatible: isCompatible, messages }) {
  if (isCompatible) return h("p", "Compatible with the versions that it is checked against.");
  return h(
    "div.problem",
    h("strong", "Not compatible."),
    h(
      "ul",
      messages.map((each) => h("li", each)),
    ),
  );
}

export function deleteSubject(subject) {
  const warning = "All versions are deleted. Messages with their ids can still be read: ids remain.";
  return confirmByName("Delete subject", warning, subject, "Delete subject", async () => {
    await registry.deleteSubject(subject);
    notify(`Deleted ${subject}`);
    location.hash = place("schemas");
  });
}
