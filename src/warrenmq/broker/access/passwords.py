"""Password hashes as RabbitMQ stores them, so that users move between the two brokers with their passwords.

A hash is base64(salt(4) || digest(salt || password)). SHA-256 is what RabbitMQ makes by default and the only kind
made here; SHA-512 and the old MD5 are accepted so that imported users keep working.
Not here: who the users are (``access.py``) and how long a failed login takes (``server``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final

SHA256: Final = "rabbit_password_hashing_sha256"
SHA512: Final = "rabbit_password_hashing_sha512"
MD5: Final = "rabbit_password_hashing_md5"
ALGORITHMS: Final = (SHA256, SHA512, MD5)
NOBODYS: Final = bytes(36)  # compared where there is no hash, so that it takes as long


def digest(algorithm: str, salted: bytes) -> bytes:
    if algorithm == SHA512:
        return hashlib.sha512(salted).digest()
    if algorithm == MD5:
        return hashlib.md5(salted, usedforsecurity=False).digest()
    return hashlib.sha256(salted).digest()


def hash_password(password: str, salt: bytes, algorithm: str = SHA256) -> str:
    """The stored form of a password; the four salt bytes are handed in (randomness is the caller's)."""
    return base64.b64encode(salt + digest(algorithm, salt + password.encode("utf-8", "surrogateescape"))).decode()


def is_hash(password_hash: str) -> bool:
    """Whether this could be a stored hash at all; empty means "no password, cannot log in"."""
    try:
        binascii.a2b_base64(password_hash, strict_mode=True)
    except ValueError:
        return False
    return True


def matches(password: str, password_hash: str, algorithm: str) -> bool:
    """Whether the password belongs to the hash; takes the same time wherever they differ, and if there is no hash."""
    try:
        stored = binascii.a2b_base64(password_hash, strict_mode=True)
    except ValueError:  # binascii.Error is one
        stored = b""
    usable = len(stored) > 4
    if not usable:
        stored = NOBODYS
    found = digest(algorithm, stored[:4] + password.encode("utf-8", "surrogateescape"))
    return hmac.compare_digest(stored[4:], found) and usable


def new_salt() -> bytes:
    return os.urandom(4)
