// What the broker counts, sampled as long as the console is open, so that charts know what happened before they came.

import { api } from "./api.js";
import { every } from "./live.js";

const SAMPLE_MS = 2000;
const MOST_SAMPLES = 300;

const samples = [];
const watchers = new Set();
let broker;

export const spanMs = SAMPLE_MS * 150;

export function startHistory(report) {
  every(SAMPLE_MS, undefined, async () => {
    try {
      const [totals, shown] = await Promise.all([api.get("/v1/totals"), api.get("/v1/broker")]);
      broker = shown;
      add(totals);
      report(broker);
      for (const watch of watchers) watch(latest());
    } catch (failed) {
      report(broker, failed);
    }
  });
}

function add(totals) {
  const before = samples.at(-1);
  // A restarted broker counts from nothing again.
  if (before && totals.kafka_requests < before.totals.kafka_requests) samples.length = 0;
  samples.push({ at: totals.time_ms, totals });
  if (samples.length > MOST_SAMPLES) samples.shift();
}

function latest() {
  return { totals: samples.at(-1)?.totals, broker };
}

/** Call `watch` with every new sample, and at once if there is one. */
export function watchHistory(signal, watch) {
  watchers.add(watch);
  signal.addEventListener("abort", () => watchers.delete(watch));
  if (samples.length) watch(latest());
}

/** [time, per second] of a number that grows. */
export function rateOf(name) {
  return samples.slice(1).map((sample, index) => {
    const before = samples[index];
    const seconds = (sample.at - before.at) / 1000 || 1;
    // Deleting a topic takes its messages out of the sum.
    return [sample.at, Math.max(0, (sample.totals[name] - before.totals[name]) / seconds)];
  });
}

export function valueOf(name) {
  return samples.map((sample) => [sample.at, sample.totals[name]]);
}
