// Writing a message by hand.

import { isJson } from "../decode/json-text.js";
import { api, url } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { choice, field, msOf, partitionChoice, timeInput } from "../parts/field.js";
import { plural } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { attempt } from "../parts/notice.js";
import { messagePlace } from "./message-parts.js";

const ENCODINGS = [
  ["utf8", "Text"],
  ["json", "JSON"],
  ["base64", "Base64"],
  ["hex", "Hex"],
  ["none", "None"],
];
const MOST_COPIES = 1000;

export function show({ topic, reload }) {
  const written = h("p", { role: "status" });
  const refusal = h("div.refusal");
  const headers = h("div.payload");
  const add = h(
    "button.quiet.small",
    { type: "button", onclick: () => addHeader(headers) },
    icon("plus"),
    "Add header",
  );
  const value = h("textarea", { name: "value", rows: 8, placeholder: '{"hello": "world"}', spellcheck: "false" });
  const form = h(
    "form.card",
    h("div.two", field("Key", h("input", { name: "key" })), field("Key is", choice("key_encoding", ENCODINGS, "utf8"))),
    field("Value", value),
    h(
      "div.two",
      field("Value is", choice("value_encoding", ENCODINGS, "utf8")),
      field("Partition", partitionChoice(topic, "By the key")),
    ),
    h(
      "div.two",
      field("Time", timeInput("time"), "Empty: now"),
      field(
        "How many times",
        h("input", { name: "copies", type: "number", min: 1, max: MOST_COPIES, value: 1, required: true }),
      ),
    ),
    h("section.payload", h("h2", "Headers"), headers, h("div", add)),
    refusal,
    h("div.bar-of-fields", h("button.primary", { type: "submit" }, "Send"), written),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    replace(written);
    await attempt(refusal, async () => {
      const messages = Array(Number(form.elements.copies.value)).fill(messageOf(form, headers));
      const answer = await api.post(url`/v1/topics/${topic.name}/messages`, { messages });
      replace(written, saying(topic.name, answer));
      await reload();
    });
  });
  return form;
}

function addHeader(headers) {
  const row = h(
    "div.header-row",
    h("input", { placeholder: "Name", "aria-label": "Header name", required: true }),
    h("input", { placeholder: "Value", "aria-label": "Header value" }),
    h(
      "button.quiet.only-icon",
      { type: "button", "aria-label": "Remove header", onclick: () => row.remove() },
      icon("close"),
    ),
  );
  headers.append(row);
  row.firstElementChild.focus();
}

function messageOf(form, headers) {
  const fields = form.elements;
  const message = { ...payloadOf(fields, "key"), ...payloadOf(fields, "value") };
  if (fields.partition.value) message.partition = Number(fields.partition.value);
  const timestamp = msOf(fields.time);
  if (timestamp !== undefined) message.timestamp = timestamp;
  message.headers = [...headers.children].map(({ children: [name, value] }) => ({
    name: name.value,
    value: value.value,
  }));
  return message;
}

/** Text goes as it stands, JSON too once it is known to be some: its bytes are those that were typed. */
function payloadOf(fields, name) {
  const encoding = fields[`${name}_encoding`].value;
  const text = fields[name].value;
  if (encoding === "none" || (name === "key" && text === "")) return {};
  if (encoding === "json" && !isJson(text)) throw new Error(`The ${name} is not JSON.`);
  return { [name]: text, [`${name}_encoding`]: encoding === "json" ? "utf8" : encoding };
}

function saying(topic, { written, offsets: [first] }) {
  const { partition, offset } = first;
  const link = h("a", { href: messagePlace(topic, first) }, `partition ${partition}, offset ${offset}`);
  return [`${plural(written, "message")} written: `, link];
}
