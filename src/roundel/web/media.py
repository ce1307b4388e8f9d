"""Pictures: decoded and written anew, so that nothing but pixels gets to a browser; found by name, never by path."""

from __future__ import annotations

import hashlib
import io
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from roundel.errors import DataError
from roundel.tournament.spec import Content, Spec

MOST_BYTES = 50 * 2**20  # of a file
MOST_PIXELS = 40_000_000
LONGEST_SIDE = 2400  # larger pictures are scaled down
READ = ("PNG", "JPEG", "WEBP", "GIF")
CACHE = 128 * 2**20  # bytes of pictures kept in memory


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as browsers get it."""

    type: str
    data: bytes


class Gallery:
    """The pictures of the tournaments: nothing else on the disk has an address here."""

    def __init__(self, alias: Callable[[str, str], str]) -> None:
        """Name pictures by `alias`, which nobody else can compute."""
        self._alias = alias
        self._files: dict[str, tuple[Path, str]] = {}
        self._cache: OrderedDict[str, Picture] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()  # one picture at a time: decoding takes memory

    def add(self, spec: Spec) -> None:
        """Give addresses to the pictures of a tournament."""
        for content in contents(spec):
            if "image" in content:
                self._files[self.name(content)] = (Path(content["image"]), content["sha256"])

    def name(self, content: Content) -> str:
        """Return the name of a picture: it tells neither the file nor its digest."""
        return self._alias("picture", content["sha256"])

    def get(self, name: str) -> Picture | None:
        """Return a picture by name; None where there is none, or where the file is no longer what it was."""
        found = self._files.get(name)
        if found is None:
            return None
        with self._lock:
            if name in self._cache:
                self._cache.move_to_end(name)
                return self._cache[name]
            try:
                picture = redraw(_read(*found))
            except DataError:
                return None
            self._cache[name] = picture
            self._size += len(picture.data)
            while self._size > CACHE and len(self._cache) > 1:
                self._size -= len(self._cache.popitem(last=False)[1].data)
            return picture

    def missing(self) -> list[str]:
        """Say which pictures cannot be shown, and why."""
        problems = []
        for path, digest in self._files.values():
            try:
                _read(path, digest)
            except DataError as error:
                problems.append(str(error))
        return problems


def contents(spec: Spec) -> Iterable[Content]:
    """Yield every content of a tournament."""
    for option in spec.options:
        if option.content is not None:
            yield option.content
        yield from option.contents or ()
    for context in spec.contexts:
        yield context.content


def _read(path: Path, digest: str) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"{path}: pictures of at most {MOST_BYTES:,} bytes are shown; save a smaller one")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the picture cannot be read ({error.strerror}): put it back") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise DataError(f"{path}: the picture is not the one that the tournament was made with: put that one back")
    return data


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale grey of 16 bits down: browsers are sent 8, and Pillow alone would make nearly all of it white."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray((np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8))


def redraw(data: bytes) -> Picture:
    """Decode a picture and write it anew: no metadata, no second format in the same file, no surprise in size."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=READ) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise DataError(
                        f"a picture of {opened.width} x {opened.height}: at most {MOST_PIXELS:,} pixels are shown"
                    )
                lossy = opened.format == "JPEG"
                opened.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
                image = _eight_bits(ImageOps.exif_transpose(opened))
                image = image.convert("RGB" if lossy or not image.has_transparency_data else "RGBA")
    except DataError:
        raise
    except Exception as error:  # decoders fail in many ways, all of them the file's fault
        raise DataError(f"this is no picture that can be shown ({error}): save it as PNG, JPEG, WebP or GIF") from None
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    image.info.clear()
    out = io.BytesIO()
    if lossy:
        image.save(out, "JPEG", quality=92, subsampling=0, optimize=True)
        return Picture("image/jpeg", out.getvalue())
    image.save(out, "PNG", compress_level=6)
    return Picture("image/png", out.getvalue())
