"""Keys and values decoded by the schema id that they carry, for `keys=schema` and `values=schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ottla.core.errors import OttlaError
from ottla.core.security import AclOperation, ResourceType
from ottla.http.records.payloads import show
from ottla.registry.errors import InvalidSchema, Refusal
from ottla.registry.model import AVRO, JSON
from ottla.registry.resolving import resolve
from ottla.registry.subjects import DEFAULT_CONTEXT
from ottla.schema.errors import SchemaError
from ottla.schema.frames import header_indexes, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.http.framework.endpoints import Call
    from ottla.http.records.payloads import Shown
    from ottla.records.reader import Record
    from ottla.registry.model import Version
    from ottla.registry.state import State
    from ottla.schema.frames import Part, SchemaId

    Read = Callable[[bytes, bytes | None], Any]

_SUBJECT_RESOURCE = "_schemas:"


class Decoding:
    """Decodes records for one request, with the schemas that its sender may read."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._store = call.broker.schemas
        self._readers: dict[SchemaId, Read | None] = {}

    async def refresh(self) -> None:
        """Load new schemas before records are shown."""
        await self._store.refresh()
        self._readers = {wanted: read for wanted, read in self._readers.items() if read is not None}

    def show(self, record: Record, part: Part) -> Shown:
        """The decoded value; the same as without a schema if it cannot be decoded."""
        data: bytes | None = record.key if part == "key" else record.value
        if data is None:
            return None, "none"
        try:
            wanted, begin = split(data, part, record.headers)
            read = self._reader(wanted)
            if read is not None:
                value = read(data[begin:], header_indexes(part, record.headers))
                return msgspec.Raw(msgspec.json.encode(value, enc_hook=str)), "schema"
        except (OttlaError, ValueError, TypeError, RecursionError):
            pass  # does not match its schema
        return show(data)

    def _reader(self, wanted: SchemaId) -> Read | None:
        if wanted not in self._readers:
            self._readers[wanted] = self._loaded(wanted)
        return self._readers[wanted]

    def _loaded(self, wanted: SchemaId) -> Read | None:
        state = self._store.state
        number = wanted.number
        if wanted.guid is not None:
            number = state.with_guid(bytes.fromhex(wanted.guid.replace("-", "")), DEFAULT_CONTEXT)
        for version in [] if number is None else state.with_id(number, DEFAULT_CONTEXT):
            if self._call.may(AclOperation.READ, ResourceType.TOPIC, _SUBJECT_RESOURCE + version.subject):
                return _reader_of(state, version)
        return None


def _reader_of(state: State, version: Version) -> Read | None:
    schema = version.schema
    if schema.type == JSON:
        return lambda data, _: msgspec.Raw(msgspec.json.format(data, indent=-1))
    try:
        resolved = resolve(state, version.subject, schema)
        if schema.type == AVRO:
            from ottla.schema.avro import AvroCodec

            codec = AvroCodec(schema, resolved)
            return lambda data, _: codec.decode(data)
        from ottla.schema.protobuf import dictionaries

        return dictionaries(schema, resolved)
    except (SchemaError, InvalidSchema, Refusal, OttlaError):
        return None  # also without the packages of ottla[registry]
