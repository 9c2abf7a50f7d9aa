"""The registry's errors, with the error codes of its API."""

from __future__ import annotations

from ottla.registry.errors import Refusal


def subject_not_found(subject: str) -> Refusal:
    return Refusal(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> Refusal:
    return Refusal(40402, f"Version {version} not found.")


def schema_not_found(what: object = None) -> Refusal:
    return Refusal(40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_deleted(subject: str) -> Refusal:
    return Refusal(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_deleted(subject: str) -> Refusal:
    return Refusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40406, f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    )


def version_not_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_config(subject: str | None) -> Refusal:
    return Refusal(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str | None) -> Refusal:
    return Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def association_not_found(resource: str) -> Refusal:
    return Refusal(40410, f"Association for '{resource}' not found.")


def incompatible(messages: list[str], kind: str) -> Refusal:
    detail = f"; details: [{', '.join(messages)}]" if messages else ""
    return Refusal(
        40901, f'Schema being registered is incompatible with an earlier schema for subject "{kind}"{detail}'
    )


def association_exists(kind: str, resource: str) -> Refusal:
    return Refusal(40903, f"An association of type '{kind}' already exists for resource '{resource}'")


def subject_associated(subject: str) -> Refusal:
    return Refusal(40904, f"An association already exists for subject '{subject}'")


def strong_association_exists(subject: str) -> Refusal:
    return Refusal(40905, f"A strong association already exists for subject '{subject}'")


def no_active_version(subject: str) -> Refusal:
    return Refusal(40907, f"No active (non-deleted) version exists for subject '{subject}'")


def association_frozen(kind: str, subject: str) -> Refusal:
    return Refusal(40908, f"The association of type '{kind}' is frozen for subject '{subject}'")


def invalid_schema(why: object) -> Refusal:
    return Refusal(42201, f"Invalid schema: {why}")


def invalid_version(version: str) -> Refusal:
    return Refusal(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the"
        ' string "latest"',
    )


def invalid_level(level: object) -> Refusal:
    return Refusal(42203, f"Invalid compatibility level: {level!r}")


def invalid_mode(mode: object) -> Refusal:
    return Refusal(42204, f"Invalid mode: {mode!r}")


def not_permitted(why: str) -> Refusal:
    return Refusal(42205, why)


def referenced(subject: str, version: int) -> Refusal:
    return Refusal(42206, f"One or more references exist to the schema {subject} version {version}")


def invalid_subject(subject: str) -> Refusal:
    return Refusal(42208, f"The specified subject '{subject}' is not a valid subject")


def context_not_empty(context: str) -> Refusal:
    return Refusal(42211, f"The specified context '{context}' is not empty")


def invalid_association(name: str, why: str) -> Refusal:
    return Refusal(42212, f"The association specified an invalid value for property: '{name}', detail: {why}")
