"""SCRAM verifiers for unknown users, so that a challenge does not reveal which users exist. Pure.

A challenge shows a salt and the iterations. Those of an unknown user are derived from a secret and the name: the same
at every attempt, after a restart and on every node. Their shape is that of an existing user's, so that neither the
iterations nor the kind of salt identifies a decoy. If a decoy's shape changes (because users were added or removed), so
does its salt: that looks like a new password.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.net.sasl.scram import DEFAULT_ITERATIONS, SALT_BYTES, MadeVerifier, digest_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.net.sasl.exchange import Verifier

_ALPHABET: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_TEXT_SIZES: Final = range(24, 27)
_TEXT_BITS: Final = 130
"""The salts of Kafka's tools are random 130-bit numbers in base 36 (ScramFormatter)."""
_DRAWN_BYTES: Final = 64
_SCORE_BYTES: Final = 7


class Shape(NamedTuple):
    """The visible properties of a verifier, apart from random bytes."""

    mechanism: str
    iterations: int
    salt_bytes: int
    """The size of the salt; 0 for a salt of Kafka's tools."""


Shapes: TypeAlias = "Counter[Shape]"
"""The number of users with each shape."""


def shapes_of(verifiers: Iterable[tuple[str, Verifier]]) -> Shapes:
    """The shapes of `verifiers`, given by mechanism."""
    return Counter(Shape(name, one.iterations, _salt_bytes(one.salt)) for name, one in verifiers)


def _salt_bytes(salt: bytes) -> int:
    is_text = len(salt) in _TEXT_SIZES and not salt.strip(_ALPHABET)
    return 0 if is_text else len(salt)


class Decoys:
    def __init__(self, secret: Callable[[], bytes], shapes: Callable[[], Shapes]) -> None:
        self._secret = secret
        self._shapes = shapes

    def verifier(self, mechanism: str, user: str) -> MadeVerifier:
        among = [(shape, count) for shape, count in self._shapes().items() if shape.mechanism == mechanism]
        best = max(among, key=lambda one: self._score(user, *one), default=None)
        shape = Shape(mechanism, DEFAULT_ITERATIONS, SALT_BYTES) if best is None else best[0]
        size = digest_size(mechanism)
        keys = self._draw("keys", user, shape, 2 * size)
        return MadeVerifier(self._salt(user, shape), shape.iterations, keys[:size], keys[size:])

    def for_password(self, user: str, mechanisms: Sequence[str]) -> tuple[str, MadeVerifier]:
        """A decoy for the first of these mechanisms in use, so that a wrong password takes as long as for an existing
        user.
        """
        known = {shape.mechanism for shape in self._shapes()}
        mechanism = next((one for one in mechanisms if one in known), mechanisms[0])
        return mechanism, self.verifier(mechanism, user)

    def _score(self, user: str, shape: Shape, weight: int) -> float:
        """Weighted rendezvous hashing, so that adding or removing a user changes the shape of few decoys."""
        drawn = int.from_bytes(self._draw("shape", user, shape, _SCORE_BYTES))
        return -weight / math.log((drawn + 1) / ((1 << 8 * _SCORE_BYTES) + 2))

    def _salt(self, user: str, shape: Shape) -> bytes:
        if shape.salt_bytes:
            return self._draw("salt", user, shape, shape.salt_bytes)
        number = int.from_bytes(self._draw("salt", user, shape, _DRAWN_BYTES)) % (1 << _TEXT_BITS)
        digits = bytearray()
        while number:
            number, digit = divmod(number, len(_ALPHABET))
            digits.append(_ALPHABET[digit])
        return bytes(reversed(digits))

    def _draw(self, purpose: str, user: str, shape: Shape, size: int) -> bytes:
        name = user.encode("utf-8", "surrogatepass")
        about = f"{purpose} {shape.mechanism} {shape.iterations} {shape.salt_bytes} ".encode()
        # SHAKE allows a secret prefix: unlike SHA-2 it has no length extension.
        return hashlib.shake_256(self._secret() + about + name).digest(size)
