"""Ottla: a message broker you pip install."""

__version__ = "0.1.0"
