"""What the broker imports before it is ready: every module costs part of the start."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_MOST_MODULES: Final = 157
"""Ours; a quarter of a millisecond each, on average."""
_NOT_NEEDED: Final = {
    *("dataclasses", "json", "hmac", "tomllib", "email", "http", "difflib", "shutil", "encodings.idna", "unicodedata"),
    *("cramjam", "fastcrc", "cryptography", "kazoo", "starlette", "uvicorn", "opentelemetry"),
    *(
        "ottla.client",
        "ottla.dmqp.server",
        "ottla.http.app",
        "ottla.records",
        "ottla.cluster.state",
        "ottla.share.group",
    ),
    *("ottla.groups.coordinator", "ottla.storage.partition_log", "ottla.storage.catalog.seal", "ottla.net.tls"),
}
_UNTIL_READY: Final = """
import os, sys
import ottla.cli.server.serve as serve

def say_ready(*_, **__):
    threads = os.listdir("/proc/self/task") if os.path.exists("/proc/self/task") else ["one"]
    print(len(threads), *sys.modules, flush=True)
    os._exit(0)

serve.say_ready = say_ready
from ottla.__main__ import main
main()
"""


def test_a_broker_is_ready_before_it_imports_what_its_first_request_does_not_need(tmp_path: Path) -> None:
    arguments = ["serve", "--data-dir", str(tmp_path), "--port", "0", "--http-port", "0"]
    done = subprocess.run(
        [sys.executable, "-c", _UNTIL_READY, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    threads, *names = done.stdout.split()
    imported = set(names)

    assert threads == "1"
    assert "ottla.broker.broker" in imported
    assert imported & _NOT_NEEDED == set()
    assert len([name for name in imported if name.startswith("ottla")]) <= _MOST_MODULES
