"""Whether the stores of a pipeline can be written to, before Spark is started for them."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import TABLE_KINDS
from ottla.spark.pipelines.stores.addresses import is_in_store
from ottla.spark.pipelines.stores.opening import settled, store_files
from ottla.spark.pipelines.stores.refusals import explained
from ottla.spark.pipelines.stores.secrets import redacted, secrets_of
from ottla.spark.pipelines.tables.staging import OWN_FOLDER

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Pipeline, Sink
    from ottla.spark.pipelines.stores.settings import StorageSettings

_PATIENCE: Final = timedelta(seconds=10)


def check_stores(pipeline: Pipeline) -> None:
    """Raises with what is wrong and what to do about it."""
    for sink in pipeline.sinks.values():
        if sink.kind in TABLE_KINDS and is_in_store(sink.path):
            _check_libraries(sink)
            try:
                check_access(sink.path, sink.storage)
            except ConfigError as refused:
                raise ConfigError(f"[sink.{sink.name}] path: {refused}") from None
            _check_catalog(sink)


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


def _check_libraries(sink: Sink) -> None:
    if sink.kind == "delta":
        from ottla.spark.pipelines.tables.delta import imported_deltalake

        imported_deltalake()
    elif sink.kind == "iceberg":
        from ottla.spark.pipelines.tables.iceberg import imported_load_catalog

        imported_load_catalog()


def _check_catalog(sink: Sink) -> None:
    if sink.kind != "iceberg":
        return
    from ottla.spark.pipelines.tables.opening import table_of

    try:
        table_of(sink).columns()
    except Exception as refused:  # noqa: BLE001 - each catalog has other error classes
        said = redacted(f"{type(refused).__name__}: {refused}".partition("\n")[0], secrets_of([sink]))
        raise ConfigError(f"[sink.{sink.name}] catalog: cannot be used: {said}") from None
