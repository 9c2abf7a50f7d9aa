"""`[storage]`: how an object store is reached. Values only; secrets are never shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.spark.pipelines.fields import Fields

_SECRETS: Final = (
    "access_key_id", "secret_access_key", "session_token", "account_key", "sas_token", "client_secret",
)  # fmt: skip
_TEXTS: Final = (
    "endpoint",
    "region",
    "profile",
    "account_name",
    "tenant_id",
    "client_id",
    "service_account",
    *_SECRETS,
)
_TRUTHS: Final = ("allow_http", "path_style", "anonymous")
_AWS_VARIABLES: Final = {
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_AWS_KEYS: Final = {
    "access_key_id": "AWS_ACCESS_KEY_ID",
    "secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """What is empty is left to the libraries: the environment, or the role of the machine."""

    endpoint: str = ""
    region: str = ""
    allow_http: bool = False
    path_style: bool = True
    anonymous: bool = False
    profile: str = ""
    """Of AWS: its credentials are taken by boto3."""
    access_key_id: str = field(default="", repr=False)
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    account_name: str = ""
    account_key: str = field(default="", repr=False)
    sas_token: str = field(default="", repr=False)
    tenant_id: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    service_account: str = ""
    """The file of a Google service account."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(value for name in _SECRETS if (value := getattr(self, name)))

    @property
    def has_aws_keys(self) -> bool:
        return bool(self.access_key_id and self.secret_access_key)


def read_storage(inner: Fields | None, base: StorageSettings) -> StorageSettings:
    """The settings of one table of the file; those it does not name are as in `base`."""
    if inner is None:
        return base
    asked: dict[str, str | bool] = {name: inner.text(name) for name in _TEXTS}
    asked |= {name: inner.truth(name, default=False) for name in _TRUTHS}
    given = {name: value for name, value in asked.items() if inner.has(name)}
    inner.finish()
    settings = replace(base, **given)  # type: ignore[arg-type]  # names and types are those of its fields
    if settings.endpoint.startswith("http://") and not settings.allow_http:
        inner.wrong("endpoint", "http:// sends data and signatures in plain text; set allow_http = true to permit it")
    elif settings.endpoint and not settings.endpoint.startswith(("http://", "https://")):
        inner.wrong("endpoint", f"{settings.endpoint!r} must begin with https:// or http://")
    if bool(settings.access_key_id) != bool(settings.secret_access_key):
        inner.wrong("access_key_id", "access_key_id and secret_access_key belong together")
    return settings


def with_environment(settings: StorageSettings, environment: Mapping[str, str]) -> StorageSettings:
    """AWS's variables for what is empty, so that every library and every worker has the same."""
    found: dict[str, str | bool] = {}
    for name, variables in _AWS_VARIABLES.items():
        value = next((environment[each] for each in variables if environment.get(each)), "")
        if value and not getattr(settings, name):
            found[name] = value
    if str(found.get("endpoint", "")).startswith("http://"):
        found["allow_http"] = True
    if not (settings.has_aws_keys or settings.profile or settings.anonymous):
        keys = {name: environment.get(variable, "") for name, variable in _AWS_KEYS.items()}
        if keys["access_key_id"] and keys["secret_access_key"]:
            found |= keys
        elif environment.get("AWS_PROFILE"):
            found["profile"] = environment["AWS_PROFILE"]
    return replace(settings, **found)  # type: ignore[arg-type]  # as above
