"""Opens object stores, with clear errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.stores.addresses import scheme_of
from ottla.spark.pipelines.stores.settings import with_environment

if TYPE_CHECKING:
    from ottla.spark.pipelines.stores.object_files import ObjectFiles
    from ottla.spark.pipelines.stores.settings import StorageSettings


def store_files(address: str, settings: StorageSettings) -> ObjectFiles:
    try:
        from ottla.spark.pipelines.stores.object_files import ObjectFiles
    except ImportError:
        raise ConfigError(f"{address} needs the package obstore; run: pip install 'ottla[s3]'") from None
    return ObjectFiles(address, settled(address, settings))


def settled(address: str, settings: StorageSettings) -> StorageSettings:
    """With all that this process knows of credentials, so that the workers need not know it."""
    if not scheme_of(address).startswith("s3"):
        return settings
    found = with_environment(settings, os.environ)
    if found.has_aws_keys or found.anonymous or not (found.profile or _has_default_profile()):
        return found
    return _with_profile(found)


def _has_default_profile() -> bool:
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    return Path(file).expanduser().exists()


def _with_profile(settings: StorageSettings) -> StorageSettings:
    from dataclasses import replace

    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError:
        if settings.profile:
            raise ConfigError(
                f"the AWS profile {settings.profile} needs the package boto3; run: pip install 'ottla[aws]'"
            ) from None
        return settings
    try:
        session: Any = boto3.Session(profile_name=settings.profile or None)
        credentials = session.get_credentials()
        keys = None if credentials is None else credentials.get_frozen_credentials()
    except BotoCoreError as refused:
        raise ConfigError(f"the AWS profile {settings.profile or 'default'} cannot be used: {refused}") from None
    if keys is None:
        return settings
    return replace(
        settings,
        access_key_id=keys.access_key,
        secret_access_key=keys.secret_key,
        session_token=keys.token or "",
        region=settings.region or session.region_name or "",
    )
