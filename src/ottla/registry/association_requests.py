"""Requests for associations, validated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ottla.registry import refusals
from ottla.registry.associations import KINDS, LIFECYCLES, STRONG, TOPIC, WEAK
from ottla.registry.given import schema_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.registry.associations import Association
    from ottla.registry.model import Json, Schema

_LONGEST_NAME: Final = 256
CREATE: Final = "CREATE"
UPSERT: Final = "UPSERT"
DELETE: Final = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """An association that a request asks for."""

    kind: str
    subject: str = ""
    lifecycle: str | None = None
    is_frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool = False

    def with_defaults(self, *, is_create: bool) -> Wish:
        """Of an association that does not exist yet: one with a schema is the topic's own."""
        if self.schema is not None and not is_create:
            raise refusals.invalid_association(
                "schema", "cannot be provided for an existing topic; such an association is created with the topic"
            )
        if self.schema is not None and self.lifecycle == WEAK:
            raise refusals.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
        if self.schema is not None and self.is_frozen is False:
            raise refusals.invalid_association("frozen", "cannot be false when a schema is provided")
        lifecycle = STRONG if self.schema is not None else self.lifecycle or WEAK
        is_frozen = lifecycle == STRONG
        if self.is_frozen not in (None, is_frozen):
            asked = str(self.is_frozen).lower()
            raise refusals.invalid_association(
                "frozen", f"association with lifecycle of {lifecycle} cannot be frozen={asked}"
            )
        return replace(self, lifecycle=lifecycle, is_frozen=is_frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    resource: str
    namespace: str
    resource_id: str = ""
    resource_type: str = TOPIC

    def default_subject(self, kind: str) -> str:
        return f":.{self.namespace}:{self.resource}-{kind}"

    def shown(self, associations: Sequence[Association], schemas: Mapping[str, Json]) -> Json:
        found = {
            "resourceName": self.resource,
            "resourceNamespace": self.namespace,
            "resourceId": self.resource_id,
            "resourceType": self.resource_type,
            "associations": [each.shown_below_resource(schemas.get(each.kind)) for each in associations],
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Resource):
    wishes: tuple[Wish, ...]
    is_create: bool
    is_dry_run: bool = False
    context: str = ""


def wanted_in(given: Json, *, is_create: bool, is_dry_run: bool, context: str) -> Wanted:
    resource = _resource_in(given, is_dry_run=is_dry_run)
    wishes = tuple(wish_in(each, resource, is_create=is_create) for each in _objects(given, "associations"))
    _check_kinds([each.kind for each in wishes])
    return Wanted(
        resource=resource.resource,
        namespace=resource.namespace,
        resource_id=resource.resource_id,
        wishes=wishes,
        is_create=is_create,
        is_dry_run=is_dry_run,
        context=context,
    )


def wish_in(given: Json, resource: Resource, *, is_create: bool) -> Wish:
    lifecycle, is_frozen, schema = given.get("lifecycle"), given.get("frozen"), given.get("schema")
    if lifecycle not in (None, *LIFECYCLES):
        raise refusals.invalid_association("lifecycle", "must be either 'STRONG' or 'WEAK'")
    if not isinstance(is_frozen, bool | None):
        raise refusals.invalid_association("frozen", "must be a boolean")
    if not isinstance(schema, dict | None):
        raise refusals.invalid_association("schema", "must be an object")
    wish = Wish(
        kind=kind_in(given),
        subject=_subject_in(given),
        lifecycle=lifecycle,
        is_frozen=is_frozen,
        schema=None if schema is None else schema_in(schema),
        normalize=given.get("normalize") is True,
    )
    return _created(wish.with_defaults(is_create=True), resource) if is_create else wish


def _created(wish: Wish, resource: Resource) -> Wish:
    default = resource.default_subject(wish.kind)
    if wish.lifecycle == WEAK and not wish.subject:
        raise refusals.invalid_association("subject", "must be provided for WEAK associations")
    if wish.is_frozen and wish.subject not in ("", default):
        raise refusals.invalid_association("subject", f"frozen associations must use subject '{default}'")
    if wish.lifecycle == WEAK and wish.subject == default:
        raise refusals.invalid_association("subject", f"WEAK associations cannot use subject '{default}'")
    return replace(wish, subject=wish.subject or default)


def kind_in(given: Json) -> str:
    kind = given.get("associationType") or "value"
    if kind not in KINDS:
        raise refusals.invalid_association("associationType", "must be either 'key' or 'value'")
    return str(kind)


def _subject_in(given: Json) -> str:
    subject = given.get("subject")
    if subject is None:
        return ""
    if not isinstance(subject, str) or not subject or any(ord(each) < 0x20 or ord(each) == 0x7F for each in subject):
        raise refusals.invalid_association("subject", "must not be empty or contain control characters")
    return subject


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise refusals.invalid_association(
                "associationType", f"may only appear once per request, but '{kind}' is repeated"
            )


def _resource_in(given: Json, *, is_dry_run: bool) -> Resource:
    identifier = _text(given, "resourceId")
    if not identifier and not is_dry_run:
        raise refusals.invalid_association("resourceId", "cannot be null or empty")
    if _text(given, "resourceType") not in ("", TOPIC):
        raise refusals.invalid_association("resourceType", f"must be '{TOPIC}'")
    return Resource(
        resource=_name(given, "resourceName"), namespace=_name(given, "resourceNamespace"), resource_id=identifier
    )


def _name(given: Json, key: str) -> str:
    name = _text(given, key)
    if not name:
        raise refusals.invalid_association(key, "cannot be null or empty")
    if len(name) > _LONGEST_NAME:
        raise refusals.invalid_association(key, f"exceeds max length of {_LONGEST_NAME}")
    for each in name:
        if not each.isalnum() and each not in "_-":
            raise refusals.invalid_association(key, f"illegal character '{each}'")
    return name


def _text(given: Json, key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str | None):
        raise refusals.invalid_association(key, "must be a string")
    return value or ""


def _objects(given: Json, key: str) -> list[Json]:
    found = given.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise refusals.invalid_association(key, "cannot be null or empty")
    return found


# Batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    kinds: tuple[str, ...]
    """Empty for all."""
    is_cascading: bool = False
    """Whether the subjects of strong associations are deleted, too."""
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations(Resource):
    """Adjacent operations of the same type are one request."""

    steps: tuple[Wanted | Deletion, ...]
    is_dry_run: bool


def requests_in(given: Json) -> list[Json]:
    return _objects(given, "requests")


def operations_in(given: Json, *, is_dry_run: bool, context: str) -> Operations:
    resource = _resource_in(given, is_dry_run=is_dry_run)
    steps: list[Wanted | Deletion] = []
    names: dict[str, Any] = {
        "resource": resource.resource, "namespace": resource.namespace, "resource_id": resource.resource_id,
    }  # fmt: skip
    operations = _objects(given, "associations")
    _check_kinds([kind_in(each) for each in operations])
    for each in operations:
        asked = each.get("opType")
        if asked == DELETE:
            steps.append(Deletion(kinds=(kind_in(each),), is_cascading=each.get("cascadeLifecycle") is True))
            continue
        if asked not in (CREATE, UPSERT):
            raise refusals.invalid_association("opType", "must be CREATE, UPSERT or DELETE")
        is_create = asked == CREATE
        wish = wish_in(each, resource, is_create=is_create)
        last = steps[-1] if steps else None
        if isinstance(last, Wanted) and last.is_create == is_create:
            steps[-1] = replace(last, wishes=(*last.wishes, wish))
        else:
            steps.append(Wanted(**names, wishes=(wish,), is_create=is_create, is_dry_run=is_dry_run, context=context))
    return Operations(**names, steps=tuple(steps), is_dry_run=is_dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which associations are asked for."""

    resource: str
    namespace: str
    resource_id: str
    resource_type: str
    kinds: tuple[str, ...]
    lifecycle: str | None


def question_in(given: Json) -> Question:
    resource, namespace, identifier = (_text(given, key) for key in ("resourceName", "resourceNamespace", "resourceId"))
    kinds, lifecycle = given.get("associationTypes") or [], given.get("lifecycle")
    if not identifier and not resource:
        raise refusals.invalid_association("resourceId", "either resourceId or resourceName must be specified")
    if resource and not namespace:
        raise refusals.invalid_association("resourceNamespace", "is required when resourceName is specified")
    if not isinstance(kinds, list) or not all(isinstance(each, str) for each in kinds):
        raise refusals.invalid_association("associationTypes", "must be an array of strings")
    if lifecycle not in (None, *LIFECYCLES):
        raise refusals.invalid_association("lifecycle", "must be either 'STRONG' or 'WEAK'")
    return Question(
        resource=resource,
        namespace=namespace,
        resource_id=identifier,
        resource_type=_text(given, "resourceType") or TOPIC,
        kinds=tuple(kinds),
        lifecycle=lifecycle,
    )
