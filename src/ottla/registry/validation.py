"""Whether a record's schema id is registered under the subject of its topic. Pure rules."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.registry.errors import Refusal
from ottla.registry.resolving import parsed_version
from ottla.registry.subjects import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.registry.model import Version
    from ottla.registry.state import State

TOPIC_NAME: Final = "TopicNameStrategy"
RECORD_NAME: Final = "RecordNameStrategy"
_BY_ID: Final = 0
ID_BYTES: Final = 5
"""A magic byte and the id."""
_BY_GUID: Final = 1
_GUID_BYTES: Final = 17


class SchemaId(NamedTuple):
    """A schema id in a record: one of the two is set."""

    id: int | None = None
    guid: bytes | None = None

    def __str__(self) -> str:
        return f"schema id {self.id}" if self.guid is None else f"schema {uuid.UUID(bytes=self.guid)}"


def read_id(data: bytes) -> SchemaId | None:
    """Parse the id at the start of a key, value or header; None if there is none."""
    if len(data) >= ID_BYTES and data[0] == _BY_ID:
        return SchemaId(id=int.from_bytes(data[1:ID_BYTES], signed=True))
    if len(data) >= _GUID_BYTES and data[0] == _BY_GUID:
        return SchemaId(guid=bytes(data[1:_GUID_BYTES]))
    return None


class SubjectRule:
    """The valid schemas of a topic's keys or values, in one state of the registry."""

    def __init__(self, state: State, topic: str, part: str, strategy: str) -> None:
        """`part` is key or value."""
        self.accepted: set[bytes] = set()
        """The first bytes of payloads that were found valid."""
        self._state = state
        self._topic = topic
        self._part = part
        self._strategy = strategy
        self._header = f"__{part}_schema_id"

    def problem(self, payload: bytes, headers: Sequence[tuple[str, bytes | None]]) -> str | None:
        """Why a payload is invalid; None if it is valid."""
        if payload[:ID_BYTES] in self.accepted:
            return None
        given = next((value for name, value in headers if name == self._header and value is not None), payload)
        found = read_id(given)
        if found is None:
            return f"the {self._part} has no schema id"
        if not self._is_registered(found):
            return f"{self._part}: {found} is not registered under {self._shown}"
        if given is payload and found.guid is None:
            self.accepted.add(bytes(payload[:ID_BYTES]))
        return None

    def _is_registered(self, given: SchemaId) -> bool:
        number = given.id
        if number is None:
            number = self._state.with_guid(given.guid or b"", DEFAULT_CONTEXT)
        if number is None:
            return False
        versions = [each for each in self._state.with_id(number, DEFAULT_CONTEXT) if not each.is_deleted]
        if self._strategy == TOPIC_NAME:
            return any(each.subject == f"{self._topic}-{self._part}" for each in versions)
        return any(each.subject in self._record_subjects(each) for each in versions)

    def _record_subjects(self, version: Version) -> list[str]:
        try:
            names = parsed_version(self._state, version).record_names()
        except Refusal:
            return []
        return names if self._strategy == RECORD_NAME else [f"{self._topic}-{name}" for name in names]

    @property
    def _shown(self) -> str:
        if self._strategy == TOPIC_NAME:
            return f"subject {self._topic}-{self._part}"
        return f"a subject of {self._strategy}"
