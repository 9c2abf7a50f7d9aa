"""Associations of topics with subjects: whose schemas the keys and values of a topic have.

A strong association is the topic's own: the subject has one, has its schema from the same request, is deleted with it,
and cannot be referenced. Weak ones can be shared. The rules are those of Confluent's registry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ottla.registry.model import Json

STRONG: Final = "STRONG"
WEAK: Final = "WEAK"
LIFECYCLES: Final = (STRONG, WEAK)
TOPIC: Final = "topic"
KINDS: Final = ("key", "value")


class AssociationKey(NamedTuple):
    """What there is one association of; also the order in which they are listed."""

    resource: str
    namespace: str
    resource_type: str
    kind: str
    """key or value."""
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    key: AssociationKey
    guid: str
    resource_id: str
    lifecycle: str
    is_frozen: bool
    created_ms: int | None = None
    updated_ms: int | None = None

    @property
    def kind(self) -> str:
        return self.key.kind

    @property
    def subject(self) -> str:
        return self.key.subject

    def shown(self) -> Json:
        """The association entity of the API."""
        key = self.key
        found: Json = {
            "subject": key.subject,
            "guid": self.guid,
            "resourceName": key.resource,
            "resourceNamespace": key.namespace,
            "resourceId": self.resource_id,
            "resourceType": key.resource_type,
            "associationType": key.kind,
            "lifecycle": self.lifecycle,
            **self._frozen(),
            "createTs": self.created_ms,
            "updateTs": self.updated_ms,
        }
        return {name: value for name, value in found.items() if value is not None}

    def shown_below_resource(self, schema: Json | None = None) -> Json:
        found = {
            "subject": self.subject,
            "associationType": self.kind,
            "lifecycle": self.lifecycle,
            **self._frozen(),
        }
        return found if schema is None else found | {"schema": schema}

    def _frozen(self) -> Json:
        """Only where it differs from what the lifecycle says."""
        return {} if self.is_frozen == (self.lifecycle == STRONG) else {"frozen": self.is_frozen}


def selected(
    found: Iterable[Association],
    *,
    resource_type: str | None = None,
    kinds: Collection[str] = (),
    lifecycle: str | None = None,
) -> list[Association]:
    return [
        each
        for each in found
        if resource_type in (None, each.key.resource_type)
        and (not kinds or each.kind in kinds)
        and lifecycle in (None, each.lifecycle)
    ]


def latest_resource(found: list[Association]) -> list[Association]:
    """Of several resources with the same name, those of the last one that was changed."""
    if not found:
        return []
    newest = max(found, key=lambda each: (each.updated_ms or 0, each.created_ms or 0, each.resource_id))
    return [each for each in found if each.resource_id == newest.resource_id]
