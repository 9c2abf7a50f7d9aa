"""Object stores that run here: S3 by VersityGW, Azure's blobs by Azurite."""

import base64
import hashlib
import hmac
import http.client
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from interop.processes import ended
from ottla.spark.pipelines.stores.settings import StorageSettings

ACCESS_KEY, SECRET_KEY = "test-access-key", "test-secret-key"
# Of Azurite's documentation: the same everywhere.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "lake"
START_TIMEOUT_S = 60.0
SERVER_TIMEOUT_S = 500.0


@contextmanager
def versitygw_server(program: Path, folder: Path) -> Iterator[tuple[str, StorageSettings]]:
    """An address in a bucket, and how it is reached."""
    (folder / CONTAINER).mkdir(parents=True)
    port = _free_port()
    keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY]
    with _running([program, "--port", f"127.0.0.1:{port}", *keys, "posix", folder], port):
        yield (
            f"s3://{CONTAINER}",
            StorageSettings(
                endpoint=f"http://127.0.0.1:{port}",
                allow_http=True,
                region="us-east-1",
                access_key_id=ACCESS_KEY,
                secret_access_key=SECRET_KEY,
            ),
        )


@contextmanager
def azurite_server(program: list[str]) -> Iterator[tuple[str, StorageSettings]]:
    port = _free_port()
    with _running([*program, port], port):
        _make_container(port)
        yield (
            f"abfs://{CONTAINER}@{AZURITE_ACCOUNT}.dfs.core.windows.net",
            StorageSettings(
                endpoint=f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}", allow_http=True, account_key=AZURITE_KEY
            ),
        )


@contextmanager
def _running(command: Sequence[object], port: int) -> Iterator[None]:
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with ended(process, SERVER_TIMEOUT_S):
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _answers(port):
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.05)
        yield


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _make_container(port: int) -> None:
    """The one request that neither obstore nor deltalake can make."""
    now, version = formatdate(usegmt=True), "2021-08-06"
    resource = f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{CONTAINER}\nrestype:container"
    signed = f"PUT{chr(10) * 12}x-ms-date:{now}\nx-ms-version:{version}\n{resource}"
    digest = hmac.new(base64.b64decode(AZURITE_KEY), signed.encode(), hashlib.sha256).digest()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {
        "x-ms-date": now,
        "x-ms-version": version,
        "Content-Length": "0",
        "Authorization": f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
    connection.request("PUT", f"/{AZURITE_ACCOUNT}/{CONTAINER}?restype=container", headers=headers)
    assert connection.getresponse().status == http.client.CREATED
    connection.close()
