"""Arbitrary requests about users, ACLs and quotas: refused or applied, and the broker keeps working."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.broker.raw_client import HungUpError, RawClient

from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from .securing import ALL_MECHANISMS
from .test_gate import METADATA, log_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .securing import Secured

CODES = st.integers(-128, 127)
TEXT = st.text(max_size=8)
MAYBE = st.none() | TEXT
KINDS = st.sampled_from(["user", "client-id", "ip", "planet", ""])
KEYS = st.sampled_from(["producer_byte_rate", "connection_creation_rate", "request_percentage", "x", ""])

ACLS = st.builds(
    AclCreation, resource_type=CODES, resource_name=TEXT, resource_pattern_type=CODES,
    principal=TEXT | st.just("User:x"), host=TEXT, operation=CODES, permission_type=CODES,
)  # fmt: skip
FILTERS = st.builds(
    DeleteAclsFilter, resource_type_filter=CODES, resource_name_filter=MAYBE, pattern_type_filter=CODES,
    principal_filter=MAYBE, host_filter=MAYBE, operation=CODES, permission_type=CODES,
)  # fmt: skip
UPSERTIONS = st.builds(
    ScramCredentialUpsertion, name=TEXT, mechanism=CODES, iterations=st.integers(-1, 20_000),
    salt=st.binary(max_size=4), salted_password=st.sampled_from([b"", bytes(32), bytes(64)]),
)  # fmt: skip
DELETIONS = st.builds(ScramCredentialDeletion, name=TEXT, mechanism=CODES)
ENTRIES = st.builds(
    EntryData,
    entity=st.lists(st.builds(EntityData, entity_type=KINDS, entity_name=MAYBE), max_size=3).map(tuple),
    ops=st.lists(st.builds(OpData, key=KEYS, value=st.floats(), remove=st.booleans()), max_size=3).map(tuple),
)
COMPONENTS = st.builds(ComponentData, entity_type=KINDS, match_type=CODES, match=MAYBE)


def several(one: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, max_size=3).map(tuple)


REQUESTS = st.one_of(
    st.builds(CreateAclsRequest, creations=several(ACLS)),
    st.builds(DeleteAclsRequest, filters=several(FILTERS)),
    st.builds(AlterUserScramCredentialsRequest, deletions=several(DELETIONS), upsertions=several(UPSERTIONS)),
    st.builds(DescribeUserScramCredentialsRequest, users=several(st.builds(UserName, name=TEXT))),
    st.builds(AlterClientQuotasRequest, entries=several(ENTRIES), validate_only=st.sampled_from([True])),
    st.builds(DescribeClientQuotasRequest, components=several(COMPONENTS), strict=st.booleans()),
)


@pytest.fixture(scope="module")
def admin(guarded: Secured) -> Iterator[RawClient]:
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        log_in(client, "admin")
        yield client


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=REQUESTS)
def test_every_admin_request_is_answered(guarded: Secured, admin: RawClient, request: Any) -> None:
    assert admin.ask(request) is not None
    assert guarded.embedded.broker.listener.counts["failed"] == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mechanism=st.sampled_from(ALL_MECHANISMS),
    version=st.sampled_from([0, 1]),
    messages=st.lists(st.binary(max_size=100), min_size=1, max_size=3),
)
def test_random_logins_are_refused(guarded: Secured, mechanism: str, version: int, messages: list[bytes]) -> None:
    logins: Any = guarded.embedded.broker.security.logins
    logins._guessing.succeeded("127.0.0.1")  # or the delay would grow
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        try:
            client.ask(SaslHandshakeRequest(mechanism=mechanism), version)
            for message in messages:
                if version == 1:
                    client.ask(SaslAuthenticateRequest(auth_bytes=message))
                else:
                    client.send_bytes(len(message).to_bytes(4) + message)
            client.ask(METADATA)
        except (HungUpError, OSError, ValueError):
            pass
        else:
            pytest.fail("it got in")
    assert guarded.embedded.broker.listener.counts["failed"] == 0
