"""JWKS keys (RFC 7517), and verification of token signatures (RFC 7518)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from ottla.core.security import LoginFailed
from ottla.net.sasl.tokens import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_HASHES: Final[Mapping[str, Callable[[], hashes.HashAlgorithm]]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: Final[Mapping[str, type[ec.EllipticCurve]]] = {
    "P-256": ec.SECP256R1,
    "P-384": ec.SECP384R1,
    "P-521": ec.SECP521R1,
}
_CURVE_OF: Final = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}
_LEAST_RSA_BITS: Final = 2048


class Keys:
    """All usable keys of a JWKS document."""

    def __init__(self, document: bytes) -> None:
        found = json.loads(document)
        self._keys: list[tuple[str | None, str | None, PublicKey]] = []
        for one in found["keys"]:
            if one.get("use", "sig") == "sig" and (key := _read(one)) is not None:
                self._keys.append((one.get("kid"), one.get("alg"), key))
        if not self._keys:
            raise ValueError("no key usable for signatures")

    def check(self, head: Mapping[str, Any], signed: bytes, signature: bytes) -> None:
        """Raises LoginFailed unless one of the eligible keys has signed the token."""
        algorithm, wanted = head.get("alg"), head.get("kid")
        for kid, only, key in self._keys:
            if (wanted is None or kid == wanted) and only in (None, algorithm):
                verify = _verification(algorithm, key)
                if verify is not None:
                    try:
                        verify(signature, signed)
                    except (InvalidSignature, ValueError):
                        continue
                    return
        raise LoginFailed("token signature does not match any key of the JWKS")


def _read(one: Mapping[str, Any]) -> PublicKey | None:
    try:
        if one["kty"] == "RSA":
            key = rsa.RSAPublicNumbers(_number(one["e"]), _number(one["n"])).public_key()
            return key if key.key_size >= _LEAST_RSA_BITS else None
        if one["kty"] == "EC":
            curve = _CURVES[one["crv"]]()
            return ec.EllipticCurvePublicNumbers(_number(one["x"]), _number(one["y"]), curve).public_key()
        if one["kty"] == "OKP" and one["crv"] == "Ed25519":
            return ed25519.Ed25519PublicKey.from_public_bytes(decoded(one["x"]))
    except (KeyError, TypeError, ValueError, LoginFailed):
        return None
    return None


def _number(text: str) -> int:
    return int.from_bytes(decoded(text))


def _verification(algorithm: object, key: PublicKey) -> Callable[[bytes, bytes], None] | None:
    """The verification function for this algorithm and key; None if they do not match. The token must not choose the
    algorithm.
    """
    if not isinstance(algorithm, str):
        return None
    kind, hash_type = algorithm[:2], _HASHES.get(algorithm[2:])
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key.verify if algorithm == "EdDSA" else None
    if hash_type is None:
        return None
    digest = hash_type()
    if isinstance(key, rsa.RSAPublicKey):
        if kind not in ("RS", "PS"):
            return None
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        pad = padding.PKCS1v15() if kind == "RS" else pss
        return lambda signature, signed: key.verify(signature, signed, pad, digest)
    if _CURVE_OF.get(algorithm) != key.curve.name:
        return None
    return lambda signature, signed: key.verify(_as_der(signature, key), signed, ec.ECDSA(digest))


def _as_der(signature: bytes, key: ec.EllipticCurvePublicKey) -> bytes:
    size = (key.curve.key_size + 7) // 8
    if len(signature) != 2 * size:
        raise ValueError("signature has the wrong size")
    return utils.encode_dss_signature(int.from_bytes(signature[:size]), int.from_bytes(signature[size:]))
