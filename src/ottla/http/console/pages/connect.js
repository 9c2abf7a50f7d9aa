// How to connect, from every language, with the address filled in.

import { api } from "../parts/api.js";
import { kafkaAddress } from "../parts/addresses.js";
import { snippet } from "../parts/clipboard.js";
import { h, replace } from "../parts/dom.js";
import { card, field, heading } from "../parts/field.js";
import { switcher } from "../parts/tabs.js";
import { SNIPPETS } from "./snippets.js";

export async function show({ signal }) {
  const address = await kafkaAddress(signal);
  const topic = h("input", { value: "orders", maxlength: 249, spellcheck: "false" });
  const shown = h("div.payload");
  let chosen = SNIPPETS[0].name;
  const draw = () => {
    const found = SNIPPETS.find(({ name }) => name === chosen);
    const values = { address, http: location.origin, topic: topic.value.trim() || "orders" };
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
    card("Addresses", addresses, await securityNote(address, signal)),
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

/** Security settings of clients, with librdkafka's names; empty without authentication. */
async function securityNote(address, signal) {
  // Users without permission to describe configs get no settings.
  const { configs } = await api.get("/v1/configs", signal).catch(() => ({ configs: [] }));
  const valueOf = (wanted) => configs.find(({ name }) => name === wanted)?.value ?? "";
  const listeners = valueOf("listeners").split(",");
  const port = address.split(",")[0].split(":").at(-1);
  const [protocol] = (listeners.find((one) => one.endsWith(`:${port}`)) ?? listeners[0]).split("://");
  if (protocol === "PLAINTEXT" || protocol === "") return undefined;
  const settings = [`security.protocol=${protocol}`];
  if (protocol.endsWith("SSL")) settings.push("ssl.ca.location=ca.pem");
  if (protocol.startsWith("SASL")) {
    settings.push(`sasl.mechanism=${valueOf("sasl.enabled.mechanisms").split(",")[0]}`);
    settings.push("sasl.username=…", "sasl.password=…");
  }
  return [h("p.soft", "Clients also need, by librdkafka's names:"), snippet(`${settings.join("\n")}\n`)];
}
