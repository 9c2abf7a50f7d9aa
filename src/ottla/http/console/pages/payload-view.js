// A key or a value, in the ways there are to look at bytes.

import { decodeAvro, Reader } from "../decode/avro.js";
import { envelopeOf, guessFields, readContainer } from "../decode/avro-guess.js";
import { hexDump } from "../decode/bytes.js";
import { isJson, prettyJson } from "../decode/json-text.js";
import { h, replace } from "../parts/dom.js";
import { download } from "../parts/download.js";
import { field } from "../parts/field.js";
import { bytes as sizeOf } from "../parts/format.js";
import { switcher } from "../parts/tabs.js";
import { schemaIdOf, schemaView } from "./schema-view.js";

const MOST_BYTES = 64 * 1024;
const lenient = new TextDecoder();

const VIEWS = [
  ["json", "JSON"],
  ["text", "Text"],
  ["hex", "Hex"],
  ["avro", "Avro"],
];

/** `at`: where the message is, and which part of it this is; an Avro schema is remembered for its topic and part. */
export function payloadView(title, payload, at) {
  if (payload.isNull) return h("section.payload", h("h2", title), h("p.soft", "None."));
  if (payload.isEmpty) return h("section.payload", h("h2", title), h("p.soft", "Empty: no bytes."));
  const hasSchema = payload.kind === "binary" && schemaIdOf(payload.bytes) !== undefined;
  const binary = hasSchema ? "schema" : isAvro(payload.bytes) ? "avro" : "hex";
  const first = { json: "json", text: "text", binary }[payload.kind];
  const content = h("div.payload");
  const pick = (name) => replace(content, SHOW[name](payload, at));
  pick(first);
  const views = hasSchema ? [["schema", "Schema"], ...VIEWS] : VIEWS;
  const save = h("button.quiet.small", { type: "button", onclick: () => saveFile(payload, at) }, "Download");
  const head = h("div.card-head", h("h2", title), switcher(`${title} as`, views, first, pick), save);
  return h("section.payload", head, content);
}

const FILES = { json: ["json", "application/json"], text: ["txt", "text/plain"], binary: ["bin", "application/octet-stream"] };

function saveFile(payload, { topic, partition, offset, part }) {
  const [extension, type] = FILES[payload.kind];
  download(`${topic}-${partition}-${offset}-${part}.${extension}`, type, [payload.bytes]);
}

const SHOW = {
  schema: (payload, at) => schemaView(payload.bytes, at, () => SHOW.avro(payload, at)),
  json: (payload) =>
    payload.text !== undefined && isJson(payload.text) ? prettyJson(payload.text) : h("p.soft", "This is not JSON."),
  text: (payload) => capped(payload.bytes, (bytes) => h("pre.text", { tabindex: 0 }, lenient.decode(bytes))),
  hex: (payload) => capped(payload.bytes, (bytes) => h("pre", { tabindex: 0 }, hexDump(bytes))),
  avro: (payload, { topic, part }) => avroView(payload.bytes, `${topic}/${part}`),
};

function capped(bytes, show) {
  const isCut = bytes.length > MOST_BYTES;
  const shown = show(bytes.subarray(0, MOST_BYTES));
  return isCut ? [shown, h("p.soft", `The first ${sizeOf(MOST_BYTES)} of ${sizeOf(bytes.length)}.`)] : shown;
}

function isAvro(bytes) {
  return envelopeOf(bytes).what !== "no envelope";
}

function avroView(bytes, place) {
  const envelope = envelopeOf(bytes);
  const decoded = h("div.payload");
  const kept = `avro:${place}`;
  const schema = h("textarea", {
    rows: 3,
    value: localStorage.getItem(kept) ?? "",
    placeholder: '{"type": "record", …}',
  });
  const draw = () => {
    if (schema.value) localStorage.setItem(kept, schema.value);
    else localStorage.removeItem(kept);
    replace(decoded, avroContent(bytes, envelope, schema.value));
  };
  schema.addEventListener("change", draw);
  draw();
  return [
    h("p.soft", `Found ${envelope.what}.`),
    decoded,
    !envelope.isContainer && field("Its schema, if you have it", schema, "Kept in this browser only."),
  ];
}

function avroContent(bytes, envelope, schema) {
  try {
    if (envelope.isContainer) return prettyJson(readContainer(bytes));
    if (schema) return prettyJson(decodeAvro(JSON.parse(schema), new Reader(bytes, envelope.start)));
  } catch (wrong) {
    return [h("p.problem", `It does not fit: ${wrong.message}.`), guessed(bytes, envelope)];
  }
  return guessed(bytes, envelope);
}

function guessed(bytes, { start }) {
  const rows = guessFields(bytes, start).map(({ kind, value, at }) =>
    h("tr", h("td.number.mono", at), h("td", kind), h("td.mono", value)),
  );
  const head = h(
    "tr",
    ["Byte", "Could be", "Value"].map((label) => h("th", { scope: "col" }, label)),
  );
  return [h("p.soft", "Without a schema this is a guess:"), h("table", h("thead", head), h("tbody", rows))];
}
