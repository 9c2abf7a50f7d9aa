"""A partition folder that cannot be read or moved affects only that partition."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.core.errors import ErrorCode

from .making import batch, create_topic, send_batch
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path


def _produce(client: RawClient, topic: str) -> int:
    return send_batch(client, topic, batch(b"1")).error_code


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The data folder of a stopped broker with the topics `kept` and `other`."""
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        for topic in ("kept", "other"):
            create_topic(client, topic)
            assert _produce(client, topic) == ErrorCode.NONE
    return tmp_path


def test_a_broker_starts_although_a_stray_folder_cannot_be_moved(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data_dir / "gone-0").mkdir()
    rename = os.rename

    def fails_there(source: Any, *rest: Any, **options: Any) -> None:
        if str(source).endswith("gone-0"):
            raise OSError(errno.EIO, "Input/output error")
        rename(source, *rest, **options)

    monkeypatch.setattr(os, "rename", fails_there)

    with ottla.Broker(data_dir) as broker, RawClient(broker.bootstrap_servers) as client:
        assert _produce(client, "kept") == ErrorCode.NONE


def test_an_unreadable_topic_id_takes_only_that_partition_offline(data_dir: Path) -> None:
    metadata = data_dir / "other-0" / "partition.metadata"
    metadata.unlink()
    metadata.symlink_to(metadata)  # ELOOP

    with ottla.Broker(data_dir) as broker, RawClient(broker.bootstrap_servers) as client:
        assert _produce(client, "kept") == ErrorCode.NONE
        assert _produce(client, "other") == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_folder_with_another_topic_id_takes_only_that_partition_offline(data_dir: Path) -> None:
    metadata = data_dir / "other-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ")

    with ottla.Broker(data_dir) as broker, RawClient(broker.bootstrap_servers) as client:
        assert _produce(client, "kept") == ErrorCode.NONE
        assert _produce(client, "other") == ErrorCode.KAFKA_STORAGE_ERROR
