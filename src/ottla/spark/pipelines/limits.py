"""How large a dead letter may be."""

from __future__ import annotations

from typing import Final

MOST_VALUE_BYTES: Final = 900_000
"""A topic takes batches of 1,048,588 bytes by default, and a dead letter has headers of ours beside its own."""
MOST_KEY_BYTES: Final = 50_000
MOST_HEADER_BYTES: Final = 50_000
