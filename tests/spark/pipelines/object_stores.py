"""Object stores for tests: real servers on this machine."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A store shared by the tests; each uses a separate folder."""

    address: str
    """Such as s3://lake."""
    settings: str
    """The lines of `[storage]`."""
    options: dict[str, str]
    """The same for deltalake."""
    endpoint: str

    def storage(self) -> str:
        return f"[storage]\n{self.settings}"


def s3_bucket(endpoint: str, name: str = "lake") -> Bucket:
    settings = f"""
endpoint = "{endpoint}"
allow_http = true
region = "us-east-1"
access_key_id = "{ACCESS_KEY}"
secret_access_key = "{SECRET_KEY}"
"""
    options = {
        "aws_endpoint": endpoint,
        "aws_allow_http": "true",
        "aws_region": "us-east-1",
        "aws_access_key_id": ACCESS_KEY,
        "aws_secret_access_key": SECRET_KEY,
    }
    return Bucket(address=f"s3://{name}", settings=settings, options=options, endpoint=endpoint)


def make_bucket(bucket: Bucket) -> None:
    import boto3
    from botocore.config import Config

    client: Any = boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 100, "mode": "standard"}),
    )
    client.create_bucket(Bucket=bucket.address.partition("://")[2])
    client.close()


@contextmanager
def moto_bucket() -> Iterator[Bucket]:
    """In a separate process, because deltalake holds the GIL while it waits for a response."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        bucket = s3_bucket(f"http://127.0.0.1:{port}")
        make_bucket(bucket)
        yield bucket
    finally:
        server.kill()
        server.wait()
