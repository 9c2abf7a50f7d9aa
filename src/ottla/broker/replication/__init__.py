"""Replication at work: what this broker leads, what it follows, and the connections in between."""
