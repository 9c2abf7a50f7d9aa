// Drawn on a grid of 20, in one stroke width.

import { svg } from "./dom.js";

const PATHS = {
  overview: "M3 16V9m4.7 7V4m4.6 12v-5M17 16V7",
  topics: "M3 5h14M3 10h14M3 15h9",
  groups:
    "M7 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-4.5 7c0-3 2-4.5 4.5-4.5S11.5 13 11.5 16M13 4.3a2.5 2.5 0 0 1 0 4.5m1.5 3c1.9.5 3 1.9 3 4.200",
  schemas: "M6 3.500H4v13h2m8-13h2v13h-2M8 7h4m-4 3h4m-4 3h4",
  pipelines: "M3 10h4m6 0h4M7 6.5h6v7H7z",
  transactions: "M4 7h11l-3-3m4 9H5l3 3",
  cluster: "M4 3.5h12v5H4zm0 8h12v5H4zM7 6h.01M7 14h.01",
  access: "M5 9h10v7.500H5zM7 9V6.500a3 3 0 0 1 6 0V9",
  connect: "m7 6-4 4 4 4m6-8 4 4-4 4",
  plus: "M10 4v12M4 10h12",
  copy: "M7 7V3.5h9.5V13H13M3.5 7H13v9.5H3.5z",
  close: "m5 5 10 10M15 5 5 15",
  trash: "M4 6h12M8 6V4h4v2m-6.5 0 .7 10.5h7.600L14.5 6",
  left: "m12 4-6 6 6 6",
  right: "m8 4 6 6-6 6",
  pause: "M7 4.5v11m6-11v11",
  play: "M6 4.5v11l9-5.5z",
};

export function icon(name) {
  const path = svg("path", { d: PATHS[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true" }, path);
}
