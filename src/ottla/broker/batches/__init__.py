"""Checks and changes of record batches before they are appended, and searches in them."""
