"""Endpoints that write and read messages."""
