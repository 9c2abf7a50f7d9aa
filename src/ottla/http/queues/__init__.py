"""Queues over HTTP, with and without a broker."""
