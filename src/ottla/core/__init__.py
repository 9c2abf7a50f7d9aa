"""Shared by all packages: ids, errors, the clock and configuration."""
