"""Configs, modes, contexts, compatibility checks, and server information."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import Response

from ottla import __version__
from ottla.core.security import AclOperation
from ottla.http.registry.subjects import find_version
from ottla.registry import changes, refusals, settings
from ottla.registry.errors import Refusal
from ottla.registry.lookup import canonical_schema, messages_against
from ottla.registry.state import DEFAULT_LEVEL, DEFAULT_MODE
from ottla.registry.subjects import ALL_CONTEXTS, DEFAULT_CONTEXT, GLOBAL_CONTEXT, in_context, parse_subject, prefix_of

if TYPE_CHECKING:
    from ottla.http.registry.calls import RegistryCall
    from ottla.registry.model import Json, Version
    from ottla.registry.state import State

_CLUSTER_ID = "schema-registry"
_INVALID_SCHEMA = 42201


# Compatibility


async def check_against_version(call: RegistryCall) -> Json:
    number = call.version()
    subject = call.subject()
    call.check(AclOperation.READ, subject)
    if number == -1 and not call.state.versions(subject):
        await call.store.refresh(is_needed=True)
        if not call.state.versions(subject):
            await call.schema()
            return {"is_compatible": True} | ({"messages": []} if call.flag("verbose") else {})
    return await _checked(call, subject, [await find_version(call)])


async def check_against_subject(call: RegistryCall) -> Json:
    subject = call.subject()
    call.check(AclOperation.READ, subject)
    await call.store.refresh(is_needed=True)
    return await _checked(call, subject, call.state.versions(subject))


async def _checked(call: RegistryCall, subject: str, versions: list[Version]) -> Json:
    schema, _ = await call.schema()
    call.check_references(subject, schema)
    normalize, is_verbose = call.flag("normalize"), call.flag("verbose")

    def messages(state: State) -> list[str]:
        canonical, parsed = canonical_schema(state, subject, schema, normalize=normalize, is_new=True)
        return messages_against(state, subject, canonical, parsed, versions)

    try:
        found = await call.store.compute(messages)
    except Refusal as refused:
        if refused.code != _INVALID_SCHEMA or not is_verbose:
            raise
        found = [refused.message]
    return {"is_compatible": not found} | ({"messages": found} if is_verbose else {})


# Configs


async def show_global_config(call: RegistryCall) -> Json:
    return _config(call, call.top_subject())


async def show_config(call: RegistryCall) -> Json:
    return _config(call, call.setting_subject())


def _config(call: RegistryCall, subject: str | None) -> Json:
    call.check_setting(AclOperation.DESCRIBE_CONFIGS, subject)
    if call.flag("defaultToGlobal"):
        return call.state.config_in_scope(subject)
    config = call.state.config(subject)
    if config is None and subject not in (None, prefix_of(GLOBAL_CONTEXT)):
        raise refusals.no_config(subject)
    return {"compatibilityLevel": DEFAULT_LEVEL} | (config or {})


async def update_global_config(call: RegistryCall) -> Json:
    return await _update_config(call, call.top_subject())


async def update_config(call: RegistryCall) -> Json:
    return await _update_config(call, call.setting_subject())


async def _update_config(call: RegistryCall, subject: str | None) -> Json:
    call.check_setting(AclOperation.ALTER_CONFIGS, subject)
    given = await call.json()
    answer = await call.store.change(partial(settings.update_config, subject=subject, given=given), is_repeatable=True)
    call.note("UpdateSchemaConfig", subject or "")
    return answer


async def delete_global_config(call: RegistryCall) -> Json:
    return await _delete_config(call, call.top_subject())


async def delete_config(call: RegistryCall) -> Json:
    return await _delete_config(call, call.setting_subject())


async def _delete_config(call: RegistryCall, subject: str | None) -> Json:
    call.check_setting(AclOperation.ALTER_CONFIGS, subject)
    answer = await call.store.change(partial(settings.delete_config, subject=subject))
    call.note("DeleteSchemaConfig", subject or "")
    return answer


# Modes


async def show_global_mode(call: RegistryCall) -> Json:
    return _mode(call, call.top_subject())


async def show_mode(call: RegistryCall) -> Json:
    return _mode(call, call.setting_subject())


def _mode(call: RegistryCall, subject: str | None) -> Json:
    call.check_setting(AclOperation.DESCRIBE_CONFIGS, subject)
    if call.flag("defaultToGlobal"):
        return {"mode": call.state.mode_in_scope(subject)}
    mode = call.state.mode(subject)
    if mode is None and subject not in (None, prefix_of(GLOBAL_CONTEXT)):
        raise refusals.no_mode(subject)
    return {"mode": mode or DEFAULT_MODE}


async def update_global_mode(call: RegistryCall) -> Json:
    return await _update_mode(call, call.top_subject())


async def update_mode(call: RegistryCall) -> Json:
    return await _update_mode(call, call.setting_subject())


async def _update_mode(call: RegistryCall, subject: str | None) -> Json:
    call.check_setting(AclOperation.ALTER_CONFIGS, subject)
    mode, force = (await call.json()).get("mode"), call.flag("force")
    await call.store.change(partial(settings.update_mode, subject=subject, mode=mode, force=force), is_repeatable=True)
    call.note("UpdateSchemaMode", subject or "")
    return {"mode": mode.upper()} if isinstance(mode, str) else {}


async def delete_global_mode(call: RegistryCall) -> Json:
    return await _delete_mode(call, call.top_subject())


async def delete_mode(call: RegistryCall) -> Json:
    return await _delete_mode(call, call.setting_subject())


async def _delete_mode(call: RegistryCall, subject: str | None) -> Json:
    call.check_setting(AclOperation.ALTER_CONFIGS, subject)
    plan = partial(settings.delete_mode, subject=subject, is_recursive=call.flag("recursive"))
    mode = await call.store.change(plan)
    call.note("DeleteSchemaMode", subject or "")
    return {} if mode is None else {"mode": mode}


# Contexts and the server


async def list_contexts(call: RegistryCall) -> list[str]:
    """List contexts with a visible subject, and the default one."""
    prefix = call.text("contextPrefix")
    subjects = call.state.subjects(ALL_CONTEXTS, with_deleted=True)
    seen = {parse_subject(each).context for each in subjects if call.may(AclOperation.DESCRIBE, each)}
    found = [
        each
        for each in call.state.contexts()
        if each in seen or each == DEFAULT_CONTEXT or call.may(AclOperation.DESCRIBE, prefix_of(each))
    ]
    return call.page([each for each in found if each.startswith(prefix)])


async def delete_context(call: RegistryCall) -> Response:
    context = in_context(call.path("context"), "")
    call.check(AclOperation.DELETE, context)
    await call.store.change(partial(changes.delete_context, context=context))
    call.note("DeleteSchemaContext", context)
    return Response(status_code=204)


async def show_root(call: RegistryCall) -> Json:  # noqa: ARG001 - as every handler
    return {}


async def show_cluster_id(call: RegistryCall) -> Json:
    clusters = {"kafka-cluster": call.broker.cluster_id, "schema-registry-cluster": _CLUSTER_ID}
    return {"scope": {"path": [], "clusters": clusters}}


async def show_version(call: RegistryCall) -> Json:  # noqa: ARG001 - as every handler
    return {"version": __version__, "commitId": ""}


async def show_deployment(call: RegistryCall) -> Json:  # noqa: ARG001 - as every handler
    return {"attributes": []}
