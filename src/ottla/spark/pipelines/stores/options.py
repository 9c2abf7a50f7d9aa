"""Storage settings under the names of each library. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.pipelines.stores.addresses import scheme_of

if TYPE_CHECKING:
    from ottla.spark.pipelines.stores.settings import StorageSettings


def obstore_config(address: str, settings: StorageSettings) -> dict[str, Any]:
    """Of obstore's stores, and with a prefix of deltalake: both are Rust's object_store."""
    scheme = scheme_of(address)
    if scheme == "gs":
        return _google(settings)
    return _azure(address, settings) if scheme.startswith("abfs") else _aws(settings)


def _aws(settings: StorageSettings) -> dict[str, Any]:
    found = _filled(
        endpoint=settings.endpoint,
        region=settings.region,
        access_key_id=settings.access_key_id,
        secret_access_key=settings.secret_access_key,
        session_token=settings.session_token,
    )
    if settings.anonymous:
        found["skip_signature"] = "true"
    found["virtual_hosted_style_request"] = _truth(not settings.path_style)
    # What makes a commit safe: a version of a log is created by one writer, and the others get an error.
    found["conditional_put"] = "etag"
    return found


def _google(settings: StorageSettings) -> dict[str, Any]:
    found = _filled(service_account=settings.service_account)
    if settings.endpoint:
        found["base_url"] = settings.endpoint
    if settings.anonymous:
        found["skip_signature"] = "true"
    return found


def _azure(address: str, settings: StorageSettings) -> dict[str, Any]:
    found = _filled(
        account_name=settings.account_name or account_of(address),
        account_key=settings.account_key,
        sas_key=settings.sas_token,
        tenant_id=settings.tenant_id,
        client_id=settings.client_id,
        client_secret=settings.client_secret,
        endpoint=settings.endpoint,
    )
    if settings.anonymous:
        found["skip_signature"] = "true"
    return found


def account_of(address: str) -> str:
    """abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/…"""
    return address.partition("@")[2].partition("/")[0].partition(".")[0]


def delta_options(address: str, settings: StorageSettings) -> dict[str, str]:
    scheme = scheme_of(address)
    prefix = "google_" if scheme == "gs" else "azure_storage_" if scheme.startswith("abfs") else "aws_"
    found = {prefix + name: str(value) for name, value in obstore_config(address, settings).items()}
    if scheme.startswith("abfs"):
        found = {_AZURE_WORDS.get(name, name): value for name, value in found.items()}
    return found | {"allow_http": _truth(settings.allow_http)}


_AZURE_WORDS = {"azure_storage_endpoint": "azure_endpoint", "azure_storage_skip_signature": "azure_skip_signature"}


def iceberg_properties(address: str, settings: StorageSettings) -> dict[str, str]:
    """Of pyiceberg's files, read and written by pyarrow."""
    scheme = scheme_of(address)
    by_pyarrow = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    if scheme == "gs":
        return by_pyarrow | _filled(**{"gcs.service.host": settings.endpoint})
    if scheme.startswith("abfs"):
        by_azure = {"py-io-impl": "ottla.spark.pipelines.stores.azure_io.AzureFileIO"}
        return by_azure | _iceberg_azure(address, settings)
    # Without a region pyiceberg asks AWS for it, which knows nothing of other stores.
    region = settings.region or ("us-east-1" if settings.endpoint else "")
    found = _filled(
        **{
            "s3.endpoint": settings.endpoint,
            "s3.region": region,
            "s3.access-key-id": settings.access_key_id,
            "s3.secret-access-key": settings.secret_access_key,
            "s3.session-token": settings.session_token,
        }
    )
    if settings.anonymous:
        found["s3.anonymous"] = "true"
    if not settings.path_style:
        found["s3.force-virtual-addressing"] = "true"
    return by_pyarrow | found


def _iceberg_azure(address: str, settings: StorageSettings) -> dict[str, str]:
    found = _filled(
        **{
            "adls.account-name": settings.account_name or account_of(address),
            "adls.account-key": settings.account_key,
            "adls.sas-token": settings.sas_token,
            "adls.tenant-id": settings.tenant_id,
            "adls.client-id": settings.client_id,
            "adls.client-secret": settings.client_secret,
        }
    )
    if settings.endpoint:
        scheme, _, host = settings.endpoint.partition("://")
        authority = host.partition("/")[0]
        found |= {f"adls.{kind}-storage-authority": authority for kind in ("blob", "dfs")}
        found |= {f"adls.{kind}-storage-scheme": scheme for kind in ("blob", "dfs")}
    return found


def _filled(**given: str) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}


def _truth(value: bool) -> str:  # noqa: FBT001 - a value, not a switch
    return str(value).lower()
