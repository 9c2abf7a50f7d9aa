"""Metrics, totals and health."""
