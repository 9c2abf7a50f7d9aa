"""Chance that is nobody else's: a program that seeds `random` means its own, and a fork must not repeat ours."""

from __future__ import annotations

import random
from typing import Final

CHANCE: Final = random.SystemRandom()
