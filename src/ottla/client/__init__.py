"""A client of any Kafka broker."""

from ottla.client.client import Client
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.security import Security

__all__ = ["Client", "ClientConfig", "ConsumerConfig", "ProducerConfig", "Security"]
