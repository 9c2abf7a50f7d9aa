// Where Kafka clients connect to.

import { api } from "./api.js";

const EVERYWHERE = new Set(["0.0.0.0", "::", ""]);

/** "host:port,…" of all brokers. One that listens everywhere can be reached where this page came from. */
export async function kafkaAddress(signal) {
  const { brokers } = await api.get("/v1/cluster", signal);
  return brokers.map(({ host, port }) => `${named(host)}:${port}`).join(",");
}

function named(host) {
  if (EVERYWHERE.has(host)) return location.hostname;
  return host.includes(":") ? `[${host}]` : host;
}
