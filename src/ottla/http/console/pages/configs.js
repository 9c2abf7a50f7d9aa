// Configs of a topic or of the broker: what they are, where from, and changing them.

import { api } from "../parts/api.js";
import { form } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { badge, card, field } from "../parts/field.js";
import { bytes, duration } from "../parts/format.js";
import { notify } from "../parts/notice.js";
import { table } from "../parts/table.js";

const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: "set for this topic",
  DYNAMIC_BROKER_CONFIG: "set for this broker",
  DYNAMIC_DEFAULT_BROKER_CONFIG: "set for all brokers",
  STATIC_BROKER_CONFIG: "from the settings",
  DEFAULT_CONFIG: "default",
};

export async function configEditor(path, signal) {
  let { configs } = await api.get(path, signal);
  const search = h("input.grow", {
    type: "search",
    placeholder: "Filter by name",
    "aria-label": "Filter configs by name",
  });
  const changed = h("input", { type: "checkbox" });
  const list = table(
    columns((config) => edit(config)),
    { caption: "Configs", empty: "No config matches." },
  );

  const draw = () =>
    list.update(
      configs.filter(
        ({ name, is_default: isDefault }) => name.includes(search.value.trim()) && !(changed.checked && isDefault),
      ),
    );

  function edit(config) {
    const input = h("input", { name: "value", value: config.value ?? "", autofocus: true });
    const send = async (value) => {
      configs = (await api.patch(path, { configs: { [config.name]: value } })).configs;
      notify(`${config.name} is changed`);
      draw();
    };
    const hint = h("small");
    const explain = () => replace(hint, meaning(config.name, input.value));
    input.addEventListener("input", explain);
    explain();
    const toDefault = h("input", { type: "checkbox", name: "default" });
    toDefault.addEventListener("change", () => (input.disabled = toDefault.checked));
    const fields = [
      config.documentation && h("p.soft", config.documentation),
      field("Value", input),
      hint,
      h("label.check", toDefault, "Use the default instead"),
    ];
    form(config.name, fields, {
      submit: "Save",
      send: (given) => send(given.has("default") ? null : given.get("value")),
    });
  }

  search.addEventListener("input", draw);
  changed.addEventListener("change", draw);
  draw();
  return card("", h("div.bar-of-fields", search, h("label.check", changed, "Only those that were set")), list);
}

function columns(edit) {
  return [
    {
      label: "Config",
      cell: (config) => h("span.config-name", { title: config.documentation ?? "" }, config.name),
      sort: (config) => config.name,
    },
    { label: "Value", cell: valueOf },
    {
      label: "From",
      cell: (config) => badge(SOURCES[config.source] ?? config.source, config.is_default ? "" : "good"),
      sort: (config) => config.source,
    },
    { label: "", isNumber: true, cell: (config) => action(config, edit) },
  ];
}

function valueOf({ name, value, is_sensitive: isSecret }) {
  if (isSecret) return h("span.soft", "secret");
  if (!value) return h("span.soft", value === "" ? "empty" : "none");
  return h("span", h("span.mono", value), " ", h("small", meaning(name, value)));
}

function action(config, edit) {
  if (config.is_read_only) return undefined;
  return h("button.quiet.small", { "aria-label": `Edit ${config.name}`, onclick: () => edit(config) }, "Edit");
}

const NO_LIMIT = new Set(["-1", "9223372036854775807"]);

function meaning(name, value) {
  if (!/^-?\d+$/.test(value)) return "";
  if (NO_LIMIT.has(value) && /\.(ms|bytes|messages)$/.test(name)) return "no limit";
  if (name.endsWith(".bytes") && Number(value) >= 1024) return bytes(value);
  return name.endsWith(".ms") && Number(value) >= 1000 ? duration(Number(value)) : "";
}
