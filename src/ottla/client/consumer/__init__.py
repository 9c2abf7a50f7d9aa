"""The consumer."""
