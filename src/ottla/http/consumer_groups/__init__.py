"""Endpoints of groups and their offsets."""
