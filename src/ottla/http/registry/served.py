"""All paths of the registry's API, with the parameters and error codes of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.http.registry import associations, schemas, settings, subjects
from ottla.http.registry.openapi import describe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.http.registry.calls import RegistryCall


class Served(NamedTuple):
    method: str
    path: str
    handle: Callable[[RegistryCall], Awaitable[Any]]
    summary: str
    parameters: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    """Error codes beside those that every request may get."""
    body: str = ""
    """The name of a schema in the API description."""
    answer: str = ""


_VERSION: Final = "/subjects/{subject}/versions/{version}"
_VERSIONS: Final = "/subjects/{subject}/versions"
_CHECK: Final = "/compatibility/subjects/{subject}/versions"
_PAGE: Final = ("offset", "limit")
_ID: Final = "/schemas/ids/{id}"
_GUID: Final = "/schemas/guids/{guid}"

_SCHEMAS: Final = (
    Served(
        "GET", _ID, schemas.show_schema, "A schema by its id",
        ("subject", "format", "referenceFormat", "fetchMaxId"), (40403,), answer="Schema",
    ),
    Served("GET", _ID + "/schema", schemas.show_schema_text, "The text of a schema", ("subject", "format"), (40403,)),
    Served(
        "GET", _ID + "/subjects", schemas.list_subjects_of_id, "Subjects of a schema",
        ("subject", "deleted", *_PAGE), (40403,), answer="Names",
    ),
    Served(
        "GET", _ID + "/versions", schemas.list_versions_of_id, "Subjects and versions of a schema",
        ("subject", "deleted", *_PAGE), (40403,), answer="Places",
    ),
    Served("GET", _GUID, schemas.show_schema_of_guid, "A schema by its GUID", ("format",), (40403,), answer="Schema"),
    Served("GET", _GUID + "/ids", schemas.list_ids_of_guid, "Ids of a schema, by context", (), (40403,)),
    Served("GET", "/schemas/types", schemas.list_types, "Schema types", answer="Names"),
    Served("GET", "/schemas/types/", schemas.list_types, "Schema types", answer="Names"),
    Served(
        "GET", "/schemas", schemas.list_schemas, "All schemas",
        (
            "subjectPrefix", "aliases", "deleted", "latestOnly", "ruleType",
            "resourceType", "associationType", "lifecycle", *_PAGE,
        ),
        answer="Schemas",
    ),
)  # fmt: skip

_SUBJECTS: Final = (
    Served(
        "GET", "/subjects", subjects.list_subjects, "All subjects",
        ("subjectPrefix", "deleted", "deletedOnly", *_PAGE), answer="Names",
    ),
    Served(
        "POST", "/subjects/{subject}", subjects.look_up_schema, "Whether a schema is registered",
        ("normalize", "deleted", "format"), (40401, 40403, 42201), "NewSchema", "Schema",
    ),
    Served(
        "DELETE", "/subjects/{subject}", subjects.delete_subject, "Delete a subject",
        ("permanent",), (40401, 40404, 40405, 40904, 42205, 42206), answer="Numbers",
    ),
    Served(
        "GET", _VERSIONS, subjects.list_versions, "Versions of a subject",
        ("deleted", "deletedOnly", "deletedAsNegative", *_PAGE), (40401,), answer="Numbers",
    ),
    Served(
        "POST", _VERSIONS, subjects.register, "Register a schema",
        ("normalize", "format", "force"), (40901, 42201, 42205, 42208, 42209, 42210), "NewSchema", "Schema",
    ),
    Served(
        "GET", "/subjects/{subject}/metadata", subjects.latest_with_metadata, "The latest version with metadata",
        ("key", "value", "deleted", "format"), (40403,), answer="Schema",
    ),
    Served(
        "GET", _VERSION, subjects.show_version, "A version",
        ("deleted", "format", "referenceFormat"), (40401, 40402, 42202), answer="Schema",
    ),
    Served(
        "DELETE", _VERSION, subjects.delete_version, "Delete a version",
        ("permanent",), (40401, 40402, 40406, 40407, 40907, 42202, 42205, 42206), answer="Number",
    ),
    Served(
        "GET", _VERSION + "/schema", subjects.show_schema_of_version, "The text of a version's schema",
        ("deleted", "format"), (40401, 40402, 42202),
    ),
    Served(
        "GET", _VERSION + "/referencedby", subjects.list_referring, "Ids of schemas that reference a version",
        ("deleted", *_PAGE), (40401, 40402, 42202), answer="Numbers",
    ),
    Served(
        "POST", _CHECK, settings.check_against_subject, "Check a schema against a subject",
        ("normalize", "verbose"), (42201,), "NewSchema", "Check",
    ),
    Served(
        "POST", _CHECK + "/{version}", settings.check_against_version, "Check a schema against a version",
        ("normalize", "verbose"), (40401, 40402, 42201, 42202), "NewSchema", "Check",
    ),
)  # fmt: skip

_RESOURCE: Final = "/associations/resources/{resourceId}"
_OF_ASSOCIATIONS: Final = ("resourceType", "associationType", "lifecycle", *_PAGE)
_CONFLICTS: Final = (40901, 40903, 40904, 40905, 40907, 42201, 42205, 42206, 42212)

_ASSOCIATIONS: Final = (
    Served(
        "GET", "/associations/subjects/{subject}", associations.list_by_subject, "Associations of a subject",
        _OF_ASSOCIATIONS, answer="Associations",
    ),
    Served(
        "GET", "/associations/resources/{resourceNamespace}/{resourceName}", associations.list_by_name,
        "Associations of a topic by its name", _OF_ASSOCIATIONS, answer="Associations",
    ),
    Served(
        "GET", _RESOURCE, associations.list_by_id, "Associations of a topic by its id",
        _OF_ASSOCIATIONS, answer="Associations",
    ),
    Served(
        "POST", "/associations", associations.create, "Associate a topic with subjects",
        ("context", "dryRun"), _CONFLICTS, "NewAssociations", "ResourceAssociations",
    ),
    Served(
        "PUT", _RESOURCE, associations.create_or_update, "Create or change associations of a topic",
        ("context", "dryRun"), (40905, 40907, 42205, 42212), "NewAssociations", "ResourceAssociations",
    ),
    Served(
        "DELETE", _RESOURCE, associations.delete, "Delete associations of a topic",
        ("resourceType", "associationType", "cascadeLifecycle", "dryRun"), (40410, 40908, 42205),
    ),
    Served(
        "POST", "/associations:batchGet", associations.batch_get, "Associations of several topics",
        ("includeSchemas",), (42212,), "AssociationRequests", "AssociationResults",
    ),
    Served(
        "POST", "/associations:batchMutate", associations.batch_mutate, "Change associations of several topics",
        ("context", "dryRun"), (42212,), "AssociationRequests", "AssociationResults",
    ),
)  # fmt: skip

_SETTINGS: Final = (
    Served(
        "GET", "/config", settings.show_global_config, "The global config", ("defaultToGlobal",), answer="Config"
    ),
    Served(
        "PUT", "/config", settings.update_global_config, "Change the global config",
        (), (42203, 42205, 42210), "Config",
    ),
    Served("DELETE", "/config", settings.delete_global_config, "Delete the global config", (), (42205,)),
    Served(
        "GET", "/config/{subject}", settings.show_config, "A subject's config",
        ("defaultToGlobal",), (40408,), answer="Config",
    ),
    Served(
        "PUT", "/config/{subject}", settings.update_config, "Change a subject's config",
        (), (42203, 42205, 42210), "Config",
    ),
    Served("DELETE", "/config/{subject}", settings.delete_config, "Delete a subject's config", (), (40401, 42205)),
    Served("GET", "/mode", settings.show_global_mode, "The global mode", ("defaultToGlobal",), answer="Mode"),
    Served(
        "PUT", "/mode", settings.update_global_mode, "Change the global mode",
        ("force",), (42204, 42205, 42206), "Mode",
    ),
    Served("DELETE", "/mode", settings.delete_global_mode, "Delete the global mode", ("recursive",), (40401,)),
    Served(
        "GET", "/mode/{subject}", settings.show_mode, "A subject's mode", ("defaultToGlobal",), (40409,), answer="Mode"
    ),
    Served(
        "PUT", "/mode/{subject}", settings.update_mode, "Change a subject's mode",
        ("force",), (42204, 42205, 42206), "Mode",
    ),
    Served("DELETE", "/mode/{subject}", settings.delete_mode, "Delete a subject's mode", ("recursive",), (40401,)),
    Served("GET", "/contexts", settings.list_contexts, "All contexts", ("contextPrefix", *_PAGE), answer="Names"),
    Served("DELETE", "/contexts/{context}", settings.delete_context, "Delete an empty context", (), (42205, 42211)),
    Served("GET", "/", settings.show_root, "The root"),
    Served("POST", "/", settings.show_root, "The root"),
    Served("GET", "/v1/metadata/id", settings.show_cluster_id, "The ids of the clusters"),
    Served("GET", "/v1/metadata/version", settings.show_version, "The version of the server"),
    Served("GET", "/v1/metadata/deployment", settings.show_deployment, "Attributes of the deployment"),
)  # fmt: skip

DESCRIBED: Final = (*_SCHEMAS, *_SUBJECTS, *_ASSOCIATIONS, *_SETTINGS)


async def show_description(call: RegistryCall) -> object:  # noqa: ARG001
    return describe(DESCRIBED)


SERVED: Final = (*DESCRIBED, Served("GET", "/openapi.json", show_description, "The description of this API"))
