// Avro without its schema: what the envelope says, and what the fields might be.
//
// Envelopes: a schema registry's (0, then the id in four bytes), Avro's single-object encoding (C3 01, then a
// fingerprint), and a container file, which carries its schema.

import { Reader, decodeAvro } from "./avro.js";
import { asHex, asText } from "./bytes.js";

const REGISTRY_HEAD = 5;
const SINGLE_OBJECT_HEAD = 10;
const MOST_FIELDS = 500;
const YEAR_2000_MS = 946_684_800_000n;
const YEAR_2100_MS = 4_102_444_800_000n;
// The highest byte of a double between a millionth and a million, of either sign.
const DOUBLE_TOPS = new Set([0x3e, 0x3f, 0x40, 0x41, 0xbe, 0xbf, 0xc0, 0xc1]);

/** { what, start }: what these bytes say they are, and where the datum begins. */
export function envelopeOf(bytes) {
  const [first, second] = bytes;
  if (asText(bytes.subarray(0, 3)) === undefined && String.fromCharCode(...bytes.subarray(0, 4)) === "Obj\u0001") {
    return { what: "an Avro container file", start: 0, isContainer: true };
  }
  if (first === 0 && bytes.length > REGISTRY_HEAD) {
    const id = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    return { what: `a schema registry's envelope, schema id ${id}`, start: REGISTRY_HEAD };
  }
  if (first === 0xc3 && second === 0x01 && bytes.length >= SINGLE_OBJECT_HEAD) {
    return { what: `single-object encoding, schema ${asHex(bytes.subarray(2, 10))}`, start: SINGLE_OBJECT_HEAD };
  }
  return { what: "no envelope", start: 0 };
}

/** The data of a container file, as JSON text. */
export function readContainer(bytes) {
  const reader = new Reader(bytes, 4);
  const meta = new Map();
  for (let count = reader.length(); count !== 0; count = reader.length()) {
    if (count < 0) reader.long();
    for (let index = Math.abs(count); index > 0; index -= 1) meta.set(reader.string(), reader.take(reader.length()));
  }
  const codec = asText(meta.get("avro.codec") ?? new Uint8Array()) || "null";
  if (codec !== "null") throw new Error(`the file is compressed with ${codec}, which is not read here`);
  const schema = JSON.parse(asText(meta.get("avro.schema")));
  reader.take(16);
  const data = [];
  while (reader.left > 0) {
    const count = reader.length();
    reader.long();
    for (let index = 0; index < count; index += 1) data.push(decodeAvro(schema, reader));
    reader.take(16);
  }
  return `[${data.join(",")}]`;
}

/** [{ kind, value, at }]: what the bytes from `start` on could be, field by field. */
export function guessFields(bytes, start) {
  const fields = [];
  let at = start;
  while (at < bytes.length && fields.length < MOST_FIELDS) {
    const guess = guessString(bytes, at) ?? guessNumber(bytes, at);
    fields.push({ ...guess, at });
    at = guess.next;
  }
  return fields;
}

function guessString(bytes, at) {
  const reader = new Reader(bytes, at);
  try {
    const length = reader.length();
    if (length < 2) return undefined;
    const text = asText(reader.take(length));
    return text === undefined ? undefined : { kind: "string", value: text, next: reader.at };
  } catch {
    return undefined;
  }
}

function guessNumber(bytes, at) {
  const reader = new Reader(bytes, at);
  let long;
  try {
    long = reader.long();
  } catch {
    return guessDouble(bytes, at) ?? { kind: "bytes", value: asHex(bytes.subarray(at)), next: bytes.length };
  }
  if (long >= YEAR_2000_MS && long <= YEAR_2100_MS) {
    return { kind: "long (a time?)", value: `${long} · ${new Date(Number(long)).toISOString()}`, next: reader.at };
  }
  const double = guessDouble(bytes, at);
  if (double) return double;
  const isSmall = long >= 0n && long <= 1n;
  return { kind: isSmall ? "int, boolean or branch" : "int or long", value: String(long), next: reader.at };
}

function guessDouble(bytes, at) {
  const taken = bytes.subarray(at, at + 8);
  if (taken.length < 8 || !DOUBLE_TOPS.has(taken[7])) return undefined;
  // A round number begins with zeros, any other has high bytes; small numbers in a row have neither.
  const isRound = taken[0] === 0 && taken[1] === 0;
  if (!isRound && taken.filter((byte) => byte >= 0x80).length < 2) return undefined;
  const value = new DataView(bytes.buffer, bytes.byteOffset + at).getFloat64(0, true);
  return { kind: "double", value: String(value), next: at + 8 };
}
