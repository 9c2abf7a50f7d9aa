"""Data keys wrapped by Google Cloud KMS."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ConfigError
from ottla.core.keys import EncryptionConfig
from ottla.kms.wrapping import wrapper_for

pytest.importorskip("google.cloud.kms")

from .google_kms import CRYPTO_KEY, GoogleKms, google_kms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA_KEY = bytes(range(32))


@pytest.fixture
def gcp() -> Iterator[GoogleKms]:
    with google_kms() as server:
        yield server


def test_google_cloud_kms_wraps_and_unwraps(gcp: GoogleKms) -> None:
    wrapper = gcp.wrapper()
    wrapped = wrapper.wrap(DATA_KEY)
    assert wrapped.startswith(f"gcp-kms:{CRYPTO_KEY}:")
    gcp.rotate()
    assert wrapper.unwrap(wrapped) == DATA_KEY
    assert gcp.wrapper(wrapping_key="").unwrap(wrapped) == DATA_KEY  # it names its key
    with pytest.raises(ConfigError, match="Google Cloud KMS refused to decrypt: 400 Decryption failed"):
        wrapper.unwrap(f"gcp-kms:{CRYPTO_KEY}:" + "A" * 64)
    with pytest.raises(ConfigError, match="not valid base64"):
        wrapper.unwrap("gcp-kms:!")
    with pytest.raises(ConfigError, match="refused to encrypt: 404"):
        gcp.wrapper(wrapping_key=f"{CRYPTO_KEY}s").wrap(DATA_KEY)
    with pytest.raises(ConfigError, match=r"set encryption\.wrapping_key to projects/"):
        gcp.wrapper(wrapping_key="").wrap(DATA_KEY)


def test_a_key_for_another_purpose_is_not_accepted_from_google_cloud_kms(gcp: GoogleKms) -> None:
    other = gcp.client().encrypt(request={"name": CRYPTO_KEY, "plaintext": DATA_KEY}).ciphertext
    with pytest.raises(ConfigError, match="Decryption failed"):
        gcp.wrapper().unwrap(f"gcp-kms:{CRYPTO_KEY}:{base64.b64encode(other).decode()}")


def test_corruption_on_the_way_to_or_from_google_cloud_kms_is_noticed(gcp: GoogleKms) -> None:
    wrapped = gcp.wrapper().wrap(DATA_KEY)
    gcp.corrupts = True
    with pytest.raises(ConfigError, match="corrupted on its way"):
        gcp.wrapper().wrap(DATA_KEY)
    with pytest.raises(ConfigError, match="corrupted on its way"):
        gcp.wrapper().unwrap(wrapped)


def test_google_cloud_kms_without_credentials_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="Google Cloud KMS cannot be used"):
        wrapper_for("gcp-kms", EncryptionConfig(key_wrapping="gcp-kms", wrapping_key=CRYPTO_KEY))
