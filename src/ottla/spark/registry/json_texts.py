"""Structs of Arrow as JSON, like Spark's `to_json`: a null field of a struct is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def json_texts(rows: pa.Array) -> pa.Array:
    shown = _shown(rows.type)
    values = rows.to_pylist(maps_as_pydicts="strict")
    return pa.array([None if each is None else _encode(shown(each)) for each in values], pa.binary())


def _shown(kind: pa.DataType) -> Callable[[Any], object]:
    """How a value of this type, which is not null, becomes one that can be encoded."""
    if pa.types.is_struct(kind):
        fields = [(each.name, _shown(each.type)) for each in kind]
        return lambda row: {name: show(row[name]) for name, show in fields if row[name] is not None}
    if pa.types.is_map(kind):
        show_item = _shown(kind.item_type)
        return lambda items: {key: None if each is None else show_item(each) for key, each in items.items()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        show_element = _shown(kind.value_type)
        return lambda elements: [None if each is None else show_element(each) for each in elements]
    return lambda value: value
