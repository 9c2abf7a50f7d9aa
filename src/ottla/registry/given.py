"""Metadata, rule sets and references in requests and records, validated and in canonical order."""

from __future__ import annotations

import re
from typing import Final

from ottla.registry.errors import Refusal
from ottla.registry.model import AVRO, RULE_KINDS, Json, Reference, Schema

_RULE_NAME: Final = re.compile(r"[^\W\d][\w-]{0,63}\Z")
_KINDS: Final = ("TRANSFORM", "CONDITION")
_MIGRATIONS: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN: Final = ("WRITE", "READ", "WRITEREAD")
_RULE_KEYS: Final = (
    "name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled",
)  # fmt: skip
INVALID_RULE_SET: Final = 42210


def schema_in(given: Json) -> Schema:
    """The schema in a request."""
    text, kind = given.get("schema"), given.get("schemaType") or AVRO
    if not isinstance(text, str | None) or not isinstance(kind, str):
        raise Refusal(422, "schema and schemaType must be strings")
    return Schema(
        text=text or "",
        type=kind.upper(),
        references=references_in(given.get("references")),
        metadata=metadata_in(given.get("metadata")),
        rule_set=rule_set_in(given.get("ruleSet")),
    )


def metadata_in(given: object) -> Json | None:
    if given is None:
        return None
    content = _object(given, "metadata")
    tags = _object(content.get("tags") or {}, "metadata.tags")
    properties = _object(content.get("properties") or {}, "metadata.properties")
    found = {
        "tags": {name: sorted(set(_strings(tags[name], "metadata.tags"))) for name in sorted(tags)},
        "properties": {name: _text(properties[name], "metadata.properties") for name in sorted(properties)},
        "sensitive": sorted(set(_strings(content.get("sensitive") or [], "metadata.sensitive"))),
    }
    return {key: value for key, value in found.items() if value}


def rule_set_in(given: object, *, is_checked: bool = True) -> Json | None:
    if given is None:
        return None
    content = _object(given, "ruleSet")
    found: Json = {}
    for kind in RULE_KINDS:
        rules = content.get(kind) or []
        if not isinstance(rules, list):
            raise Refusal(422, f"ruleSet.{kind} must be an array")
        shown = [_rule(_object(rule, f"ruleSet.{kind}")) for rule in rules]
        if is_checked:
            _check_rules(kind, shown)
        if shown:
            found[kind] = shown
    if content.get("enableAt"):
        found["enableAt"] = content["enableAt"]
    return found


def _rule(given: Json) -> Json:
    rule = {key: given[key] for key in _RULE_KEYS if given.get(key) not in (None, [], {}, "")}
    if "tags" in rule:
        rule["tags"] = sorted(set(_strings(rule["tags"], "rule.tags")))
    if "params" in rule:
        params = _object(rule["params"], "rule.params")
        rule["params"] = {name: _text(params[name], "rule.params") for name in sorted(params)}
    rule["disabled"] = bool(given.get("disabled", False))
    return rule


def _check_rules(kind: str, rules: list[Json]) -> None:
    modes = _MIGRATIONS if kind == "migrationRules" else _DOMAIN
    names: set[str] = set()
    for rule in rules:
        name = rule.get("name")
        if not isinstance(name, str) or not _RULE_NAME.match(name):
            raise Refusal(INVALID_RULE_SET, f"invalid rule name: {name!r}")
        if name in names:
            raise Refusal(INVALID_RULE_SET, f"duplicate rule name: {name}")
        names.add(name)
        if not rule.get("type"):
            raise Refusal(INVALID_RULE_SET, f"rule {name} has no type")
        if rule.get("kind") not in (None, *_KINDS):
            raise Refusal(INVALID_RULE_SET, f"rule {name}: kind must be {' or '.join(_KINDS)}, got {rule['kind']!r}")
        if rule.get("mode") not in (None, *modes):
            raise Refusal(INVALID_RULE_SET, f"rule {name}: mode must be one of {', '.join(modes)}")
        is_pair = rule.get("mode") in (None, "WRITEREAD", "UPDOWN")
        if not is_pair and any("," in str(rule.get(key, "")) for key in ("onSuccess", "onFailure")):
            raise Refusal(INVALID_RULE_SET, f"rule {name}: two actions need the mode WRITEREAD or UPDOWN")


def references_in(given: object) -> tuple[Reference, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise Refusal(422, "references must be an array")
    return tuple(_reference(_object(each, "references")) for each in given)


def _reference(given: Json) -> Reference:
    name, subject, version = given.get("name"), given.get("subject"), given.get("version", -1)
    if not isinstance(name, str) or not isinstance(subject, str) or not isinstance(version, int):
        raise Refusal(422, "a reference needs a name, a subject and a version")
    return Reference(name, subject, version)


def merged_metadata(old: Json | None, new: Json | None) -> Json | None:
    """Merge metadata; `new` takes precedence, property by property."""
    if old is None or new is None:
        return new if old is None else old
    return metadata_in(
        {
            "tags": old.get("tags", {}) | new.get("tags", {}),
            "properties": old.get("properties", {}) | new.get("properties", {}),
            "sensitive": [*old.get("sensitive", ()), *new.get("sensitive", ())],
        }
    )


def merged_rule_sets(old: Json | None, new: Json | None) -> Json | None:
    """Merge rule sets; `new` takes precedence, rule by rule."""
    if old is None or new is None:
        return new if old is None else old
    found: Json = {}
    for kind in RULE_KINDS:
        later = new.get(kind, [])
        names = {rule.get("name") for rule in later}
        rules = [*(rule for rule in old.get(kind, []) if rule.get("name") not in names), *later]
        if rules:
            found[kind] = rules
    enable_at = new.get("enableAt") or old.get("enableAt")
    return found | ({"enableAt": enable_at} if enable_at else {})


def _object(given: object, what: str) -> Json:
    if not isinstance(given, dict):
        raise Refusal(422, f"{what} must be an object")
    return given


def _strings(given: object, what: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise Refusal(422, f"{what} must be an array of strings")
    return given


def _text(given: object, what: str) -> str:
    if not isinstance(given, str):
        raise Refusal(422, f"{what} must be strings")
    return given
