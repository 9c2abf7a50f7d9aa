// What the broker counts: samples of the last hours that the broker keeps, and those since the console was opened.

import { api } from "./api.js";
import { every } from "./live.js";
import { forgetSession, may } from "./session.js";

const SAMPLE_MS = 2000;
const MOST_SAMPLES = 300;
const UNKNOWN = -1;

/** The time spans of charts. */
export const SPANS = [
  [5 * 60_000, "5 min"],
  [3_600_000, "1 h"],
  [6 * 3_600_000, "6 h"],
];

let past = [];
const samples = [];
const watchers = new Set();
let broker;

export function startHistory(report) {
  every(SAMPLE_MS, undefined, async () => {
    try {
      const seesTotals = await may("DESCRIBE");
      if (seesTotals && samples.length === 0) past = pastSamples(await api.get("/v1/totals/history"));
      const [totals, shown] = await Promise.all([seesTotals ? api.get("/v1/totals") : undefined, api.get("/v1/broker")]);
      broker = shown;
      if (totals) add(totals);
      report(broker);
      for (const watch of watchers) watch(latest());
    } catch (failed) {
      if (failed.isDenied) forgetSession();
      report(broker, failed);
    }
  });
}

function pastSamples({ time_ms: times, interval_ms: _, ...columns }) {
  return times.map((at, index) => ({
    at,
    totals: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Number(values[index])])),
  }));
}

function add(totals) {
  const before = samples.at(-1);
  // A restarted broker counts from nothing again.
  if (before && totals.kafka_requests < before.totals.kafka_requests) {
    samples.length = 0;
    past = [];
  }
  samples.push({ at: totals.time_ms, totals });
  if (samples.length > MOST_SAMPLES) samples.shift();
}

function latest() {
  return { totals: samples.at(-1)?.totals, broker };
}

/** Call `watch` with every new sample, and at once if there is one; without totals if the user may not see them. */
export function watchHistory(signal, watch) {
  watchers.add(watch);
  signal.addEventListener("abort", () => watchers.delete(watch));
  if (broker) watch(latest());
}

/** The samples of the broker up to those of the console, whose counters may have another base. */
function before() {
  const [first] = samples;
  return past.filter(({ at }) => first === undefined || at < first.at);
}

function rates(of, name) {
  return of.slice(1).map((sample, index) => {
    const last = of[index];
    const seconds = (sample.at - last.at) / 1000 || 1;
    // Deleting a topic takes its messages out of the sum.
    return [sample.at, Math.max(0, (sample.totals[name] - last.totals[name]) / seconds)];
  });
}

function within(points, spanMs) {
  const from = (points.at(-1)?.[0] ?? 0) - spanMs;
  return points.filter(([at]) => at >= from);
}

/** [time, per second] of a number that grows. */
export function rateOf(name, spanMs) {
  return within([...rates(before(), name), ...rates(samples, name)], spanMs);
}

export function valueOf(name, spanMs) {
  const points = [...before(), ...samples].map(({ at, totals }) => [at, totals[name]]);
  return within(
    points.filter(([, value]) => value !== UNKNOWN),
    spanMs,
  );
}
