// Numbers, sizes and times as people read them. Whole numbers may come as text, when they are too long for a Number.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  return whole.format(typeof value === "string" ? BigInt(value) : value);
}

export function short(value) {
  const number = Number(value);
  return Math.abs(number) < 10_000 ? whole.format(Math.round(number * 10) / 10) : compact.format(number);
}

export function bytes(value) {
  let number = Number(value);
  let unit = 0;
  while (Math.abs(number) >= 1024 && unit < UNITS.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${number >= 100 || unit === 0 ? Math.round(number) : number.toFixed(1).replace(/\.0$/, "")} ${UNITS[unit]}`;
}

export const bytesPerSecond = (value) => `${bytes(value)}/s`;
export const perSecond = (value) => `${short(value)}/s`;

const two = (value) => String(value).padStart(2, "0");

export function clock(ms, withMillis = false) {
  const at = new Date(Number(ms));
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return withMillis ? `${time}.${String(at.getMilliseconds()).padStart(3, "0")}` : time;
}

export function dateTime(ms) {
  const at = new Date(Number(ms));
  if (Number.isNaN(at.getTime()) || Number(ms) < 0) return "no time";
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms, true)}`;
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${Number(number) === 1 ? one : many}`;
}

const DAY = 86_400_000;
const SPANS = [
  [DAY, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** 604800000 as "7 d": what a config in milliseconds comes to. */
export function duration(ms) {
  for (const [span, unit] of SPANS) if (ms >= span) return `${Math.round((ms / span) * 10) / 10} ${unit}`;
  return `${ms} ms`;
}
