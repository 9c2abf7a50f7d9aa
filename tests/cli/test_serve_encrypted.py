"""`ottla serve` with encryption at rest: all protocols, and kills during re-encryption."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ottla
from ottla.core.keys import first_ring, read_key_file, write_key_file

from .serving import PATIENCE_S, Serve, run

if TYPE_CHECKING:
    from pathlib import Path

MARKER = "the-marker-that-nobody-may-find"
COUNT = 200


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    write_key_file(path, first_ring(), is_new=True)
    return path


def serving(folder: Path, *arguments: str) -> Serve:
    settings = {
        "encryption.key_file": folder / "keys",
        "encryption.key_check_interval_ms": 20,
        "log.segment_bytes": 4096,
        "queues.data_directory": folder / "data" / "queues-of-http",
    }
    return Serve(folder, *(f"--set={name}={value}" for name, value in settings.items()), *arguments)


def files_with_marker(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes()]


def produce(serve: Serve) -> None:
    with ottla.Producer(serve.address) as producer:
        sent = [
            producer.send("orders", f"{MARKER}{number}".encode() * 5, key=MARKER.encode(), headers=[(MARKER, b"h")])
            for number in range(COUNT)
        ]
        producer.flush()
        for one in sent:
            one.result()


def consume(serve: Serve, group: str | None = None) -> list[bytes | None]:
    options: dict[str, Any] = {"topics": ["orders"], "auto_offset_reset": "earliest"}
    with ottla.Consumer(serve.address, group=group, **options) as consumer:
        found: list[bytes | None] = []
        while len(found) < COUNT:
            found += [record.value for record in consumer.poll(COUNT, timeout_ms=10_000)]
        if group:
            consumer.commit()
        return found


EXPECTED = [f"{MARKER}{number}".encode() * 5 for number in range(COUNT)]


def test_plaintext_is_in_no_file_whichever_protocol_it_was_sent_by(tmp_path: Path, key_file: Path) -> None:
    with serving(tmp_path, "--http-port", "0") as serve:
        produce(serve)
        assert consume(serve, group=f"group-of-{MARKER}") == EXPECTED
        base = f"http://{serve.ready['http']}"
        body = {"messages": [{"key": MARKER, "value": {"secret": MARKER}}]}
        assert httpx.post(f"{base}/v1/topics/rest/messages", json=body).is_success
        assert httpx.post(f"{base}/api/v1/queues", json={"name": "jobs"}).is_success
        assert httpx.post(f"{base}/api/v1/queues/jobs/messages", content=MARKER).is_success
        assert files_with_marker(serve.data_dir) == []
        serve.process.kill()
    assert files_with_marker(tmp_path / "data") == []
    with serving(tmp_path) as serve:
        assert consume(serve) == EXPECTED
        assert files_with_marker(serve.data_dir) == []
        assert serve.terminate() == 0
    assert files_with_marker(tmp_path / "data") == []
    assert read_key_file(key_file).newest == 1


def test_repeated_kills_during_re_encryption_lose_nothing(tmp_path: Path, key_file: Path) -> None:
    with serving(tmp_path) as serve:
        produce(serve)
    for round_number in range(3):
        write_key_file(key_file, read_key_file(key_file).with_new_key(rewrites=True), is_new=False)
        with serving(tmp_path) as serve:
            # It starts automatically; the first rewritten segment shows that it is in progress.
            wait_until(lambda: newest_key_used(serve.data_dir) == round_number + 2)
            serve.process.kill()
    with serving(tmp_path) as serve:
        wait_until(lambda: list(json.loads((serve.data_dir / "encryption.json").read_bytes())["keys"]) == ["4"])
        assert set(keys_used(serve.data_dir)) == {4}
        assert consume(serve) == EXPECTED
    assert files_with_marker(tmp_path / "data") == []


def keys_used(data_dir: Path) -> list[int]:
    starts = [path.read_bytes()[:65] for path in (data_dir / "orders-0").glob("*.elog")]
    return [int.from_bytes(start[61:65], "big") for start in starts if len(start) == 65]


def newest_key_used(data_dir: Path) -> int:
    return max(keys_used(data_dir), default=0)


def wait_until(is_so: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if is_so():
                return
        except FileNotFoundError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_without_its_key_it_exits_with_an_error(tmp_path: Path, key_file: Path) -> None:
    with serving(tmp_path) as serve:
        assert serve.terminate() == 0
    key_file.rename(tmp_path / "elsewhere")
    write_key_file(key_file, first_ring(), is_new=True)

    code, _, said = run(tmp_path, f"--set=encryption.key_file={key_file}")

    assert code == 1
    assert "is encrypted with a different key 1" in said
    assert said.count("\n") == 1
