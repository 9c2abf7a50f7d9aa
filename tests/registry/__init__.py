"""The schema registry."""
