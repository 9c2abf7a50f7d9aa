// How to connect, from every language, with the address filled in.

import { api } from "../parts/api.js";
import { kafkaAddress } from "../parts/addresses.js";
import { snippet } from "../parts/clipboard.js";
import { h, replace } from "../parts/dom.js";
import { card, field, heading } from "../parts/field.js";
import { session } from "../parts/session.js";
import { switcher } from "../parts/tabs.js";
import { curlOptions, isSecured, librdkafka, securityOf } from "./snippet-security.js";
import { SNIPPETS } from "./snippets.js";

export async function show({ signal }) {
  const [address, broker, who] = await Promise.all([kafkaAddress(signal), api.get("/v1/broker", signal), session()]);
  const security = securityOf(broker);
  const given = { address, http: location.origin, security, curlOptions: curlOptions(who, location.origin) };
  const topic = h("input", { value: "orders", maxlength: 249, spellcheck: "false" });
  const shown = h("div.payload");
  let chosen = SNIPPETS[0].name;
  const draw = () => {
    const found = SNIPPETS.find(({ name }) => name === chosen);
    const values = { ...given, topic: topic.value.trim() || "orders" };
    replace(
      shown,
      h("p.soft", "Install: ", h("code", found.install)),
      found.parts.map(([title, make]) => [h("h2", title), snippet(make(values))]),
    );
  };
  const names = SNIPPETS.map(({ name, label }) => [name, label]);
  const pick = (name) => {
    chosen = name;
    draw();
  };
  topic.addEventListener("input", draw);
  draw();
  const addresses = h(
    "dl.facts",
    [
      ["Kafka", address],
      ["HTTP", location.origin],
    ].map(([name, value]) => [h("dt", name), h("dd", h("code", value))]),
  );
  return h(
    "div.page",
    heading("Connect"),
    card("Addresses", addresses, securityNote(security)),
    card("", h("div.bar-of-fields", field("Topic", topic)), switcher("Client library", names, chosen, pick), shown),
    h(
      "p.soft",
      "The REST API is described at ",
      h("a", { href: "/v1/openapi.json" }, "/v1/openapi.json"),
      ", metrics are at ",
      h("a", { href: "/metrics" }, "/metrics"),
      ".",
    ),
  );
}

/** Security settings of clients, with librdkafka's names; nothing without TLS and SASL. */
function securityNote(security) {
  if (!isSecured(security)) return undefined;
  const settings = librdkafka(security).map(([name, value]) => `${name}=${value}\n`);
  const note = "Clients also need these settings (names of librdkafka); ca.pem is the CA of the broker's certificate:";
  return [h("p.soft", security.usesTls ? note : "Clients also need these settings (names of librdkafka):"), snippet(settings.join(""))];
}
