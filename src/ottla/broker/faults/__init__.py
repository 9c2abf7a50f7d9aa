"""Fault injection. Imported only if it is enabled."""
