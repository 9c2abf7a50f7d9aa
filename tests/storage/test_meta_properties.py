from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ottla.core.errors import DataDirError
from ottla.core.ids import TopicId
from ottla.storage.folder.meta_properties import META_PROPERTIES, MetaProperties, load, load_or_create

if TYPE_CHECKING:
    from pathlib import Path

FROM_KAFKA = """#
#Sun Nov 15 06:34:17 UTC 2026
node.id=1
directory.id=SNRuuLdz1W233F-RoQaw4A
version=1
cluster.id=b3R0bGEtaW50ZXJvcC1rYQ
"""


def test_an_empty_folder_becomes_ours(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    meta = load_or_create(tmp_path, node_id=7)

    assert meta.node_id == 7
    assert TopicId.parse(meta.cluster_id) != TopicId.parse(meta.directory_id)
    assert load_or_create(tmp_path, node_id=8) == load(tmp_path) == replace(meta, is_new=False)
    assert [path.name for path in tmp_path.iterdir()] == [META_PROPERTIES]


def test_a_cluster_id_can_be_given(tmp_path: Path) -> None:
    assert load_or_create(tmp_path, cluster_id="mine").cluster_id == "mine"
    assert load_or_create(tmp_path).cluster_id == "mine"


def test_what_kafka_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / META_PROPERTIES).write_text(FROM_KAFKA)

    assert load_or_create(tmp_path) == MetaProperties(
        cluster_id="b3R0bGEtaW50ZXJvcC1rYQ", node_id=1, directory_id="SNRuuLdz1W233F-RoQaw4A"
    )


@pytest.mark.parametrize(
    "text",
    [
        "version=1\r\ncluster.id=a\\:b\\=c\r\nnode.id=1\r\n",
        " version = 1\n\n! a comment\n  # another\nnode.id =1\ncluster.id= a\\:b\\=c\n",
    ],
)
def test_other_ways_to_write_properties_mean_the_same(tmp_path: Path, text: str) -> None:
    (tmp_path / META_PROPERTIES).write_bytes(text.encode())

    assert load(tmp_path) == MetaProperties(cluster_id="a:b=c", node_id=1, directory_id="")


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"version=2\ncluster.id=x\nnode.id=1\n", "has version 2; this release supports version 1"),
        (b"version=0\nbroker.id=1\n", "has version 0; this release supports version 1"),
        (b"", "has version None"),
        (b"version=1\nnode.id=1\n", r"has no cluster\.id"),
        (b"version=1\ncluster.id=x\n", r"has no node\.id"),
        (b"version=1\ncluster.id=x\nnode.id=one\n", "cannot be read"),
        (b"no properties at all\n", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_unparseable_files_are_refused_and_not_modified(tmp_path: Path, contents: bytes, complaint: str) -> None:
    (tmp_path / META_PROPERTIES).write_bytes(contents)

    with pytest.raises(DataDirError, match=complaint):
        load_or_create(tmp_path)
    assert (tmp_path / META_PROPERTIES).read_bytes() == contents


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(DataDirError, match=r"not a data folder \(it has 'thesis.tex' but no meta.properties\)"):
        load_or_create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_lost_and_found_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".lock").touch()
    (tmp_path / "meta.properties.tmp").touch()

    assert load_or_create(tmp_path).cluster_id == load_or_create(tmp_path).cluster_id
