"""Changes of configs and modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.registry import records, refusals
from ottla.registry.changes import Planned, check_writable
from ottla.registry.errors import Refusal
from ottla.registry.given import metadata_in, rule_set_in
from ottla.registry.model import LEVELS, MODES, POLICIES
from ottla.registry.subjects import GLOBAL_CONTEXT, parse_subject, prefix_of

if TYPE_CHECKING:
    from ottla.registry.model import Json
    from ottla.registry.state import State

_BOOLEANS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS: Final = ("alias", "aliasForDeks", "compatibilityGroup")
_METADATA: Final = ("defaultMetadata", "overrideMetadata")
_RULE_SETS: Final = ("defaultRuleSet", "overrideRuleSet")


def update_config(state: State, subject: str | None, given: Json) -> Planned[Json]:
    """Update a config. Omitted settings are unchanged; null removes one."""
    check_writable(state, subject)
    config = dict(state.config(subject) or {})
    for key, value in _checked(given).items():
        if value is None:
            config.pop(key, None)
        else:
            config[key] = value
    return Planned(given, (records.config_record(subject, config),))


def delete_config(state: State, subject: str | None) -> Planned[Json]:
    config = state.config(subject)
    if config is None and subject is not None:
        raise refusals.subject_not_found(subject)
    check_writable(state, subject)
    return Planned(config or state.config_in_scope(subject), (records.config_record(subject, None),))


def _checked(given: Json) -> Json:
    found: Json = {}
    for key, value in given.items():
        if key in ("compatibility", "compatibilityLevel"):
            found["compatibilityLevel"] = _choice(value, LEVELS)
        elif key == "compatibilityPolicy":
            found[key] = _choice(value, POLICIES)
        elif key in _BOOLEANS:
            if value is not None and not isinstance(value, bool):
                raise Refusal(422, f"{key} must be a boolean")
            found[key] = value
        elif key in _TEXTS:
            if value is not None and not isinstance(value, str):
                raise Refusal(422, f"{key} must be a string")
            found[key] = value or None
        elif key in _METADATA:
            found[key] = metadata_in(value)
        elif key in _RULE_SETS:
            found[key] = rule_set_in(value)
    return found


def _choice(value: object, choices: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    wanted = value.upper() if isinstance(value, str) else ""
    if wanted not in choices:
        raise refusals.invalid_level(value)
    return wanted


def update_mode(state: State, subject: str | None, mode: object, *, force: bool) -> Planned[None]:
    if mode is None:
        return Planned(None, (records.mode_record(subject, None),))
    wanted = mode.upper() if isinstance(mode, str) else ""
    if wanted not in MODES or (wanted == "FORWARD" and subject != prefix_of(GLOBAL_CONTEXT)):
        raise refusals.invalid_mode(mode)
    written = []
    if wanted == "IMPORT" and state.mode_in_scope(subject) != "IMPORT" and not force:
        if state.subjects_below(subject):
            raise refusals.not_permitted("Cannot import since found existing subjects")
        written = _cleared(state, subject)
    return Planned(None, (*written, records.mode_record(subject, wanted)))


def _cleared(state: State, subject: str | None) -> list[records.Record]:
    """Remove the remains of deleted versions, which must not affect an import."""
    found = []
    for name in state.subjects_below(subject, with_deleted=True):
        for each in state.versions(name, with_deleted=True):
            if state.referring(name, each.version, with_deleted=True):
                raise refusals.referenced(name, each.version)
            found.append(records.schema_tombstone(name, each.version))
    return [records.noop(state.largest_ids()), *found, records.clear_subject(subject)]


def delete_mode(state: State, subject: str | None, *, is_recursive: bool) -> Planned[str | None]:
    mode = state.mode(subject)
    if mode is None and not is_recursive:
        raise refusals.subject_not_found(str(subject))
    written = [records.mode_record(subject, None)]
    if is_recursive and (subject is None or parse_subject(subject).is_context):
        below = state.modes_below(subject or "")
        in_scope = [each for each in below if subject is not None or not each.startswith(":")]
        written += (records.mode_record(each, None) for each in in_scope)
    return Planned(mode, tuple(written))
