"""Membership in consumer groups: who reads what, and how far it has read."""
