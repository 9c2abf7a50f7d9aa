"""Logins, rights and encryption with workers: the same as with one broker, whichever worker is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

import ottla
from ottla.cli.main import program
from ottla.client.security import Security
from ottla.core.keys import first_ring, write_key_file

from .serving import PATIENCE_S, serve

if TYPE_CHECKING:
    from pathlib import Path

MARKER = b"the-marker-that-nobody-may-find"


def test_users_and_keys_are_those_of_all_workers(tmp_path: Path) -> None:
    write_key_file(tmp_path / "keys", first_ring(), is_new=True)
    (tmp_path / "ottla.toml").write_text(
        f"""
        encryption.key_file = "{tmp_path / "keys"}"
        security.acls = true
        security.super_users = ["User:admin"]
        [cluster]
        node_user = "admin"
        node_password = "secret"
        """
    )
    where = ["--data-dir", str(tmp_path / "data"), "--config", str(tmp_path / "ottla.toml")]
    added = CliRunner().invoke(program, ["user", "add", "admin", *where, "--password-file", "-"], input="secret")
    assert added.exit_code == 0, added.output
    security = Security(mechanism="SCRAM-SHA-512", username="admin", password="secret")
    options: dict[str, Any] = {"security": security}

    with serve(tmp_path, 2, "--adopt", "--listener", "SASL_PLAINTEXT://127.0.0.1:0") as served:
        with ottla.Admin(served.address, **options) as admin:
            admin.create_topic("t", partitions=4)
        with ottla.Producer(served.address, **options) as producer:
            sent = [producer.send("t", MARKER + b"%d" % number, partition=number % 4) for number in range(40)]
            producer.flush()
            for each in sent:
                each.result(PATIENCE_S)
        with ottla.Consumer(served.address, topics=["t"], auto_offset_reset="earliest", **options) as consumer:
            read: set[bytes | None] = set()
            while len(read) < 40:
                read.update(record.value for record in consumer.poll(1))
        assert served.terminate() == 0
        assert served.output()[1] == ""

    assert read == {MARKER + b"%d" % number for number in range(40)}
    logs = sorted(path.parent.name for path in served.data_dir.rglob("t-*/*.elog") if path.stat().st_size)
    assert logs == ["t-0", "t-1", "t-2", "t-3"]
    assert not any(MARKER in path.read_bytes() for path in served.data_dir.rglob("*") if path.is_file())
