// Messages as files: JSON, JSON lines and CSV. Bytes that are not text are written as base64, and say so.

import { Payload } from "../decode/payload.js";
import { h } from "../parts/dom.js";
import { download } from "../parts/download.js";

const FORMATS = [
  ["json", "JSON", "application/json", (rows) => `[\n${rows.map((one) => JSON.stringify(one)).join(",\n")}\n]\n`],
  ["ndjson", "JSON lines", "application/x-ndjson", (rows) => rows.map((one) => `${JSON.stringify(one)}\n`).join("")],
  ["csv", "CSV", "text/csv", csv],
];

/** Buttons that save `messages()` of a topic. */
export function exportButtons(topic, messages) {
  const buttons = FORMATS.map(([extension, label, type, make]) => {
    const save = () => download(`${topic}.${extension}`, type, [make(messages().map(exported))]);
    return h("button.quiet.small", { type: "button", onclick: save }, label);
  });
  return h("span.export", "Save as ", buttons);
}

function exported({ partition, offset, timestamp, key, value, headers }) {
  return { partition, offset, timestamp, ...part("key", key), ...part("value", value), headers };
}

function part(name, encoded) {
  const payload = new Payload(encoded);
  if (payload.isNull) return { [name]: null };
  return payload.text === undefined ? { [name]: encoded, [`${name}_encoding`]: "base64" } : { [name]: payload.text };
}

const COLUMNS = ["partition", "offset", "timestamp", "key", "key_encoding", "value", "value_encoding", "headers"];

function csv(rows) {
  const lines = rows.map((row) => {
    const cells = { ...row, headers: row.headers.length ? JSON.stringify(row.headers) : "" };
    return COLUMNS.map((name) => quoted(cells[name])).join(",");
  });
  return [COLUMNS.join(","), ...lines, ""].join("\r\n");
}

function quoted(value) {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
