// Reading messages of a topic: from where, which of them, and going on from there.

import { api, url, withQuery } from "../parts/api.js";

const MOST = 10_000;
const AT_ONCE = 20;
const FILTERS = ["key", "contains", "header", "path", "equals"];
const AS_BYTES = { keys: "base64", values: "base64" };

export class Search {
  #topic;
  #wanted;
  #cursor;
  #shown = [];

  /** `wanted` is { from: newest | oldest | offset | time, partition, offset, timestamp, limit, …filters }. */
  constructor(topic, wanted) {
    this.#topic = topic;
    this.#wanted = wanted;
    this.scanned = 0;
    this.isEnd = false;
  }

  get isBackwards() {
    return this.#wanted.from === "newest";
  }

  get hasFilter() {
    return FILTERS.some((name) => this.#wanted[name]);
  }

  /** The next messages; `progress` is told after every answer, and the signal stops it with what there is. */
  async next(signal, progress) {
    const isOlder = this.isBackwards && this.#shown.length > 0;
    const found = isOlder ? await this.#older(signal) : await this.#onward(signal, progress);
    this.#shown.push(...found);
    if (this.isBackwards) this.isEnd = this.hasFilter || found.length === 0 || this.#isAtTheStart;
    return found;
  }

  async #onward(signal, progress) {
    const found = [];
    const limit = this.isBackwards ? Infinity : this.#wanted.limit;
    while (found.length < limit && !this.isEnd && !signal.aborted) {
      const page = await this.#page(this.#start(limit - found.length), signal);
      if (!page) break;
      found.push(...page.messages);
      this.#cursor = page.next;
      this.scanned += page.scanned;
      this.isEnd = page.is_end;
      progress(found.length);
    }
    return this.isBackwards ? newestFirst(found).slice(0, this.#wanted.limit) : found;
  }

  #start(left) {
    const { from, partition, offset, timestamp, limit } = this.#wanted;
    if (this.#cursor) return { cursor: this.#cursor, limit: Math.min(left, MOST) };
    if (from === "offset") return { partition: partition || 0, offset, limit };
    if (from === "time") return { partition, timestamp, limit };
    if (from === "newest") return { partition, last: this.hasFilter ? MOST : this.#perPartition, limit: MOST };
    return { partition, limit };
  }

  get #read() {
    const { partition } = this.#wanted;
    return this.#topic.partitions.filter((one) => !partition || String(one.partition) === String(partition));
  }

  /** How many of each are fetched to find the newest of all: fewer where there are a great many. */
  get #perPartition() {
    return Math.min(this.#wanted.limit, Math.max(10, Math.ceil(MOST / this.#read.length)));
  }

  async #page(query, signal) {
    const filters = Object.fromEntries(FILTERS.map((name) => [name, this.#wanted[name]]));
    try {
      return await api.get(
        withQuery(url`/v1/topics/${this.#topic.name}/messages`, { ...query, ...filters, ...AS_BYTES }),
        signal,
      );
    } catch (failed) {
      if (failed.name === "AbortError") return undefined;
      throw failed;
    }
  }

  /** What lies before the messages that are shown, of each partition. */
  async #older(signal) {
    const older = [];
    for (let at = 0; at < this.#read.length; at += AT_ONCE) {
      const some = this.#read.slice(at, at + AT_ONCE);
      older.push(...(await Promise.all(some.map((one) => this.#before(one, BigInt(this.#perPartition), signal)))));
    }
    return newestFirst(older.flat()).slice(0, this.#wanted.limit);
  }

  /** Whether nothing lies before what is shown. */
  get #isAtTheStart() {
    return this.#read.every((one) => this.#lowest(one) <= BigInt(one.start_offset));
  }

  /** The first offset of a partition that is shown; of one of which nothing is, its end. */
  #lowest({ partition, end_offset: end }) {
    const offsets = this.#shown.filter((one) => one.partition === partition).map((one) => BigInt(one.offset));
    return offsets.reduce((lowest, one) => (one < lowest ? one : lowest), BigInt(end));
  }

  async #before(one, limit, signal) {
    const { partition, start_offset: start } = one;
    const until = this.#lowest(one);
    const from = until - limit > BigInt(start) ? until - limit : BigInt(start);
    if (from >= until) return [];
    const page = await this.#page({ partition, offset: from, limit: until - from }, signal);
    this.scanned += page?.scanned ?? 0;
    return (page?.messages ?? []).filter((one) => BigInt(one.offset) < until);
  }
}

function newestFirst(messages) {
  return messages.sort(
    (one, other) => other.timestamp - one.timestamp || other.partition - one.partition || compare(other, one),
  );
}

function compare(one, other) {
  const difference = BigInt(one.offset) - BigInt(other.offset);
  return difference > 0n ? 1 : difference < 0n ? -1 : 0;
}
