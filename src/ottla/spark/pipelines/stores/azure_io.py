"""pyiceberg's files in Azure: addresses with an account, which pyarrow takes without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.io.pyarrow import PyArrowFileIO

if TYPE_CHECKING:
    from pyiceberg.typedef import Properties


class AzureFileIO(PyArrowFileIO):
    """Named by the property `py-io-impl`."""

    @staticmethod
    def parse_location(location: str, properties: Properties = {}) -> tuple[str, str, str]:  # noqa: B006 - as inherited
        """CONTAINER@ACCOUNT.dfs.core.windows.net/PATH becomes CONTAINER/PATH; the account is a property."""
        scheme, host, path = PyArrowFileIO.parse_location(location, properties)
        container, at, _ = host.partition("@")
        return (scheme, container, container + path.removeprefix(host)) if at else (scheme, host, path)
