// <line-chart>: values over time, with axes, and what each was under the pointer or the arrow keys.

import { h, replace, svg } from "./dom.js";
import { clock } from "./format.js";

const LEFT = 64;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 24;
const TICKS = 4;

class LineChart extends HTMLElement {
  #series = [];
  #show = String;
  #spanMs = 60_000;
  #base = 10;
  #cursor;
  #resized = new ResizeObserver(() => this.#draw());

  connectedCallback() {
    if (!this.hasAttribute("tabindex")) this.tabIndex = 0;
    this.setAttribute("role", "img");
    this.addEventListener("pointermove", (event) => this.#point(event));
    this.addEventListener("pointerleave", () => this.#moveTo(undefined));
    this.addEventListener("blur", () => this.#moveTo(undefined));
    this.addEventListener("keydown", (event) => this.#step(event));
    this.#resized.observe(this);
  }

  disconnectedCallback() {
    this.#resized.disconnect();
  }

  /** `series` is [{ name, points: [[ms, value], …] }, …], all at the same times. `base` 1024: ticks for bytes. */
  update(series, { show, spanMs, base = 10 }) {
    this.#series = series;
    this.#show = show;
    this.#spanMs = spanMs;
    this.#base = base;
    this.#draw();
  }

  get #times() {
    return (this.#series[0]?.points ?? []).map(([at]) => at);
  }

  #draw() {
    const width = this.clientWidth;
    const height = this.clientHeight;
    if (width === 0) return;
    const last = this.#times.at(-1) ?? Date.now();
    const from = Math.max(last - this.#spanMs, Math.min(this.#times[0] ?? last, last - 30_000));
    const top = niceTop(
      Math.max(...this.#series.flatMap((one) => one.points.map(([, value]) => value)), 0),
      this.#base,
    );
    const scale = {
      x: (at) => LEFT + ((at - from) / (last - from || 1)) * (width - LEFT - RIGHT),
      y: (value) => height - BOTTOM - (value / top) * (height - TOP - BOTTOM),
      base: height - BOTTOM,
      width,
      from,
      last,
      top,
    };
    this.scale = scale;
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
    drawing.append(...this.#yAxis(scale), ...this.#xAxis(scale), ...this.#lines(scale), ...this.#mark(scale));
    replace(this, drawing, this.#readout(scale));
    this.setAttribute("aria-label", `${this.title || "Chart"}: ${this.#values(-1)}`);
  }

  #yAxis({ y, width, top }) {
    return Array.from({ length: TICKS + 1 }, (_, index) => {
      const value = (top / TICKS) * index;
      const line = svg("line", {
        class: index ? "grid" : "axis",
        x1: LEFT,
        x2: width - RIGHT,
        y1: y(value),
        y2: y(value),
      });
      return [line, svg("text", { class: "tick end", x: LEFT - 8, y: y(value) + 4 }, this.#show(value))];
    }).flat();
  }

  #xAxis({ x, base, from, last, width }) {
    const steps = Math.max(1, Math.min(5, Math.floor((width - LEFT) / 110)));
    return Array.from({ length: steps + 1 }, (_, index) => {
      const at = from + ((last - from) / steps) * index;
      const anchor = index === 0 ? "start" : index === steps ? "end" : "middle";
      return svg("text", { class: `tick ${anchor}`, x: x(at), y: base + 17 }, clock(at));
    });
  }

  #lines({ x, y, base, from }) {
    return this.#series.flatMap(({ points }, index) => {
      const seen = points.filter(([at]) => at >= from);
      if (!seen.length) return [];
      const line = seen.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
      const area = `${x(seen[0][0]).toFixed(1)},${base} ${line} ${x(seen.at(-1)[0]).toFixed(1)},${base}`;
      return [
        svg("polygon", { class: `area series-${index}`, points: area }),
        svg("polyline", { class: `line series-${index}`, points: line }),
      ];
    });
  }

  #mark({ x, y, base }) {
    const at = this.#times[this.#cursor];
    if (at === undefined) return [];
    const dots = this.#series.map(({ points }, index) => {
      return svg("circle", { class: `spot series-${index}`, cx: x(at), cy: y(points[this.#cursor][1]), r: 4 });
    });
    return [svg("line", { class: "cursor", x1: x(at), x2: x(at), y1: TOP, y2: base }), ...dots];
  }

  #readout({ x, width }) {
    const at = this.#times[this.#cursor];
    if (at === undefined) return [];
    const rows = this.#series.map(({ name, points }, index) =>
      h("div", h(`i.swatch.series-${index}`), `${name} `, h("b", this.#show(points[this.#cursor][1]))),
    );
    const readout = h("div.readout", h("time", clock(at)), rows);
    readout.style.insetInlineStart = `${Math.min(Math.max(x(at) + 10, 0), Math.max(0, width - 170))}px`;
    return readout;
  }

  #values(index) {
    return this.#series.map(({ name, points }) => `${name} ${this.#show(points.at(index)?.[1] ?? 0)}`).join(", ");
  }

  #point(event) {
    const { from, last, width } = this.scale;
    const share = (event.clientX - this.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT);
    const wanted = from + share * (last - from);
    const distances = this.#times.map((at) => Math.abs(at - wanted));
    this.#moveTo(distances.length ? distances.indexOf(Math.min(...distances)) : undefined);
  }

  #step(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const last = this.#times.length - 1;
    this.#moveTo(Math.min(last, Math.max(0, (this.#cursor ?? last + 1) + step)));
  }

  #moveTo(index) {
    if (this.#cursor === index) return;
    this.#cursor = index;
    this.#draw();
  }
}

/** The next number above that divides into whole ticks. */
function niceTop(highest, base) {
  if (highest <= TICKS) return TICKS;
  const power = base ** Math.floor(Math.log(highest / TICKS) / Math.log(base) + 1e-9);
  const steps = base === 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1024];
  return TICKS * steps.map((one) => one * power).find((one) => one * TICKS >= highest);
}

customElements.define("line-chart", LineChart);

export function lineChart(title) {
  return h("line-chart", { title });
}

export function legend(...names) {
  return h(
    "p.legend",
    names.map((name, index) => h("span", h(`i.swatch.series-${index}`), name)),
  );
}
