// Avro binary by a schema, as JSON text. Longs are exact; what the schema does not explain is an error.

const PRIMITIVES = {
  null: () => "null",
  boolean: (reader) => String(reader.byte() !== 0),
  int: (reader) => String(reader.long()),
  long: (reader) => String(reader.long()),
  float: (reader) => number(reader.view(4).getFloat32(0, true)),
  double: (reader) => number(reader.view(8).getFloat64(0, true)),
  bytes: (reader) => JSON.stringify(latin1(reader.take(reader.length()))),
  string: (reader) => JSON.stringify(reader.string()),
};

export class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  get left() {
    return this.bytes.length - this.at;
  }

  take(length) {
    if (length < 0 || length > this.left) throw new Error("the bytes end too early for this schema");
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  byte() {
    return this.take(1)[0];
  }

  view(length) {
    const taken = this.take(length);
    return new DataView(taken.buffer, taken.byteOffset, length);
  }

  /** A zigzag varint, as BigInt. */
  long() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
    }
    throw new Error("a number is longer than 64 bits");
  }

  length() {
    return Number(this.long());
  }

  string() {
    return new TextDecoder("utf-8", { fatal: true }).decode(this.take(this.length()));
  }
}

/** The JSON text of one datum of this schema (a parsed JSON document). */
export function decodeAvro(schema, reader) {
  return decode(schema, reader, new Map());
}

function decode(schema, reader, named) {
  if (Array.isArray(schema)) {
    const branch = reader.length();
    if (!(branch in schema)) throw new Error(`a union of ${schema.length} has no branch ${branch}`);
    return decode(schema[branch], reader, named);
  }
  const type = typeof schema === "string" ? schema : schema.type;
  if (typeof type === "object") return decode(type, reader, named);
  if (type in PRIMITIVES) return PRIMITIVES[type](reader);
  if (type in COMPLEX) {
    if (schema.name) for (const name of namesOf(schema)) named.set(name, schema);
    return COMPLEX[type](schema, reader, named);
  }
  if (!named.has(type)) throw new Error(`the schema names no type ${type}`);
  return decode(named.get(type), reader, named);
}

const COMPLEX = {
  record: (schema, reader, named) => {
    const fields = schema.fields.map((field) => `${JSON.stringify(field.name)}:${decode(field.type, reader, named)}`);
    return `{${fields.join(",")}}`;
  },
  enum: (schema, reader) => JSON.stringify(schema.symbols[reader.length()] ?? null),
  fixed: (schema, reader) => JSON.stringify(latin1(reader.take(schema.size))),
  array: (schema, reader, named) => `[${blocks(reader, () => decode(schema.items, reader, named)).join(",")}]`,
  map: (schema, reader, named) => {
    const entries = blocks(reader, () => `${JSON.stringify(reader.string())}:${decode(schema.values, reader, named)}`);
    return `{${entries.join(",")}}`;
  },
};

function blocks(reader, one) {
  const found = [];
  for (let count = reader.length(); count !== 0; count = reader.length()) {
    if (count < 0) reader.long(); // the size of the block in bytes, which only skipping needs
    for (let index = Math.abs(count); index > 0; index -= 1) {
      found.push(one());
      if (found.length > 100_000) throw new Error("more items than a browser can show");
    }
  }
  return found;
}

function namesOf({ name, namespace }) {
  return namespace ? [name, `${namespace}.${name}`] : [name, name.split(".").at(-1)];
}

function latin1(bytes) {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

function number(value) {
  return Number.isFinite(value) ? String(value) : JSON.stringify(String(value));
}
