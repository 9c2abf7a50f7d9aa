// A key or a value: its bytes, and what they are best shown as. Messages are asked for in base64, so nothing is lost.

import { asHex, asText, beginningAsText, fromBase64 } from "./bytes.js";
import { isJson } from "./json-text.js";

const PREVIEW_BYTES = 32;
const PREVIEW_LETTERS = 400; // of base64, whose letters come in fours

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

  get isEmpty() {
    return this.#encoded === "";
  }

  get bytes() {
    return (this.#bytes ??= fromBase64(this.#encoded ?? ""));
  }

  /** Undefined if it is not text. */
  get text() {
    this.#text ??= { found: this.isNull ? undefined : asText(this.bytes) };
    return this.#text.found;
  }

  get kind() {
    if (this.isNull) return "none";
    if (this.text === undefined) return "binary";
    return /^\s*[{[]/.test(this.text) && isJson(this.text) ? "json" : "text";
  }

  /** { text, isBinary }: one line of how it begins, without a look at the rest. */
  preview() {
    const bytes = fromBase64(this.#encoded.slice(0, PREVIEW_LETTERS));
    const text = beginningAsText(bytes);
    return text === undefined
      ? { text: asHex(bytes.subarray(0, PREVIEW_BYTES)), isBinary: true }
      : { text: text.replaceAll(/\s+/g, " "), isBinary: false };
  }
}
