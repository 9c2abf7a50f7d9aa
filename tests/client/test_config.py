"""Options: defaults, validation, keywords."""

from __future__ import annotations

import os
import ssl
from dataclasses import fields
from typing import Any

import pytest

from ottla.client import Client
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.options import ClientOptions, ConsumerOptions, ProducerOptions
from ottla.client.security import Security
from ottla.core.errors import ConfigError

from .certificates import make_certificates


@pytest.mark.parametrize(
    ("config", "options"),
    [(ClientConfig, ClientOptions), (ProducerConfig, ProducerOptions), (ConsumerConfig, ConsumerOptions)],
)
def test_each_option_is_a_keyword_of_the_same_type(config: type[Any], options: type[Any]) -> None:
    types = {field.name: field.type for field in fields(config)}
    assert types == {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()}


def test_the_options_of_kafka_d_have_its_defaults() -> None:
    client, producer, consumer = ClientConfig(), ProducerConfig(), ConsumerConfig()
    assert client.client_id == f"ottla-{os.getpid()}"
    assert (client.fetcher_bundle_max_wait_ms, client.fetcher_bundle_min_requests) == (100, 10)
    assert (client.pusher_bundle_max_wait_ms, client.pusher_bundle_min_requests) == (100, 10)
    assert (client.leader_election_retry_count, client.leader_election_retry_ms) == (3, 1000)
    assert (client.metadata_refresh_retry_count, client.metadata_refresh_retry_ms) == (3, 1000)
    assert (client.serializer_chunk_bytes, client.deserializer_chunk_bytes) == (4096, 4096)
    assert (producer.produce_request_timeout_ms, producer.producer_batch_timeout_ms) == (1000, 100)
    assert (producer.producer_max_bytes, producer.producer_queue_buffers) == (1 << 20, 2)
    assert (producer.compression, producer.compression_level) == ("none", None)
    assert (consumer.consumer_max_wait_ms, consumer.consumer_min_bytes) == (100, 1)
    assert (consumer.consumer_max_bytes, consumer.consumer_queue_buffers) == (1 << 20, 2)


