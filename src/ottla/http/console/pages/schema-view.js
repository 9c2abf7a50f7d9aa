// A key or value that carries the id of a schema, decoded by it.

import { decodeAvro, Reader } from "../decode/avro.js";
import { prettyJson } from "../decode/json-text.js";
import { api, url, withQuery } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { registry } from "../parts/registry.js";
import { place } from "../parts/router.js";

const HEAD = 5;

/** The id before the data; undefined if there is none. */
export function schemaIdOf(bytes) {
  return bytes.length >= HEAD && bytes[0] === 0
    ? new DataView(bytes.buffer, bytes.byteOffset).getUint32(1)
    : undefined;
}

/** Filled in once the schema is here. `at`: where the message is, and `part` of it; `otherwise` is shown without one. */
export function schemaView(bytes, at, otherwise) {
  const content = h("div.payload", h("p.soft", "Loading its schema."));
  decoded(bytes, at).then(
    (shown) => replace(content, shown),
    (failed) => replace(content, h("p.soft", `Not decoded: ${failed.message}.`), otherwise()),
  );
  return content;
}

async function decoded(bytes, at) {
  const id = schemaIdOf(bytes);
  const [{ schema, schemaType = "AVRO" }, places] = await Promise.all([
    registry.byId(id, { format: "resolved" }),
    registry.places(id),
  ]);
  const text = await TEXTS[schemaType](bytes, schema, at);
  const names = places.map(({ subject, version }) => [
    h("a", { href: place("schemas", subject) }, subject),
    ` version ${version} `,
  ]);
  return [h("p.soft", `${schemaType}, schema id ${id}: `, names), prettyJson(text)];
}

const TEXTS = {
  AVRO: (bytes, schema) => decodeAvro(JSON.parse(schema), new Reader(bytes, HEAD)),
  JSON: (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(HEAD)),
  PROTOBUF: (bytes, _, at) => byBroker(at),
};

/** The broker decodes Protobuf. */
async function byBroker({ topic, partition, offset, part }) {
  const query = { partition, offset, limit: 1, keys: "schema", values: "schema" };
  const { messages } = await api.get(withQuery(url`/v1/topics/${topic}/messages`, query));
  const [message] = messages;
  if (message?.[`${part}_encoding`] !== "schema") {
    throw new Error("It does not fit its schema, or the broker lacks the package protobuf");
  }
  return JSON.stringify(message[part]);
}
