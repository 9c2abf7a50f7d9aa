"""Google Cloud KMS as its API documents it: Encrypt and Decrypt over gRPC, key versions, checksums.

The messages are those of Google's SDK; the service itself cannot be run elsewhere.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.cloud import kms_v1
from google.cloud.kms_v1.services.key_management_service.transports import KeyManagementServiceGrpcTransport

from ottla.core.keys import EncryptionConfig
from ottla.kms.gcp import GcpKms
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator

CRYPTO_KEY = "projects/shop/locations/europe-west3/keyRings/brokers/cryptoKeys/ottla"
_SERVICE = "google.cloud.kms.v1.KeyManagementService"


class GoogleKms:
    def __init__(self) -> None:
        self.versions = [os.urandom(32)]
        self.corrupts = False
        self.server = grpc.server(ThreadPoolExecutor(2))
        verbs = {
            "Encrypt": _method(self._encrypt, kms_v1.EncryptRequest, kms_v1.EncryptResponse),
            "Decrypt": _method(self._decrypt, kms_v1.DecryptRequest, kms_v1.DecryptResponse),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, verbs),))
        self._port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self._channels: list[Any] = []

    def rotate(self) -> None:
        self.versions.append(os.urandom(32))

    def client(self) -> Any:
        channel = grpc.insecure_channel(f"127.0.0.1:{self._port}")
        self._channels.append(channel)
        return kms_v1.KeyManagementServiceClient(transport=KeyManagementServiceGrpcTransport(channel=channel))

    def wrapper(self, wrapping_key: str = CRYPTO_KEY) -> GcpKms:
        return GcpKms(EncryptionConfig(key_wrapping="gcp-kms", wrapping_key=wrapping_key), self.client())

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self.server.stop(None).wait()

    def _encrypt(self, request: Any, context: Any) -> Any:
        self._check(request, context, request.plaintext, request.plaintext_crc32c)
        nonce, version = os.urandom(12), len(self.versions)
        sealed = AESGCM(self.versions[-1]).encrypt(nonce, request.plaintext, request.additional_authenticated_data)
        ciphertext = bytes([version]) + nonce + sealed
        return kms_v1.EncryptResponse(
            name=f"{CRYPTO_KEY}/cryptoKeyVersions/{version}",
            ciphertext=ciphertext,
            ciphertext_crc32c=crc32c(ciphertext) ^ self.corrupts,
            verified_plaintext_crc32c="plaintext_crc32c" in request,
        )

    def _decrypt(self, request: Any, context: Any) -> Any:
        self._check(request, context, request.ciphertext, request.ciphertext_crc32c)
        version, nonce, sealed = request.ciphertext[0], request.ciphertext[1:13], request.ciphertext[13:]
        try:
            key = AESGCM(self.versions[version - 1])
            plaintext = key.decrypt(nonce, sealed, request.additional_authenticated_data)
        except (InvalidTag, IndexError):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Decryption failed: verify that 'name' refers to the key.")
        return kms_v1.DecryptResponse(plaintext=plaintext, plaintext_crc32c=crc32c(plaintext) ^ self.corrupts)

    def _check(self, request: Any, context: Any, data: bytes, checksum: int) -> None:
        if request.name != CRYPTO_KEY:
            context.abort(grpc.StatusCode.NOT_FOUND, f"CryptoKey {request.name} not found.")
        if checksum and checksum != crc32c(data):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The checksum does not match.")


def _method(answer: Any, request: Any, response: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=request.deserialize, response_serializer=response.serialize
    )


@contextmanager
def google_kms() -> Iterator[GoogleKms]:
    server = GoogleKms()
    try:
        yield server
    finally:
        server.close()
