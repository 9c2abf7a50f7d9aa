"""A client for any Kafka broker."""

from ottla.client.client import Client
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.group.interface import Committed, GroupProgress, RebalanceListener
from ottla.client.security import Security

__all__ = [
    "Client",
    "ClientConfig",
    "Committed",
    "ConsumerConfig",
    "GroupProgress",
    "ProducerConfig",
    "RebalanceListener",
    "Security",
]
