"""Addresses of object stores. Pure rules."""

from __future__ import annotations

from typing import Final

STORE_SCHEMES: Final = ("s3", "s3a", "gs", "abfs", "abfss")


def is_address(path: str) -> bool:
    return "://" in path


def scheme_of(path: str) -> str:
    return path.partition("://")[0] if is_address(path) else ""


def is_in_store(path: str) -> bool:
    return scheme_of(path) in STORE_SCHEMES


def why_wrong(path: str) -> str | None:
    """Why an address cannot be the place of a table."""
    scheme, _, rest = path.partition("://")
    if scheme not in STORE_SCHEMES:
        return f"{scheme}:// is not supported; use a folder, or an address of {', '.join(STORE_SCHEMES)}"
    bucket, _, folder = rest.partition("/")
    if not bucket:
        return f"names no bucket; write {scheme}://BUCKET/FOLDER"
    if not folder.strip("/"):
        return f"names no folder in the bucket; write {scheme}://{bucket}/FOLDER"
    if scheme.startswith("abfs") and "@" not in bucket:
        return f"names no account; write {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
    return None


def joined(base: str, name: str) -> str:
    return f"{base.rstrip('/')}/{name}" if name else base


def without_scheme(address: str) -> str:
    """So that s3:// and s3a:// are the same place."""
    return address.partition("://")[2] if is_address(address) else address
