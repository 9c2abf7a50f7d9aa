"""Finds stateful operators in the text of a query's plan. Pure rules."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.columns.ddl import split_outside

_HEADING: Final = "== Optimized Logical Plan =="
_NOT_SHOWN: Final = "org.apache.spark.sql.AnalysisException"
_STATEFUL: Final = re.compile(
    r"(Aggregate|Deduplicate\w*|TransformWithState\w*|FlatMapGroups\w*WithState\w*|EventTimeWatermark|Window\b|GlobalLimit"
    r"|Distinct)"
)
_AGGREGATE: Final = re.compile(r"Aggregate\(keys=\[.*?\], functions=\[.*?\](?=, output|\))")
_WATERMARK: Final = "EventTimeWatermark"
_KEY_MAKING: Final = ("Project", "Generate", "Expand")
_STREAM: Final = re.compile(r"Streaming(DataSourceV2\w*|Relation\w*|ExecutionRelation)")
_PARSED_SCHEMA: Final = re.compile(r"StructField\((?:(?!from_json|from_csv).)*?columnNameOfCorruptRecord,_corrupt\)")
_VOLATILE: Final = (
    # The id of an expression: `#17L`.
    (re.compile(r"#\d+L?"), ""),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"@[0-9a-f]+\b"), ""),
    # The delay may change: Spark stores the watermark itself.
    (re.compile(r"-T\d+ms"), ""),
    (re.compile(r"^(EventTimeWatermark ID, \w+): .*"), r"\1"),
)


class _Node(NamedTuple):
    depth: int
    text: str


def stateful_parts(explained: str) -> list[str] | None:
    """Each stateful operator with the expressions of its keys; without filters and later operators.

    None if the text has no optimized plan: Spark Connect does not show that of a stream.
    """
    if explained.partition(_HEADING)[2].lstrip().startswith(_NOT_SHOWN):
        return None
    nodes = _with_aggregates(_nodes(explained), explained)
    found = []
    for at, node in enumerate(nodes):
        below = _below(nodes, at)
        is_stateful = _STATEFUL.match(node.text) and any(_STREAM.search(each.text) for each in below)
        if is_stateful or (node.text.startswith("Join") and _joins_streams(nodes, at)):
            found.append(" <- ".join([node.text, *_makers(node, below)]))
    # A watermark alone is stateless; with a stateful operator, its column matters.
    return [] if all(part.startswith(_WATERMARK) for part in found) else found


def _with_aggregates(nodes: list[_Node], explained: str) -> list[_Node]:
    """With aggregates as in the physical plan: keys and functions, without expressions over their results."""
    _, _, physical = explained.partition("== Physical Plan ==")
    partial = [match[0] for match in _AGGREGATE.finditer(_steady(physical)) if "partial_" in match[0]]
    logical = [at for at, node in enumerate(nodes) if node.text.startswith("Aggregate")]
    if len(partial) != len(logical):
        return nodes
    texts = dict(zip(logical, partial, strict=True))
    return [_Node(node.depth, texts.get(at, node.text)) for at, node in enumerate(nodes)]


def _makers(node: _Node, below: list[_Node]) -> list[str]:
    """The origin of the columns in an operator's state."""
    if node.text.startswith(_WATERMARK):
        return []
    makers = [each.text for each in below if each.text.startswith(_KEY_MAKING)]
    if not node.text.startswith("Deduplicate"):
        return makers
    # Its state has only the keys, so other columns may change.
    keys = [key.strip() for key in node.text.partition("[")[2].partition("]")[0].split(",")]
    items = [item for text in makers for item in split_outside(text.partition("[")[2].removesuffix("]"))]
    return [item.strip() for item in items if item.strip().endswith(tuple(f" AS {key}" for key in keys))]


def _nodes(explained: str) -> list[_Node]:
    _, _, after = explained.partition(_HEADING)
    nodes = []
    for line in after.split("\n==", 1)[0].splitlines():
        text = line.lstrip(" +-:")
        if text:
            # Spark 4.3 marks streams with ~.
            nodes.append(_Node(len(line) - len(text), _steady(text.lstrip("~"))))
    return nodes


def _steady(text: str) -> str:
    """Without the parts that differ between two runs, and without parsed columns that may be unused."""
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return _PARSED_SCHEMA.sub("…", text)


def _below(nodes: list[_Node], at: int) -> list[_Node]:
    found = []
    for node in nodes[at + 1 :]:
        if node.depth <= nodes[at].depth:
            break
        found.append(node)
    return found


def _joins_streams(nodes: list[_Node], at: int) -> bool:
    below = _below(nodes, at)
    if not below:
        return False
    child_depth = min(node.depth for node in below)
    sides: list[bool] = []
    for node in below:
        if node.depth == child_depth:
            sides.append(False)
        if _STREAM.search(node.text):
            sides[-1] = True
    return len(sides) > 1 and all(sides)
