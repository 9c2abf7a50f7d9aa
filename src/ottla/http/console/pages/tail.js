// The live tail of a topic.

import { api, parse, url, withQuery } from "../parts/api.js";
import { h, replace } from "../parts/dom.js";
import { field, filledIn, filterName, partitionChoice } from "../parts/field.js";
import { count, perSecond, plural } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { problemCard, problemOf } from "../parts/notice.js";
import { TailList } from "./tail-list.js";
import { viewMessage } from "./message-view.js";

const SECOND_MS = 1000;

export function show({ topic, signal }) {
  const refusal = h("div.refusal");
  const status = h("span", { role: "status" });
  const list = new TailList((messages, index) => {
    setPaused(true);
    viewMessage(topic.name, messages, index);
  });
  const seen = { messages: 0, skipped: 0, before: 0, isOpen: false };
  const filters = filterForm(topic);
  const pause = h("button", { type: "button", onclick: () => setPaused(!list.isPaused) });
  const clear = h("button.quiet", { type: "button", onclick: () => list.clear() }, "Clear");
  let source;

  function setPaused(isPaused) {
    if (isPaused) list.pause();
    else list.resume();
    replace(pause, icon(isPaused ? "play" : "pause"), isPaused ? "Resume" : "Pause");
    tell();
  }

  function tell() {
    const facts = [seen.isOpen ? perSecond(seen.rate ?? 0) : "connecting …", `${count(seen.messages)} received`];
    if (seen.skipped) facts.push(`${count(seen.skipped)} skipped by the broker, to keep up`);
    if (list.dropped) facts.push(`${count(list.dropped)} older ones no longer kept`);
    if (list.isPaused) facts.push(`paused, ${count(list.heldCount)} waiting`);
    replace(status, facts.join(" · "));
  }

  const follow = () => {
    source?.close();
    replace(refusal);
    source = listen(topic.name, filters, { list, seen, refusal, signal });
  };
  filters.addEventListener("submit", (event) => {
    event.preventDefault();
    list.clear();
    follow();
  });
  const timer = setInterval(() => {
    seen.rate = seen.messages - seen.before;
    seen.before = seen.messages;
    tell();
  }, SECOND_MS);
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    source.close();
  });
  // Scrolling back pauses the tail.
  list.element.addEventListener("wheel", (event) => event.deltaY < 0 && !list.isPaused && setPaused(true), {
    passive: true,
  });
  list.element.addEventListener("keydown", (event) => {
    if (["ArrowUp", "PageUp", "Home"].includes(event.key) && !list.isPaused) setPaused(true);
  });
  follow();
  setPaused(false);
  return h("div.page", filters, refusal, h("div.progress", pause, clear, status), h("div.rows", list.element));
}

function filterForm(topic) {
  return h(
    "form.card",
    h(
      "div.bar-of-fields",
      field("Partition", partitionChoice(topic, "All")),
      h("div.grow", field("Value contains", h("input", { name: filterName("contains") }))),
      h("div.grow", field("Key is", h("input", { name: filterName("key") }))),
      h("button", { type: "submit" }, "Apply"),
    ),
  );
}

function listen(topic, filters, { list, seen, refusal, signal }) {
  const wanted = { ...filledIn(filters), keys: "base64", values: "base64" };
  const source = new EventSource(withQuery(url`/v1/topics/${topic}/tail`, wanted));
  source.addEventListener("open", () => (seen.isOpen = true));
  source.addEventListener("message", ({ data }) => {
    seen.messages += 1;
    list.add({ data });
  });
  source.addEventListener("skipped", ({ data }) => {
    const { partition, count: skipped, from_offset: from, to_offset: to } = parse(data);
    seen.skipped += Number(skipped);
    list.add({ text: `${plural(skipped, "message")} skipped, partition ${partition}, offsets ${from} to ${to}` });
  });
  source.addEventListener("end", ({ data }) => {
    source.close();
    replace(refusal, problemCard(parse(data)));
  });
  source.addEventListener("error", async () => {
    seen.isOpen = false;
    // A lost connection is retried automatically; a rejected one has no reason, so request it.
    if (source.readyState === EventSource.CLOSED) replace(refusal, await reasonFor(topic, signal));
  });
  return source;
}

async function reasonFor(topic, signal) {
  try {
    await api.get(url`/v1/topics/${topic}`, signal);
    return problemCard({ title: "The tail ended", hint: "Press Apply to begin again." });
  } catch (failed) {
    return problemOf(failed);
  }
}
