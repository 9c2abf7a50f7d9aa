// One message as a page: the permanent address of a message.

import { api, url, withQuery } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { card, heading } from "../parts/field.js";
import { problemCard } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { messageParts, messagePlace } from "./message-parts.js";

export async function show({ params: { name, partition, offset }, signal }) {
  const asked = { partition, offset, limit: 1, keys: "base64", values: "base64" };
  const { messages } = await api.get(withQuery(url`/v1/topics/${name}/messages`, asked), signal);
  const [message] = messages;
  const isThere = message !== undefined && String(message.offset) === offset;
  return h(
    "div.page",
    h("p.crumb", h("a", { href: place("topics") }, "Topics"), " / ", h("a", { href: place("topics", name) }, name)),
    heading(`Partition ${partition}, offset ${offset}`, steps(name, partition, offset)),
    isThere ? card("", h("div.content", messageParts(name, message))) : gone(name, message),
  );
}

function steps(name, partition, offset) {
  const at = BigInt(offset);
  const list = `${place("topics", name, "messages")}?from=offset&partition=${partition}&offset=${offset}`;
  return [
    at > 0n && h("a.button", { href: messagePlace(name, { partition, offset: at - 1n }) }, "Previous"),
    h("a.button", { href: messagePlace(name, { partition, offset: at + 1n }) }, "Next"),
    h("a.button", { href: list }, "List from here"),
  ];
}

// Offsets of compacted messages and of transaction markers have no message.
function gone(name, next) {
  const problem = problemCard({ title: "There is no message at this offset." });
  if (next === undefined) return problem;
  const label = `The next one is at offset ${next.offset}.`;
  return [problem, h("p", h("a", { href: messagePlace(name, next) }, label))];
}
