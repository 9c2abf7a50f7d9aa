"""A folder of one partition that the disk does not let go or does not show: all others are served."""

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
    """Of a broker that has stopped, with the topics `kept` and `other`."""
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        for topic in ("kept", "other"):
            create_topic(client, topic)
            assert _produce(client, topic) == ErrorCode.NONE
    return tmp_path


def test_a_broker_starts_although_a_folder_of_no_topic_cannot_be_set_aside(
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


def test_a_folder_whose_topic_id_cannot_be_read_costs_that_partition_alone(data_dir: Path) -> None:
    metadata = data_dir / "other-0" / "partition.metadata"
    metadata.unlink()
    metadata.symlink_to(metadata)  # ELOOP

    with ottla.Broker(data_dir) as broker, RawClient(broker.bootstrap_servers) as client:
        assert _produce(client, "kept") == ErrorCode.NONE
        assert _produce(client, "other") == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_folder_of_another_topic_of_the_same_name_costs_that_partition_alone(data_dir: Path) -> None:
    metadata = data_dir / "other-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ")

    with ottla.Broker(data_dir) as broker, RawClient(broker.bootstrap_servers) as client:
        assert _produce(client, "kept") == ErrorCode.NONE
        assert _produce(client, "other") == ErrorCode.KAFKA_STORAGE_ERROR
