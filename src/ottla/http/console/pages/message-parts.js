// What a message consists of, and how to get it elsewhere: for the drawer and the page of a message.

import { Payload } from "../decode/payload.js";
import { kafkaAddress } from "../parts/addresses.js";
import { api } from "../parts/api.js";
import { copy } from "../parts/clipboard.js";
import { h } from "../parts/dom.js";
import { bytes, dateTime } from "../parts/format.js";
import { icon } from "../parts/icons.js";
import { place } from "../parts/router.js";
import { session } from "../parts/session.js";
import { copiesOf } from "./copies.js";
import { payloadView } from "./payload-view.js";
import { curlOptions, securityOf } from "./snippet-security.js";

/** The permanent address of a message in the console. */
export function messagePlace(topic, { partition, offset }) {
  return place("topics", topic, "messages", String(partition), String(offset));
}

export function messageParts(topic, message) {
  return [factsOf(message), ...payloadsOf(topic, message), copyBar(topic, message)];
}

function factsOf(message) {
  const type = message.timestamp_type === "LogAppendTime" ? "when it was appended" : "set by its producer";
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

function payloadsOf(topic, message) {
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

/** What commands need to know: { address, security, curlOptions }. */
async function surroundings() {
  const [address, broker, who] = await Promise.all([kafkaAddress(), api.get("/v1/broker"), session()]);
  return { address, security: securityOf(broker), curlOptions: curlOptions(who, location.origin) };
}

function copyBar(topic, message) {
  const buttonFor = ([label, make]) => {
    const copyIt = async () => copy(make(await surroundings()), button);
    const button = h("button.small", { type: "button", onclick: copyIt }, icon("copy"), label);
    return button;
  };
  const link = ["link", () => new URL(messagePlace(topic, message), location.href).href];
  return h("section.payload", h("h2", "Copy as"), h("div.actions", [link, ...copiesOf(topic, message)].map(buttonFor)));
}
