// One message in a drawer: where it is, what it says, and how to get at it from elsewhere.

import { Payload } from "../decode/payload.js";
import { kafkaAddress } from "../parts/addresses.js";
import { copy } from "../parts/clipboard.js";
import { open } from "../parts/dialog.js";
import { h, replace } from "../parts/dom.js";
import { bytes, dateTime } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { copiesOf } from "./copies.js";
import { payloadView } from "./payload-view.js";

/** Show `messages[index]`; the arrow keys go to its neighbours. */
export function viewMessage(topic, messages, index) {
  const content = h("div.content");
  const dialog = open("", content, { kind: "drawer" });
  const title = dialog.querySelector("h2");
  let at = index;

  const draw = () => {
    const message = messages[at];
    title.textContent = `${topic}, partition ${message.partition}, offset ${message.offset}`;
    replace(content, steps(), factsOf(message), ...partsOf(topic, message), copyBar(topic, message));
  };
  const step = (by) => {
    if (messages[at + by] === undefined) return;
    at += by;
    draw();
  };
  const steps = () =>
    h(
      "div.actions",
      h("button.small", { type: "button", onclick: () => step(-1), disabled: at === 0 }, icon("left"), "Previous"),
      h(
        "button.small",
        { type: "button", onclick: () => step(1), disabled: at === messages.length - 1 },
        "Next",
        icon("right"),
      ),
    );
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !event.target.closest("input, textarea, pre")) step(by);
  });
  draw();
  return dialog;
}

function factsOf(message) {
  const type = message.timestamp_type === "LogAppendTime" ? "when it was appended" : "by its producer";
  const facts = [
    ["Time", `${dateTime(message.timestamp)} (${type})`],
    ["Timestamp", String(message.timestamp)],
    ["Size", `key ${sizeOf(message.key)}, value ${sizeOf(message.value)}`],
  ];
  return h(
    "dl.facts",
    facts.map(([name, value]) => [h("dt", name), h("dd", value)]),
  );
}

function sizeOf(encoded) {
  return encoded === null ? "none" : bytes(new Payload(encoded).bytes.length);
}

function partsOf(topic, message) {
  const at = (part) => ({ topic, partition: message.partition, offset: message.offset, part });
  return [
    payloadView("Value", new Payload(message.value), at("value")),
    payloadView("Key", new Payload(message.key), at("key")),
    headersOf(message.headers),
  ];
}

function headersOf(headers) {
  if (headers.length === 0) return h("p.soft", "No headers.");
  const rows = headers.map(({ name, value, encoding }) => {
    const shown = encoding === "json" ? JSON.stringify(value) : (value ?? "none");
    return [h("dt", name), h("dd", h("code", shown), encoding === "base64" && h("small", " base64"))];
  });
  return h("section.payload", h("h2", "Headers"), h("dl.facts", rows));
}

function copyBar(topic, message) {
  const copyAs = async (make, button) => {
    await copy(make(await kafkaAddress()), button);
  };
  const buttons = copiesOf(topic, message).map(([label, make]) => {
    const button = h("button.small", { type: "button", onclick: () => copyAs(make, button) }, icon("copy"), label);
    return button;
  });
  return h("section.payload", h("h2", "Copy as"), h("div.actions", buttons));
}
