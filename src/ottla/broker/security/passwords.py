"""Rules for new passwords, and when they expire. Pure, except for reading the file of forbidden passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ConfigError, PolicyViolation

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.net.security_config import SecurityConfig


def check_password(config: SecurityConfig, user: str, password: str) -> None:
    """Raise PolicyViolation for a password that the configuration does not accept."""
    least = config.password_min_length
    if len(password) < least:
        raise PolicyViolation(f"the password has {len(password)} characters; security.password_min_length is {least}")
    kinds = character_kinds(password)
    if kinds < config.password_min_character_kinds:
        raise PolicyViolation(
            f"the password has {kinds} of the kinds lower case, upper case, digit and other; "
            f"security.password_min_character_kinds is {config.password_min_character_kinds}"
        )
    is_strict = config.password_min_character_kinds or config.password_denied_file
    if is_strict and user.casefold() in password.casefold():
        raise PolicyViolation("the password contains the name of the user")
    if config.password_denied_file is not None and is_listed(config.password_denied_file, password):
        raise PolicyViolation("the password is listed in security.password_denied_file")


def character_kinds(password: str) -> int:
    """The number of character classes that occur: lower case, upper case, digits, others."""
    return sum(
        any(map(is_one, password))
        for is_one in (
            str.islower,
            str.isupper,
            str.isdecimal,
            lambda each: not (each.islower() or each.isupper() or each.isdecimal()),
        )
    )


def is_listed(file: Path, password: str) -> bool:
    """Whether a line of the file is this password, ignoring case."""
    wanted = password.casefold()
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            return any(line.rstrip("\r\n").casefold() == wanted for line in lines)
    except OSError as unreadable:
        raise ConfigError(f"security.password_denied_file cannot be read: {unreadable}") from None


def expiry(config: SecurityConfig, wanted_ms: int, now_ms: int) -> int | None:
    """When a new password expires; None for never. `wanted_ms` is 0 for never, -1 for the configured default."""
    latest_ms = now_ms + config.password_max_age_ms if config.password_max_age_ms else None
    if wanted_ms < 0:
        return latest_ms
    if latest_ms is not None and (wanted_ms == 0 or wanted_ms > latest_ms):
        raise PolicyViolation("the password would be valid for longer than security.password_max_age_ms allows")
    return wanted_ms or None
