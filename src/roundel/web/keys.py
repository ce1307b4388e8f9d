"""Secrets: one for signing, one that makes its bearer the owner; from the environment, or from a file."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from itsdangerous import BadSignature, URLSafeSerializer, URLSafeTimedSerializer

from roundel.errors import AccessError

SECRET = "ROUNDEL_SECRET"  # the names of environment variables
OWNER = "ROUNDEL_OWNER_TOKEN"
SHORTEST = 16
LONGEST_TOKEN = 300
SESSION = 7 * 24 * 3600  # seconds that an owner stays signed in


class Keys:
    """Signs invitations and cookies, and knows the owner. Its text never shows a secret."""

    def __init__(self, secret: str, owner: str) -> None:
        """Take the secret that signs and the owner's token."""
        for name, value in ((SECRET, secret), (OWNER, owner)):
            if len(value) < SHORTEST:
                raise AccessError(
                    f"{name} has {len(value)} characters: give at least {SHORTEST} that nobody can guess, "
                    "or leave it out and have one made"
                )
        self._secret = secret.encode()
        self._owner = hashlib.sha256(owner.encode()).digest()
        self._signers = {role: self._serializer(role) for role in ("voter", "judge", "seat")}
        # Who changes the owner's token signs everybody out.
        self._session = URLSafeTimedSerializer(secret, salt=f"session {self._owner.hex()}", signer_kwargs=_SHA256)
        self.read = lru_cache(maxsize=65536)(self._read)

    @classmethod
    def find(cls, store: str, environment: Mapping[str, str] = os.environ) -> tuple[Keys, str]:
        """Return the keys for a store and the owner's token: from the environment, else made.

        The signing secret must outlive the process, or invitations would not: where the environment has none it is
        kept in a file beside the store. The owner's token is made anew at each start.
        """
        owner = environment.get(OWNER) or secrets.token_urlsafe(24)
        secret = environment.get(SECRET)
        if not secret:
            if "://" in store:
                raise AccessError(f"a store behind a URL has no folder for its secret: set {SECRET} in the environment")
            secret = _kept(Path(f"{store}.secret"))
        return cls(secret, owner), owner

    def _serializer(self, role: str) -> URLSafeSerializer:
        return URLSafeSerializer(self._secret, salt=f"roundel {role}", signer_kwargs=_SHA256)

    def __repr__(self) -> str:
        return "<Keys>"

    def sign(self, role: str, value: Any) -> str:
        """Return a token that stands for `value` in this role."""
        return str(self._signers[role].dumps(value))

    def _read(self, role: str, token: str) -> Any:
        if len(token) > LONGEST_TOKEN:
            return None
        try:
            return self._signers[role].loads(token)
        except BadSignature:
            return None

    def owns(self, token: str) -> bool:
        """Whether this is the owner's token; takes the same time for any."""
        return hmac.compare_digest(hashlib.sha256(token.encode("utf-8", "replace")).digest(), self._owner)

    def session(self) -> str:
        """Return a cookie that keeps the owner signed in."""
        return str(self._session.dumps("owner"))

    def is_session(self, cookie: str) -> bool:
        """Whether a cookie keeps the owner signed in."""
        try:
            return len(cookie) <= LONGEST_TOKEN and self._session.loads(cookie, max_age=SESSION) == "owner"
        except BadSignature:
            return False

    def alias(self, kind: str, name: str) -> str:
        """Return a name for something public that tells nothing about it: 128 bits that only this server can make."""
        return hmac.new(self._secret, f"{kind} {name}".encode(), hashlib.sha256).hexdigest()[:32]

    def cookie(self, name: str) -> str:
        """Return the name of a cookie. Browsers keep one jar for all ports of a host: servers must not share names."""
        return f"{name}-{self.alias('cookie', name)[:8]}"


_SHA256 = {"digest_method": hashlib.sha256, "key_derivation": "hmac"}


def _kept(path: Path) -> str:
    """Return the secret in a file that only its owner can read; make it if it is not there."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        try:
            kept = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AccessError(f"{path}: the signing secret cannot be read ({error}): fix it or set {SECRET}") from None
        if len(kept) < SHORTEST:
            raise AccessError(
                f"{path}: the signing secret in it has {len(kept)} characters, and must have {SHORTEST}: put the right "
                f"one back, or delete the file and have one made (links that were sent stop working), or set {SECRET}"
            ) from None
        return kept
    except OSError as error:
        raise AccessError(
            f"{path}: the signing secret cannot be kept ({error.strerror}): make the folder writable or set {SECRET}"
        ) from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return path.read_text(encoding="ascii").strip()
