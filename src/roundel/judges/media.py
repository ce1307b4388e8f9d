"""Pictures, carried inside of files and requests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roundel.errors import DataError

MOST_BYTES = 20 * 2**20
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture(content: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the bytes and the type of an image content; refuse another picture than the tournament began with."""
    path = Path(str(content["image"]))
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"{path}: larger than {MOST_BYTES:,} bytes; scale the picture down")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}: the picture must stay where it was") from None
    if "sha256" in content and hashlib.sha256(data).hexdigest() != content["sha256"]:
        raise DataError(f"{path}: the picture is not the one that the tournament began with: restore it")
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return data, kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return data, "image/webp"
    raise DataError(f"{path}: no PNG, JPEG, GIF or WebP picture; convert it")


def data_uri(content: Mapping[str, Any]) -> str:
    """Return an image content as a data: URI."""
    data, kind = picture(content)
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
