"""Errors of object stores in one line. Pure rules."""

from __future__ import annotations

import re
from typing import Final

_CODE: Final = re.compile(r"<Code>(?P<code>[^<]+)</Code>(?:\s*<Message>(?P<said>[^<]*))?")
_STATUS: Final = re.compile(r"non-2xx status code: (\d{3} [A-Za-z ]+)")
_MACHINE_ROLES: Final = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""The last source of credentials."""
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound")
_CREDENTIALS: Final = (
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "InvalidToken",
    "AuthenticationFailed", "XAdminUserNotFound", "AuthorizationFailure", "403 Forbidden", "401 Unauthorized",
)  # fmt: skip
_WAYS: Final = {
    "gs": "service_account under [storage], or GOOGLE_APPLICATION_CREDENTIALS",
    "abfs": "account_key, sas_token or client_id and client_secret under [storage], or the variables AZURE_STORAGE_…",
    "s3": "access_key_id and secret_access_key or profile under [storage], or AWS_ACCESS_KEY_ID or AWS_PROFILE",
}


def explained(text: str, address: str, endpoint: str) -> str:
    """Why a store cannot be used, and what to do, from the text of its library."""
    scheme, _, rest = address.partition("://")
    bucket = rest.partition("/")[0]
    where = f" at {endpoint}" if endpoint else ""
    ways = next(way for begin, way in _WAYS.items() if scheme.startswith(begin))
    said = reason_in(text)
    if any(host in text for host in _MACHINE_ROLES):
        return f"no credentials were found; set {ways}"
    if any(code in said for code in _NO_BUCKET):
        return f"there is no bucket {bucket}{where}; create it, or correct the path"
    if any(code in said for code in _CREDENTIALS):
        return f"the store{where} refused the credentials ({said}); set {ways}"
    if "error sending request" in text or "timed out" in text:
        return f"the store{where} did not answer; check endpoint, region and network"
    return said


def reason_in(text: str) -> str:
    """The code and the message of the store's answer, else the first line of the library's text."""
    if found := _CODE.search(text):
        return ": ".join(each for each in (found["code"], (found["said"] or "").strip()) if each)
    if found := _STATUS.search(text):
        return found[1].strip()
    return text.strip().partition("\n")[0]
