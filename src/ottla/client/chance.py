"""A private random source: independent of the program's `random.seed`, and reseeded after a fork."""

from __future__ import annotations

import random
from typing import Final

CHANCE: Final = random.SystemRandom()
