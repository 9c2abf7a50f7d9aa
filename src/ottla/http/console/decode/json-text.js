// JSON laid out and coloured by its tokens, never by its values: a number stays the number that was written.

import { h } from "../parts/dom.js";

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g;
const MOST_TOKENS = 20_000;
const INDENT = "  ";

export function isJson(text) {
  if (!/^\s*[{["\d\-tfn]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A <pre> of this document. */
export function prettyJson(text) {
  const pre = h("pre.json", { tabindex: 0 });
  const writer = new Writer(pre);
  let number = 0;
  for (const [token] of text.matchAll(TOKEN)) {
    if (number++ === MOST_TOKENS) {
      writer.text("\n… (cut here; the text view has all of it)");
      break;
    }
    writer.add(token);
  }
  return pre;
}

class Writer {
  #pre;
  #depth = 0;
  #isOpening = false;
  #inObject = [];
  #isName = false;

  constructor(pre) {
    this.#pre = pre;
  }

  add(token) {
    if (token === "}" || token === "]") this.#close(token);
    else if (token === ",") this.#comma();
    else if (token === ":") this.#colon();
    else this.#value(token);
  }

  text(text) {
    this.#pre.append(text);
  }

  #line() {
    this.text(`\n${INDENT.repeat(this.#depth)}`);
  }

  #close(token) {
    this.#depth -= 1;
    this.#inObject.pop();
    if (!this.#isOpening) this.#line();
    this.#isOpening = false;
    this.#isName = false;
    this.text(token);
  }

  #comma() {
    this.text(",");
    this.#line();
    this.#isName = this.#inObject.at(-1) ?? false;
  }

  #colon() {
    this.text(": ");
    this.#isName = false;
  }

  #value(token) {
    if (this.#isOpening) this.#line();
    this.#isOpening = token === "{" || token === "[";
    if (!this.#isOpening) {
      this.#pre.append(h(`span.${this.#isName ? "name" : kindOf(token)}`, token));
      return;
    }
    this.#depth += 1;
    this.#inObject.push(token === "{");
    this.#isName = token === "{";
    this.text(token);
  }
}

function kindOf(token) {
  if (token[0] === '"') return "string";
  return /[tfn]/.test(token[0]) ? "word" : "numeral";
}
