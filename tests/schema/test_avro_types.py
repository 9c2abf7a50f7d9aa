"""Avro schemas of Python types."""

from __future__ import annotations

import datetime as dt
import enum
import json
import uuid  # noqa: TC003 - types are read at run time
from dataclasses import dataclass, field
from decimal import Decimal  # noqa: TC003
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from ottla.registry.avro.parsing import parse
from ottla.schema.avro_types import AvroType, avro_schema
from ottla.schema.errors import SchemaError

PRICE = AvroType({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2})


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Item:
    name: str
    price: Annotated[Decimal, PRICE]


@dataclass
class Order:
    id: int
    items: list[Item]
    first: Item | None = None
    note: str | None = None
    shop: str | None = "main"
    paid: bool = False
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    kind: Literal["web", "shop"] = "web"
    by_name: dict[str, float] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    small: Annotated[int, AvroType("int")] = 0
    made: dt.datetime = field(default_factory=dt.datetime.now)


def fields(kind: type[Any]) -> dict[str, Any]:
    schema = avro_schema(kind)
    parse(json.dumps(schema))
    return {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in schema["fields"]}


def test_a_dataclass() -> None:
    found = fields(Order)
    assert found["id"] == {"type": "long"}
    assert found["items"]["type"]["items"]["fields"][1] == {"name": "price", "type": PRICE.schema}
    assert found["first"] == {"type": ["null", "Item"], "default": None}
    assert found["note"] == {"type": ["null", "string"], "default": None}
    assert found["shop"] == {"type": ["string", "null"], "default": "main"}
    assert found["paid"] == {"type": "boolean", "default": False}
    assert found["colour"]["type"] == {"type": "enum", "name": "Colour", "symbols": ["red", "blue"]}
    assert found["colour"]["default"] == "red"
    assert found["level"] == {"type": "long", "default": 1}
    assert found["kind"]["type"]["symbols"] == ["web", "shop"]
    assert found["by_name"] == {"type": {"type": "map", "values": "double"}, "default": {}}
    assert found["tags"] == {"type": {"type": "array", "items": "string"}, "default": []}
    assert found["small"] == {"type": "int", "default": 0}
    assert found["made"] == {"type": {"type": "long", "logicalType": "timestamp-micros"}}, "not the time of a call"


class Struct(msgspec.Struct, rename="camel"):
    order_id: uuid.UUID
    at: dt.date
    parent: Struct | None = None
    tags: list[str] = []


class Model(pydantic.BaseModel):
    id: int
    raw: bytes = pydantic.Field(alias="rawBytes")
    name: str | None = None


def test_a_struct_of_msgspec() -> None:
    found = fields(Struct)
    assert found["orderId"] == {"type": {"type": "string", "logicalType": "uuid"}}
    assert found["at"] == {"type": {"type": "int", "logicalType": "date"}}
    assert found["parent"] == {"type": ["null", "Struct"], "default": None}
    assert found["tags"] == {"type": {"type": "array", "items": "string"}, "default": []}


def test_a_model_of_pydantic() -> None:
    assert fields(Model) == {
        "id": {"type": "long"},
        "rawBytes": {"type": "bytes"},
        "name": {"type": ["null", "string"], "default": None},
    }


def test_a_namespace() -> None:
    assert avro_schema(Model, "shop")["namespace"] == "shop"


@dataclass
class Undecided:
    price: Decimal


@dataclass
class Mapped:
    by_number: dict[int, str]


@dataclass
class Unknown:
    thing: complex


@dataclass
class Symbols:
    kind: Literal["not-a-symbol"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Undecided, r"Undecided\.price: a decimal needs a precision"),
        (Mapped, r"Mapped\.by_number: keys of an Avro map are text"),
        (Unknown, r"Unknown\.thing: complex has no Avro type"),
        (Symbols, r"'not-a-symbol' is not a symbol"),
    ],
)
def test_what_has_no_avro_type_is_refused_by_name(kind: type[Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        avro_schema(kind)
