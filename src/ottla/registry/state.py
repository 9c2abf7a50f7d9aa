"""All subjects, their versions, configs and modes: the state built from the records of `_schemas`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.registry.foreign import are_same
from ottla.registry.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, beside, is_below, parse_subject, prefix_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.registry.associations import Association, AssociationKey
    from ottla.registry.model import Json, Schema, Version
    from ottla.registry.records import Change

K = TypeVar("K")
P = TypeVar("P")
V = TypeVar("V")

DEFAULT_LEVEL: Final = "BACKWARD"
DEFAULT_MODE: Final = "READWRITE"
_INHERITED: Final = (
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityPolicy",
    "compatibilityGroup",
)
"""Settings that a subject's config inherits from the global one."""


class _Context:
    """The ids of a context, which are unique within it."""

    def __init__(self) -> None:
        self.largest_id = 0
        self.by_id: dict[int, dict[tuple[str, int], Version]] = {}
        self.id_of: dict[bytes, int] = {}
        """Ids by fingerprint, including ids that only deleted versions have."""

    def copy(self) -> _Context:
        copy = _Context()
        copy.largest_id, copy.by_id, copy.id_of = self.largest_id, self.by_id.copy(), self.id_of.copy()
        return copy


class State:
    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, Version]] = {}
        self._contexts: dict[str, _Context] = {DEFAULT_CONTEXT: _Context()}
        self._known_contexts: set[str] = set()
        self._configs: dict[str | None, Json] = {}
        self._modes: dict[str | None, str] = {}
        self._associations: dict[AssociationKey, Association] = {}
        self._referring: dict[tuple[str, int], dict[tuple[str, int], None]] = {}
        """The versions that reference each version."""
        self.duplicates = 0
        """The number of records that gave an id to a second schema, and were ignored."""

        self._snapshot: State | None = None
        self._owned: set[tuple[object, ...]] = set()
        """Inner containers that are not shared with a snapshot: a shared one is copied before it is changed."""

    def snapshot(self) -> State:
        """The current state, to be read in another thread while changes continue."""
        if self._snapshot is None:
            self._snapshot = self.fork()
        return self._snapshot

    def fork(self) -> State:
        """A copy that can be changed: to plan several changes that build on each other."""
        copy = State()
        copy._subjects = self._subjects.copy()
        copy._contexts = {name: each.copy() for name, each in self._contexts.items()}
        copy._known_contexts = self._known_contexts.copy()
        copy._configs, copy._modes = self._configs.copy(), self._modes.copy()
        copy._referring = self._referring.copy()
        copy._associations = self._associations.copy()
        self._owned.clear()
        return copy

    # Changes

    def apply(self, change: Change) -> None:
        self._snapshot = None
        kind, subject, number, value = change
        if kind in ("CONFIG", "MODE", "CONTEXT", "ASSOC"):
            self._apply_setting(change)
        elif kind == "DELETE_SUBJECT" and subject is not None:
            for version in tuple(self._subjects.get(subject, {}).values()):
                if version.version <= number:
                    self._put(replace(version, is_deleted=True))
        elif kind == "CLEAR_SUBJECT":
            self._clear(subject)
        elif kind == "NOOP":
            for name, number in (value or {}).items():
                self._named_context(name).largest_id = max(self._named_context(name).largest_id, number)
        elif kind == "SCHEMA" and value is not None:
            self._register(value)
        elif kind == "SCHEMA" and subject is not None:
            self._remove(subject, number)

    def _apply_setting(self, change: Change) -> None:
        kind, subject, _, value = change
        if kind == "CONFIG":
            _put(self._configs, subject, value)
        elif kind == "MODE":
            _put(self._modes, subject, value)
        elif kind == "ASSOC":
            self._associate(*value)
        elif subject is not None:
            (self._known_contexts.discard if value is None else self._known_contexts.add)(subject)

    def _associate(self, key: AssociationKey, association: Association | None) -> None:
        old = self._associations.get(key)
        if association is not None and old is not None:
            association = replace(association, created_ms=old.created_ms)
        _put(self._associations, key, association)

    def _register(self, version: Version) -> None:
        context = self._context(version.subject)
        others = context.by_id.get(version.id, {})
        if not all(are_same(each.schema, version.schema) for each in others.values()):
            self.duplicates += 1
            return
        context.largest_id = max(context.largest_id, version.id)
        self._put(version)

    def _put(self, version: Version) -> None:
        context = self._context(version.subject)
        place = version.subject, version.version
        self._forget(place)
        self._own(self._subjects, version.subject)[version.version] = version
        self._own(context.by_id, version.id)[place] = version
        context.id_of[version.schema.fingerprint()] = version.id
        for target in self._targets(version):
            self._own(self._referring, target)[place] = None

    def _own(self, containers: dict[K, dict[P, V]], key: K) -> dict[P, V]:
        """The inner container, copied first if a snapshot shares it."""
        place = id(containers), key
        if place not in self._owned:
            self._owned.add(place)
            containers[key] = dict(containers.get(key, ()))
        return containers.setdefault(key, {})

    def _remove(self, subject: str, number: int) -> None:
        self._forget((subject, number))
        versions = self._own(self._subjects, subject)
        versions.pop(number, None)
        if not versions:
            self._subjects.pop(subject, None)

    def _forget(self, place: tuple[str, int]) -> None:
        old = self._subjects.get(place[0], {}).get(place[1])
        if old is None:
            return
        context = self._context(old.subject)
        with_id = self._own(context.by_id, old.id)
        with_id.pop(place, None)
        if not with_id:
            context.by_id.pop(old.id, None)
            context.id_of.pop(old.schema.fingerprint(), None)
        for target in self._targets(old):
            self._own(self._referring, target).pop(place, None)

    def _clear(self, subject: str | None) -> None:
        """Forget the remains of deleted versions, of a subject or a context."""
        for name in self.subjects_below(subject, with_deleted=True):
            for number in tuple(self._subjects[name]):
                if self._subjects[name][number].is_deleted:
                    self._remove(name, number)

    def _targets(self, version: Version) -> Iterator[tuple[str, int]]:
        for reference in version.schema.references:
            yield beside(version.subject, reference.subject), reference.version

    def _context(self, subject: str) -> _Context:
        return self._named_context(parse_subject(subject).context)

    def _named_context(self, name: str) -> _Context:
        if name not in self._contexts:
            self._contexts[name] = _Context()
        return self._contexts[name]

    def largest_ids(self) -> dict[str, int]:
        """The highest assigned id of each context, including ids of versions that no record contains any more."""
        return {name: each.largest_id for name, each in self._contexts.items() if each.largest_id}

    # Versions

    def versions(self, subject: str, *, with_deleted: bool = False) -> list[Version]:
        """The versions in ascending order."""
        found = self._subjects.get(subject, {})
        return [found[number] for number in sorted(found) if with_deleted or not found[number].is_deleted]

    def version(self, subject: str, number: int, *, with_deleted: bool = False) -> Version | None:
        """A version; -1 is the latest."""
        if number == -1:
            found = self.versions(subject, with_deleted=with_deleted)
            return found[-1] if found else None
        version = self._subjects.get(subject, {}).get(number)
        return None if version is None or (version.is_deleted and not with_deleted) else version

    def with_schema(self, subject: str, schema: Schema) -> tuple[int | None, Version | None]:
        """The id of a schema in the subject's context, and its latest version under the subject, deleted or not."""
        context = self._context(subject)
        found = context.id_of.get(schema.fingerprint())
        if found is None:
            return None, None
        places = context.by_id.get(found, {})
        below = [each for (name, _), each in places.items() if name == subject]
        below.sort(key=lambda each: (not each.is_deleted, each.version))
        return found, below[-1] if below else None

    def with_id(self, number: int, context: str) -> list[Version]:
        found = self._contexts.get(context)
        places = {} if found is None else found.by_id.get(number, {})
        return sorted(places.values(), key=lambda each: (each.subject, each.version))

    def with_guid(self, fingerprint: bytes, context: str) -> int | None:
        found = self._contexts.get(context)
        return None if found is None else found.id_of.get(fingerprint)

    @property
    def schema_count(self) -> int:
        return sum(len(each.by_id) for each in self._contexts.values())

    def next_id(self, subject: str) -> int:
        return self._context(subject).largest_id + 1

    def largest_id(self, context: str) -> int:
        return self._contexts[context].largest_id if context in self._contexts else 0

    def referring(self, subject: str, number: int, *, with_deleted: bool = False) -> list[Version]:
        """Versions that reference this one."""
        places = sorted(self._referring.get((subject, number), ()))
        found = [self._subjects[name][version] for name, version in places]
        return [each for each in found if with_deleted or not each.is_deleted]

    # Subjects and contexts

    def subjects(self, prefix: str = "", *, with_deleted: bool = False) -> list[str]:
        """The subjects with this prefix; `:*:` stands for every context."""
        found = (name for name in self._subjects if is_below(name, prefix))
        return sorted(name for name in found if self.versions(name, with_deleted=with_deleted))

    def subjects_below(self, subject: str | None, *, with_deleted: bool = False) -> list[str]:
        """A subject, the subjects of a context, or all."""
        if subject is None:
            return self.subjects(":*:", with_deleted=with_deleted)
        parsed = parse_subject(subject)
        if parsed.is_context:
            return self.subjects(prefix_of(parsed.context), with_deleted=with_deleted)
        return [subject] if self.versions(subject, with_deleted=with_deleted) else []

    def contexts(self) -> list[str]:
        used = {parse_subject(name).context for name in self._subjects}
        return sorted({DEFAULT_CONTEXT} | self._known_contexts | used)

    def knows_context(self, name: str) -> bool:
        return name in self._known_contexts

    # Associations

    def associations(
        self, *, subject: str = "", resource_id: str = "", resource: str = "", namespace: str = ""
    ) -> list[Association]:
        """Those of a subject, or of a resource; in the order of their names."""
        return [
            each
            for key, each in sorted(self._associations.items())
            if subject in ("", key.subject)
            and resource_id in ("", each.resource_id)
            and resource in ("", key.resource)
            and namespace in ("", key.namespace)
        ]

    # Configs and modes

    def config(self, subject: str | None) -> Json | None:
        return self._configs.get(subject)

    def config_in_scope(self, subject: str | None) -> Json:
        """The config of the subject, of its context, or the global one."""
        level = {"compatibilityLevel": DEFAULT_LEVEL}
        own = self._configs.get(subject)
        if own is not None and subject is not None:
            inherited = self._configs.get(None, {})
            return level | {key: inherited[key] for key in _INHERITED if key in inherited} | own
        for scope in _scopes(subject):
            if scope in self._configs:
                return level | self._configs[scope]
        return level

    def aliases(self, prefix: str) -> dict[str, list[str]]:
        """The subjects that aliases with this prefix stand for, and these aliases."""
        found: dict[str, list[str]] = {}
        for name, config in self._configs.items():
            if name is not None and config.get("alias") and is_below(name, prefix):
                found.setdefault(beside(name, config["alias"]), []).append(name)
        return {subject: sorted(names) for subject, names in found.items()}

    def mode(self, subject: str | None) -> str | None:
        return self._modes.get(subject)

    def mode_in_scope(self, subject: str | None) -> str:
        override = self._modes.get(None)
        if override == "READONLY_OVERRIDE":
            return override
        for scope in _scopes(subject):
            if scope in self._modes:
                return self._modes[scope]
        return DEFAULT_MODE

    def modes_below(self, prefix: str) -> list[str]:
        return sorted(name for name in self._modes if name is not None and name.startswith(prefix) and name != prefix)


def _scopes(subject: str | None) -> list[str | None]:
    """The scopes, narrowest first."""
    found: list[str | None] = []
    context = DEFAULT_CONTEXT
    if subject is not None:
        found.append(subject)
        context = parse_subject(subject).context
    return [*found, None if context == DEFAULT_CONTEXT else prefix_of(context), prefix_of(GLOBAL_CONTEXT)]


def _put(table: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
