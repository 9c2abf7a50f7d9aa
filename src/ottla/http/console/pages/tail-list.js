// A list that grows by thousands a second: it holds the newest few thousand as they came, and draws, and decodes,
// only those in sight, ten times a second at most.

import { parse } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { messageRow } from "./message-row.js";

const MOST_KEPT = 5000;
const SLACK = 1000;
const DRAW_MS = 100;
const MARGIN_ROWS = 4;

export class TailList {
  #entries = [];
  #held = [];
  #isPaused = false;
  #isDue = false;
  #rowHeight = 30;
  #window = h("div.tail-window");
  #spacer = h("div");
  #empty = h("p.empty", "Messages appear here as they are written.");
  #open;

  /** `open(messages, index)` shows one of them. */
  constructor(open) {
    this.#open = open;
    this.dropped = 0;
    this.element = h(
      "div.tail-view",
      { tabindex: 0, "aria-label": "Messages as they come" },
      this.#empty,
      this.#spacer,
      this.#window,
    );
    this.element.addEventListener("scroll", () => this.#schedule(0), { passive: true });
  }

  get isPaused() {
    return this.#isPaused;
  }

  get heldCount() {
    return this.#held.length;
  }

  get length() {
    return this.#entries.length;
  }

  /** `entry` is { data } as it came, or { text } to say something in between. */
  add(entry) {
    const into = this.#isPaused ? this.#held : this.#entries;
    into.push(entry);
    if (into.length > MOST_KEPT + SLACK) {
      this.dropped += into.length - MOST_KEPT;
      into.splice(0, into.length - MOST_KEPT);
    }
    if (!this.#isPaused) this.#schedule(DRAW_MS);
  }

  clear() {
    this.#entries = [];
    this.#held = [];
    this.#schedule(0);
  }

  pause() {
    this.#isPaused = true;
  }

  resume() {
    this.#isPaused = false;
    const held = this.#held;
    this.#held = [];
    for (const entry of held) this.add(entry);
    this.#schedule(0);
  }

  #schedule(ms) {
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => {
      requestAnimationFrame(() => {
        this.#isDue = false;
        this.#draw();
      });
    }, ms);
  }

  #draw() {
    const view = this.element;
    this.#empty.hidden = this.#entries.length > 0;
    this.#spacer.style.blockSize = `${this.#entries.length * this.#rowHeight}px`;
    if (!this.#isPaused) view.scrollTop = view.scrollHeight;
    const first = Math.max(0, Math.floor(view.scrollTop / this.#rowHeight) - MARGIN_ROWS);
    const shown = Math.ceil(view.clientHeight / this.#rowHeight) + 2 * MARGIN_ROWS;
    replace(
      this.#window,
      this.#entries.slice(first, first + shown).map((entry) => this.#row(entry)),
    );
    this.#window.style.transform = `translateY(${first * this.#rowHeight}px)`;
    this.#measure();
  }

  /** Rows are higher on a narrow screen. */
  #measure() {
    const height = this.#window.firstElementChild?.offsetHeight;
    if (height && height !== this.#rowHeight) {
      this.#rowHeight = height;
      this.#schedule(0);
    }
  }

  #row(entry) {
    if (entry.text) return h("div.row.skipped", h("span", entry.text));
    return messageRow(messageOf(entry), { open: () => this.#show(entry) });
  }

  #show(entry) {
    const messages = this.#entries.filter((one) => one.data);
    const near = messages.slice(Math.max(0, messages.indexOf(entry) - 100), messages.indexOf(entry) + 100);
    this.#open(near.map(messageOf), near.indexOf(entry));
  }
}

function messageOf(entry) {
  return (entry.message ??= parse(entry.data));
}
