"""Requests of this broker to other brokers of its cluster."""
