// A message as one line of a list.

import { Payload } from "../decode/payload.js";
import { h } from "../parts/dom.js";
import { clock, dateTime } from "../parts/format.js";

export function messageRow(message, { hasDate = false, open }) {
  const time = hasDate ? dateTime(message.timestamp) : clock(message.timestamp, true);
  return h(
    "button.row",
    { type: "button", onclick: open },
    h("time", time),
    h("span.at", `${message.partition}:${message.offset}`),
    cell("key", new Payload(message.key)),
    cell("value", new Payload(message.value)),
  );
}

function cell(name, payload) {
  if (payload.isNull) return h(`span.${name}.none`, "none");
  if (payload.isEmpty) return h(`span.${name}.none`, "empty");
  const { text, isBinary } = payload.preview();
  return h(`span.${name}${isBinary ? ".binary" : ""}`, text);
}
