"""Checks that the stores of a pipeline can be written to, before Spark is started."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.stores.opening import settled, store_files
from ottla.spark.pipelines.stores.refusals import explained
from ottla.spark.pipelines.stores.secrets import redacted
from ottla.spark.pipelines.tables.staging import OWN_FOLDER

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.stores.settings import StorageSettings

_PATIENCE: Final = timedelta(seconds=10)


def check_stores(pipeline: Pipeline) -> None:
    """Raises with what is wrong and what to do about it."""
    for sink in pipeline.sinks.values():
        sink.check_access()


def check_access(address: str, settings: StorageSettings) -> None:
    """Write an object, and write it again in a way that must fail: what makes commits safe."""
    store_files(address, settings)  # says that the package is missing
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError

    from ottla.spark.pipelines.stores.object_files import opened_store

    known = settled(address, settings)
    name = f"{OWN_FOLDER}/probe-{secrets.token_hex(6)}"
    try:
        store = opened_store(address, known, _PATIENCE)
        obstore.put(store, name, b"", mode="create")
        try:
            obstore.put(store, name, b"", mode="create")
            is_safe = False
        except AlreadyExistsError:
            is_safe = True
        obstore.delete(store, name)
    except (BaseError, OSError, ValueError) as refused:
        reason = redacted(explained(str(refused), address, known.endpoint), known.secrets)
        raise ConfigError(f"{address} cannot be used: {reason}") from None
    if not is_safe:
        raise ConfigError(
            f"{address} cannot be used: the store ignores conditional writes (If-None-Match), which commits need"
        )
