"""Bytes marked as Kafka's were written by Apache Kafka 4.3.1: by its broker, or by the classes it reads them with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.errors import ProtocolError
from ottla.groups import records
from ottla.groups.formats import GroupKey, GroupMetadataValue, MemberMetadata, OffsetCommitValue, OffsetKey

# From a broker's log: a commit by OffsetCommit 9, one by OffsetCommit 4 with a retention time, and a static member.
KAFKAS_OFFSET_KEY = bytes.fromhex("0001000673696d706c6500047265616400000000")
KAFKAS_OFFSET = bytes.fromhex(
    "0004000000000000002a000000071161206e6f74652c206772c3b6c39f6572000001a1de114f3e"
    "01001038f33fd32d224322b4073fbf25c9e946"
)
KAFKAS_OFFSET_WITH_EXPIRY = bytes.fromhex(
    "0001000000000000002a001061206e6f74652c206772c3b6c39f6572000001a1de114f59000001a1e337ab59"
)
KAFKAS_GROUP_KEY = bytes.fromhex("00020006737461746963")
KAFKAS_GROUP = bytes.fromhex(
    "00030008636f6e73756d657200000001000572616e6765002f696e7374616e63652d312d66383134363733662d353730652d346433312d62"
    "3365352d363262393364393131666662000001a1de114f7000000001002f696e7374616e63652d312d66383134363733662d353730652d34"
    "6433312d623365352d363262393364393131666662000a696e7374616e63652d3100076772c3b6c39f65000a2f3132372e302e302e310000"
    "ea600000753000000014000100000001000472656164ffffffff0000000000000006006d696e65ff"
)
KAFKAS_EMPTY_GROUP = bytes.fromhex("00030008636f6e73756d657200000002ffffffff000001a1de114f8300000000")
NEWER_KEY = bytes.fromhex("0063000f6f662d612d6e657765722d6b696e64")

MEMBER_ID = "instance-1-f814673f-570e-4d31-b3e5-62b93d911ffb"
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=1,
    protocol="range",
    leader=MEMBER_ID,
    current_state_timestamp=1794727038832,
    members=(
        MemberMetadata(
            member_id=MEMBER_ID,
            group_instance_id="instance-1",
            client_id="größe",
            client_host="/127.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=30_000,
            subscription=b"\x00\x01\x00\x00\x00\x01\x00\x04read\xff\xff\xff\xff\x00\x00\x00\x00",
            assignment=b"\x00mine\xff",
        ),
    ),
)

# From Kafka's classes: one value of each kind, in every version.
KAFKAS_OFFSETS = {
    0: "0000000000000000002a00086772c3b6c39f65720000018bcfe56800",
    1: "0001000000000000002a00086772c3b6c39f65720000018bcfe568000000018bcfe6b980",
    2: "0002000000000000002a00086772c3b6c39f65720000018bcfe56800",
    3: "0003000000000000002a0000000700086772c3b6c39f65720000018bcfe56800",
    4: "0004000000000000002a00000007096772c3b6c39f65720000018bcfe5680001001000000000000000010000000000000002",
}
KAFKAS_GROUPS = {
    0: "00000008636f6e73756d657200000003000572616e676500036d2d310000000100036d2d31000163"
    "000a2f3132372e302e302e310000753000000002000100000001ff",
    1: "00010008636f6e73756d657200000003000572616e676500036d2d310000000100036d2d31000163"
    "000a2f3132372e302e302e310000ea600000753000000002000100000001ff",
    2: "00020008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000100036d2d31000163"
    "000a2f3132372e302e302e310000ea600000753000000002000100000001ff",
    3: "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000100036d2d310003692d31000163"
    "000a2f3132372e302e302e310000ea600000753000000002000100000001ff",
    4: "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe5680002046d2d3104692d310263"
    "0b2f3132372e302e302e310000ea600000753003000102ff0000",
}


def test_an_offset_record_round_trips_kafkas_bytes() -> None:
    key = OffsetKey(group="simple", topic="read", partition=0)
    value = OffsetCommitValue(
        offset=42,
        leader_epoch=7,
        metadata="a note, größer",
        commit_timestamp=1794727038782,
        topic_id=bytes.fromhex("38f33fd32d224322b4073fbf25c9e946"),
    )
    assert records.encode_offset(key, value) == (KAFKAS_OFFSET_KEY, KAFKAS_OFFSET)
    assert records.decode_key(KAFKAS_OFFSET_KEY) == key
    assert records.decode_offset_value(KAFKAS_OFFSET) == value


def test_an_offset_with_an_explicit_expiry_is_written_in_version_1() -> None:
    key = OffsetKey(group="simple", topic="read", partition=0)
    value = OffsetCommitValue(
        offset=42, metadata="a note, größer", commit_timestamp=1794727038809, expire_timestamp=1794813438809
    )
    assert records.encode_offset(key, value).value == KAFKAS_OFFSET_WITH_EXPIRY
    assert records.decode_offset_value(KAFKAS_OFFSET_WITH_EXPIRY) == value


def test_a_group_record_round_trips_kafkas_bytes() -> None:
    assert records.encode_group(GroupKey(group="static"), GROUP) == (KAFKAS_GROUP_KEY, KAFKAS_GROUP)
    assert records.decode_key(KAFKAS_GROUP_KEY) == GroupKey(group="static")
    assert records.decode_group_value(KAFKAS_GROUP) == GROUP


def test_a_group_without_members_has_neither_protocol_nor_leader() -> None:
    value = records.decode_group_value(KAFKAS_EMPTY_GROUP)
    assert value == GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol=None,
        leader=None,
        current_state_timestamp=1794727038851,
        members=(),
    )
    assert records.encode_group(GroupKey(group="left"), value).value == KAFKAS_EMPTY_GROUP


@pytest.mark.parametrize("version", KAFKAS_OFFSETS)
def test_every_version_of_an_offset_is_read_and_written(version: int) -> None:
    data = bytes.fromhex(KAFKAS_OFFSETS[version])
    value = records.decode_offset_value(data)
    assert value == OffsetCommitValue(
        offset=42,
        leader_epoch=7 if version >= 3 else -1,
        metadata="größer",
        commit_timestamp=1_700_000_000_000,
        expire_timestamp=1_700_000_086_400 if version == 1 else -1,
        topic_id=bytes(7) + b"\x01" + bytes(7) + b"\x02" if version == 4 else bytes(16),
    )
    assert records.encode_value(value, version) == data


@pytest.mark.parametrize("version", KAFKAS_GROUPS)
def test_every_version_of_a_group_is_read_and_written(version: int) -> None:
    data = bytes.fromhex(KAFKAS_GROUPS[version])
    value = records.decode_group_value(data)
    assert value == GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m-1",
        current_state_timestamp=1_700_000_000_000 if version >= 2 else -1,
        members=(
            MemberMetadata(
                member_id="m-1",
                group_instance_id="i-1" if version >= 3 else None,
                client_id="c",
                client_host="/127.0.0.1",
                rebalance_timeout=60_000 if version >= 1 else -1,
                session_timeout=30_000,
                subscription=b"\x00\x01",
                assignment=b"\xff",
            ),
        ),
    )
    assert records.encode_value(value, version) == data


def test_a_key_of_version_0_is_an_offset_key() -> None:
    assert records.decode_key(b"\x00\x00" + KAFKAS_OFFSET_KEY[2:]) == records.decode_key(KAFKAS_OFFSET_KEY)


def test_a_tombstone_has_a_key_and_no_value() -> None:
    key = OffsetKey(group="simple", topic="read", partition=0)
    assert records.encode_offset(key, None) == (KAFKAS_OFFSET_KEY, None)
    assert records.encode_group(GroupKey(group="static"), None) == (KAFKAS_GROUP_KEY, None)


def test_keys_of_unknown_types_are_ignored() -> None:
    assert records.decode_key(NEWER_KEY) is None


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x00",
        b"\xff\xff",
        b"\x00\x01",
        b"\x00\x02\x00\x09short",
        KAFKAS_OFFSET_KEY + b"\x00",
        b"\x00\x02\x00\x01\xff",
    ],
)
def test_a_broken_key_is_refused(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        records.decode_key(broken)


@pytest.mark.parametrize("broken", [b"", b"\x00\x05" + bytes(40), b"\xff\xff" + bytes(40), KAFKAS_OFFSET[:-1]])
def test_a_broken_or_unknown_value_is_refused(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        records.decode_offset_value(broken)
    with pytest.raises(ProtocolError):
        records.decode_group_value(broken)


@given(st.binary(max_size=60))
def test_random_bytes_are_parsed_or_refused(garbage: bytes) -> None:
    for read in (records.decode_key, records.decode_offset_value, records.decode_group_value):
        try:
            read(garbage)
        except ProtocolError:
            continue


def test_an_unknown_tagged_field_of_a_newer_kafka_is_skipped() -> None:
    data = KAFKAS_OFFSET[: KAFKAS_OFFSET.index(b"\x01\x00\x10")] + b"\x01\x09\x02hi"
    assert records.decode_offset_value(data).offset == 42


@pytest.mark.parametrize(
    ("group_id", "partition"),
    # Computed by Java; the fifth has the hash code that no positive number mirrors, the last is two UTF-16 units.
    [
        ("", 0),
        ("some-group", 22),
        ("größe", 7),
        ("group-1", 49),
        ("polygenelubricants", 0),
        ("日本", 47),
        ("𝄞 clef", 2),
    ],
)
def test_a_groups_partition_is_the_same_as_in_java(group_id: str, partition: int) -> None:
    assert records.partition_for(group_id, 50) == partition
