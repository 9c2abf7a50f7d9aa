// A key or a value: its bytes, and what they are best shown as. Messages are asked for in base64, so nothing is lost.

import { asHex, asText, fromBase64 } from "./bytes.js";
import { isJson } from "./json-text.js";

const PREVIEW_BYTES = 32;

export class Payload {
  #encoded;
  #bytes;
  #text;

  /** `encoded` is base64, or null for none at all. */
  constructor(encoded) {
    this.#encoded = encoded;
  }

  get isNull() {
    return this.#encoded === null;
  }

  get bytes() {
    return (this.#bytes ??= fromBase64(this.#encoded ?? ""));
  }

  /** Undefined if it is no text. */
  get text() {
    this.#text ??= { found: this.isNull ? undefined : asText(this.bytes) };
    return this.#text.found;
  }

  get kind() {
    if (this.isNull) return "none";
    if (this.text === undefined) return "binary";
    return /^\s*[{[]/.test(this.text) && isJson(this.text) ? "json" : "text";
  }

  /** One line of it. */
  preview(length) {
    if (this.isNull) return "";
    if (this.text === undefined) return asHex(this.bytes.subarray(0, PREVIEW_BYTES));
    return this.text.slice(0, length).replaceAll(/\s+/g, " ");
  }
}