@pytest.mark.parametrize(
    ("config", "options", "complaint"),
    [
        (ClientConfig, {"request_timeout_ms": 0}, "request_timeout_ms must be a whole number of at least 1, got 0"),
        (ClientConfig, {"connect_timeout_ms": 1.5}, "connect_timeout_ms must be a whole number"),
        (ClientConfig, {"metadata_max_age_ms": True}, "metadata_max_age_ms must be a whole number"),
        (ClientConfig, {"metadata_refresh_retry_count": -1}, "metadata_refresh_retry_count"),
        (ClientConfig, {"metadata_refresh_retry_ms": 0}, "metadata_refresh_retry_ms"),
        (ClientConfig, {"leader_election_retry_count": -1}, "leader_election_retry_count"),
        (ClientConfig, {"leader_election_retry_ms": 0}, "leader_election_retry_ms"),
        (ClientConfig, {"backoff_first_ms": 0}, "backoff_first_ms"),
        (ClientConfig, {"backoff_first_ms": 100, "backoff_max_ms": 99}, "backoff_max_ms .* at least 100"),
        (ClientConfig, {"fetcher_bundle_max_wait_ms": -1}, "fetcher_bundle_max_wait_ms"),
        (ClientConfig, {"fetcher_bundle_min_requests": 0}, "fetcher_bundle_min_requests"),
        (ClientConfig, {"pusher_bundle_max_wait_ms": -1}, "pusher_bundle_max_wait_ms"),
        (ClientConfig, {"pusher_bundle_min_requests": 0}, "pusher_bundle_min_requests"),
        (ClientConfig, {"serializer_chunk_bytes": 1}, "serializer_chunk_bytes"),
        (ClientConfig, {"deserializer_chunk_bytes": 1}, "deserializer_chunk_bytes"),
        (ProducerConfig, {"acks": 2}, "acks must be one of 'all', 0, 1, got 2"),
        (ProducerConfig, {"acks": True}, "acks must be one of"),
        (ProducerConfig, {"acks": 1}, 'acks must be "all" with idempotence'),
        (ProducerConfig, {"compression": "brotli"}, "compression must be one of"),
        (ProducerConfig, {"compression": "gzip", "compression_level": 10}, "between 1 and 9 with gzip, got 10"),
        (ProducerConfig, {"compression_level": 1}, "compression_level must be None with compression='none'"),
        (ProducerConfig, {"producer_batch_timeout_ms": -1}, "producer_batch_timeout_ms"),
        (ProducerConfig, {"producer_max_bytes": 100}, "producer_max_bytes"),
        (ProducerConfig, {"producer_queue_buffers": 1}, "producer_queue_buffers"),
        (ProducerConfig, {"produce_request_timeout_ms": 0}, "produce_request_timeout_ms"),
        (ProducerConfig, {"delivery_timeout_ms": 0}, "delivery_timeout_ms"),
        (ProducerConfig, {"max_in_flight": 6}, "max_in_flight must be at most 5 with idempotence, got 6"),
        (ConsumerConfig, {"group": ""}, "group must not be empty"),
        (ConsumerConfig, {"group_instance_id": "i"}, "group_instance_id needs a group"),
        (ConsumerConfig, {"auto_offset_reset": "smallest"}, "auto_offset_reset must be one of"),
        (ConsumerConfig, {"isolation_level": "serializable"}, "isolation_level must be one of"),
        (ConsumerConfig, {"consumer_queue_buffers": 1}, "consumer_queue_buffers"),
        (ConsumerConfig, {"heartbeat_interval_ms": 45_000}, "heartbeat_interval_ms must be less than session_timeout"),
        (ConsumerConfig, {"assignors": ()}, "assignors must name at least one"),
        (ConsumerConfig, {"assignors": ("fair",)}, "assignors must be of .* got 'fair'"),
        (Security, {"ca_file": "f"}, "ca_file needs tls=True"),
        (Security, {"cert_file": "f"}, "cert_file needs tls=True"),
        (Security, {"tls": True, "key_file": "f"}, "key_file needs a cert_file"),
        (Security, {"check_hostname": False}, "check_hostname=False needs tls=True"),
        (Security, {"mechanism": "GSSAPI"}, "mechanism must be one of"),
        (Security, {"mechanism": "PLAIN", "username": "u"}, "PLAIN needs a username and a password"),
        (Security, {"username": "u", "password": "p"}, "username and password need a mechanism"),
        (Security, {"mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs a token"),
        (Security, {"token": str}, "token needs mechanism OAUTHBEARER"),
    ],
)
def test_an_invalid_value_is_refused_and_the_option_named(
    config: type[Any], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        config(**options)


def test_an_option_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="request_timeout"):
        Client("localhost", request_timeout=5)  # type: ignore[call-arg]


def test_secrets_are_not_shown() -> None:
    shown = repr(ClientConfig(security=Security(mechanism="PLAIN", username="ann", password="s3cret")))
    assert "ann" in shown
    assert "s3cret" not in shown


def test_unusable_tls_files_are_named(tmp_path: Any) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for options, complaint in (
        ({"ca_file": "/no/such/file"}, "ca_file '/no/such/file' cannot be used"),
        ({"ca_file": str(empty)}, "ca_file .* cannot be used"),
        ({"cert_file": str(empty)}, "cert_file .* cannot be used"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            Security(tls=True, **options).tls_context()  # type: ignore[arg-type]


def test_a_given_ssl_context_is_used_unchanged() -> None:
    own = ssl.create_default_context()
    assert Security(tls=own).tls_context() is own
    assert Security().tls_context() is None


def test_the_host_name_is_verified_unless_disabled(tmp_path: Any) -> None:
    authority = str(make_certificates(tmp_path).authority)
    checked = Security(tls=True, ca_file=authority).tls_context()
    unchecked = Security(tls=True, ca_file=authority, check_hostname=False).tls_context()
    assert checked is not None
    assert unchecked is not None
    assert (checked.check_hostname, unchecked.check_hostname) == (True, False)
    assert unchecked.verify_mode is ssl.CERT_REQUIRED
