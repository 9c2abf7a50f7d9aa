// The partitions of a topic, and their segments on the disk.

import { bars } from "../parts/bars.js";
import { h, replace } from "../parts/dom.js";
import { card, field, partitionChoice } from "../parts/field.js";
import { bytes, count, plural } from "../parts/format.js";
import { every } from "../parts/live.js";
import { attempt } from "../parts/notice.js";
import { place } from "../parts/router.js";
import { table } from "../parts/table.js";
import { addPartitions, deleteRecords } from "./topic-dialogs.js";

const REFRESH_MS = 5000;
const MANY = 1000;
const MOST_SEGMENTS = 60;

export function show({ topic: first, reload, signal }) {
  const refusal = h("div.refusal");
  const list = table(columns(first.name), { caption: "Partitions" });
  const segments = h("div.payload");
  const chosen = partitionChoice(first);
  let topic = first;

  const drawSegments = () => replace(segments, segmentsOf(topic.partitions[Number(chosen.value)]));
  const draw = () => {
    list.update(topic.partitions);
    drawSegments();
  };
  chosen.addEventListener("input", drawSegments);
  const load = () =>
    attempt(refusal, async () => {
      topic = await reload();
      draw();
    });
  every(REFRESH_MS * Math.ceil(first.partitions.length / MANY), signal, load);
  draw();
  const may = (operation) => first.operations.includes(operation);
  const actions = first.is_internal
    ? []
    : h(
        "div.actions",
        may("ALTER") && h("button", { onclick: () => addPartitions(topic, load) }, "Add partitions"),
        may("DELETE") && h("button", { onclick: () => deleteRecords(topic, load) }, "Delete messages"),
      );
  return h("div.page", refusal, actions, card("", list), card("Segments on disk", field("Partition", chosen), segments));
}

function columns(name) {
  const link = (one) =>
    h("a", { href: `${place("topics", name, "messages")}?partition=${one.partition}` }, one.partition);
  const held = (one) => BigInt(one.end_offset) - BigInt(one.start_offset);
  return [
    { label: "Partition", cell: link, sort: (one) => one.partition },
    { label: "Leader", isNumber: true, cell: (one) => one.leader },
    { label: "First offset", isNumber: true, cell: (one) => count(one.start_offset), sort: (one) => one.start_offset },
    { label: "Next offset", isNumber: true, cell: (one) => count(one.end_offset), sort: (one) => one.end_offset },
    { label: "Offsets", isNumber: true, cell: (one) => count(held(one)), sort: held },
    { label: "Size", isNumber: true, cell: (one) => bytes(one.size_bytes), sort: (one) => one.size_bytes },
    {
      label: "Segments",
      isNumber: true,
      cell: (one) => count(one.segments.length),
      sort: (one) => one.segments.length,
    },
  ];
}

function segmentsOf(partition) {
  if (!partition?.segments.length) return h("p.empty", "No replica on this node.");
  const { segments, size_bytes: size } = partition;
  const newest = segments.slice(-MOST_SEGMENTS);
  const most = Math.max(1, ...newest.map((segment) => segment.size_bytes));
  const rows = newest.map((segment, index) => ({
    label: h("span.mono", `${String(segment.base_offset).padStart(20, "0")}.log`),
    value: segment.size_bytes,
    shown: bytes(segment.size_bytes),
    isDull: index < newest.length - 1,
    title: index < newest.length - 1 ? "closed" : "being written to",
  }));
  const left = segments.length - newest.length;
  return [
    h("p.soft", `${plural(segments.length, "segment")}, ${bytes(size)}`),
    left > 0 && h("p.soft", `The newest ${MOST_SEGMENTS}; ${left} older ones are not shown.`),
    bars(rows, { most }),
  ];
}
