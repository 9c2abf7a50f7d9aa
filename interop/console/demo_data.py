"""Topics and groups of a small shop, as content for the pages."""

import json
import struct
import time

import httpx
from confluent_kafka import Consumer, Producer

ORDERS = 1500
VIEWS = 20_000
READINGS = 60
LONG_ID = 9007199254740993
"""The first whole number that a browser would round."""

READING_SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "at", "type": "long"},
        {"name": "celsius", "type": "double"},
        {"name": "room", "type": ["null", "string"]},
    ],
}


_NUMBER = {"name": "number", "type": "long"}
_NOTE = {"name": "note", "type": "string", "default": ""}
INVOICE_SCHEMAS = [{"type": "record", "name": "Invoice", "fields": fields} for fields in ([_NUMBER], [_NUMBER, _NOTE])]


def fill(http: httpx.Client, bootstrap: str) -> None:
    for name, partitions in (("orders", 3), ("page-views", 4), ("sensor-readings", 1), ("invoices", 1)):
        configs = {"segment.bytes": "1048576"} if name == "page-views" else {}
        answer = http.post("/v1/topics", json={"name": name, "partitions": partitions, "configs": configs})
        answer.raise_for_status()
    for schema in INVOICE_SCHEMAS:
        answer = http.post("/schema-registry/subjects/invoices-value/versions", json={"schema": json.dumps(schema)})
        answer.raise_for_status()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(ORDERS):
        headers = [("trace", f"{number:08x}"), ("source", "shop")]
        producer.produce("orders", key=f"customer-{number % 97}", value=order(number), headers=headers)
    for number in range(VIEWS):
        producer.produce("page-views", value=json.dumps({"path": f"/product/{number % 500}", "agent": "x" * 60}))
        producer.poll(0)
    for number in range(READINGS):
        producer.produce("sensor-readings", key=f"sensor-{number % 5}", value=reading(number))
    assert producer.flush(30) == 0
    tell_of_pipeline(producer)
    begin_transaction(bootstrap)
    read_some(bootstrap, "billing", "orders", 900)
    read_some(bootstrap, "reports", "page-views", 15_000)


def begin_transaction(bootstrap: str) -> None:
    """A transaction that is left open."""
    settings = {
        "bootstrap.servers": bootstrap,
        "transactional.id": "shop-checkout",
        "transaction.timeout.ms": 900_000,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("invoices", value="{}")
    assert producer.flush(30) == 0
    _left_open.append(producer)  # its end would abort the transaction


_left_open: list[Producer] = []


def tell_of_pipeline(producer: Producer) -> None:
    """The last report of a killed pipeline."""
    query = {
        "name": "lake",
        "sink": "delta /lake/orders",
        "batch": 41,
        "rows": 12_000,
        "rows_per_second": 480.5,
        "lag": 37,
    }
    status = {"name": "orders-to-lake", "state": "running", "started_ms": 1794725428734, "queries": [query]}
    hour_ago_ms = int(time.time() * 1000) - 3_600_000
    producer.produce("__ottla_pipelines", key=status["name"], value=json.dumps(status), timestamp=hour_ago_ms)
    assert producer.flush(30) == 0


def order(number: int) -> str:
    items = [{"sku": "coffee", "count": number % 4 + 1}, {"sku": "cake", "count": 1}]
    return json.dumps({"order": number, "id": LONG_ID + 2 * number, "items": items, "paid": number % 3 == 0})


def reading(number: int) -> bytes:
    """In a schema registry's envelope."""
    room = _zigzag(1) + _text("kitchen") if number % 2 else _zigzag(0)
    celsius = struct.pack("<d", 20.5 + number / 7)
    return b"\0" + struct.pack(">I", 42) + _text(f"sensor-{number % 5}") + _zigzag(1794725428734) + celsius + room


def _text(text: str) -> bytes:
    return _zigzag(len(text)) + text.encode()


def _zigzag(number: int) -> bytes:
    left, encoded = number << 1, b""
    while left > 0x7F:
        encoded += bytes([left & 0x7F | 0x80])
        left >>= 7
    return encoded + bytes([left])


def read_some(bootstrap: str, group: str, topic: str, messages: int) -> None:
    consumer = open_consumer(bootstrap, group, topic)
    read = 0
    while read < messages:
        read += len(consumer.consume(min(500, messages - read), timeout=10))
    consumer.commit(asynchronous=False)
    consumer.close()


def open_consumer(bootstrap: str, group: str, topic: str) -> Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    return consumer
