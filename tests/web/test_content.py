"""What is shown for options: text, Markdown, data, pictures."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from roundel.errors import DataError
from roundel.web import media
from roundel.web.content import LONGEST, show

Serve = Callable[..., Any]


def html(**content: Any) -> str:
    return str(show(content, lambda image: f"/media/{image['sha256']}"))


def test_text_is_text() -> None:
    assert html(text="<b>a & b</b>\n  c") == '<div class="plain" dir="auto">&lt;b&gt;a &amp; b&lt;/b&gt;\n  c</div>'


def test_markdown_is_formatted_and_its_headings_go_below_those_of_the_page() -> None:
    shown = html(markdown="# One\n\n###### Six\n\n- *a*\n- ~~b~~\n\n|x|y|\n|-|-|\n|1|2|\n\n```py\nx < 1\n```")
    for part in (
        "<h3>One</h3>",
        "<h6>Six</h6>",
        "<li><em>a</em></li>",
        "<s>b</s>",
        "<td>1</td>",
        'tabindex="0"',
        "x &lt; 1",
    ):
        assert part in shown
    assert "<h1" not in shown
    assert "<h2" not in shown


def test_links_tell_nothing_and_pictures_are_not_loaded() -> None:
    shown = html(markdown="[a](https://b.example) ![cat](https://b.example/cat.png) ![](x)")
    assert '<a href="https://b.example" target="_blank" rel="noopener noreferrer nofollow">a</a>' in shown
    assert "[picture: cat]" in shown
    assert "[picture: without a name]" in shown
    assert "<img" not in shown


def test_html_in_markdown_is_text() -> None:
    assert "&lt;u&gt;x&lt;/u&gt;" in html(markdown="<u>x</u>")


def test_data_is_laid_out() -> None:
    assert html(data=["<", 1]) == '<pre tabindex="0"><code>[\n  &#34;&lt;&#34;,\n  1\n]</code></pre>'


def test_long_contents_are_cut_with_a_note() -> None:
    shown = html(text="x" * (LONGEST + 5))
    assert shown.count("x") == LONGEST
    assert "200,000 of 200,005 characters" in shown


_TAG = re.compile(r"<([a-z0-9]+)((?:\s+[a-z-]+=\"[^\"<>]*\")*)\s*/?>|</[a-z0-9]+>")


@given(st.text(alphabet="<>\"'&`[]()!*_#|\n\\ abscript:onjv/=-~0", max_size=120))
def test_no_markdown_makes_a_tag_or_an_attribute_that_is_not_allowed(text: str) -> None:
    shown = html(markdown=text)
    rest = _TAG.sub("", shown)
    assert "<" not in rest
    for match in _TAG.finditer(shown):
        for name in re.findall(r"\s([a-z-]+)=", match[2] or ""):
            assert name in {"class", "dir", "href", "title", "rel", "target", "start", "tabindex"}
    for address in re.findall(r'href="([^"]*)"', shown):
        scheme = re.match(r"\s*([a-zA-Z][a-zA-Z0-9+.-]*):", address)
        assert scheme is None or scheme[1].lower() in {"http", "https", "mailto"}


def test_deep_markdown_ends() -> None:
    for text in (">" * 5000 + "x", "[" * 5000, "*" * 5000 + "x", "- " * 3000 + "x", "`" * 5000):
        assert html(markdown=text)


# pictures ---------------------------------------------------------------------------------------------------


def png(size: tuple[int, int] = (4, 4), **save: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, "PNG", **save)
    return out.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A small PNG that says it is huge."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 100_000))
        + chunk(b"IEND", b"")
    )


def test_a_picture_is_written_anew_without_what_else_was_in_the_file() -> None:
    script = b"<script>alert(1)</script>"
    polyglot = png() + b"PK\x03\x04" + script
    assert script in polyglot
    drawn = media.redraw(polyglot)
    assert drawn.type == "image/png"
    assert script not in drawn.data
    with Image.open(io.BytesIO(drawn.data)) as again:
        assert again.getpixel((0, 0)) == (255, 0, 0)
    photo = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "a secret place"
    Image.new("RGB", (8, 4), "blue").save(photo, "JPEG", exif=exif, comment=script)
    assert b"a secret place" in photo.getvalue()
    drawn = media.redraw(photo.getvalue())
    assert drawn.type == "image/jpeg"
    assert b"a secret place" not in drawn.data
    assert script not in drawn.data


@pytest.mark.parametrize("kind", ["WEBP", "GIF", "PNG"])
def test_transparency_stays(kind: str) -> None:
    out = io.BytesIO()
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(out, kind, lossless=True)
    with Image.open(io.BytesIO(media.redraw(out.getvalue()).data)) as again:
        assert again.convert("RGBA").getpixel((0, 0))[3] == 0  # type: ignore[index]


def test_grey_of_sixteen_bits_stays_grey() -> None:
    out = io.BytesIO()
    Image.fromarray(np.array([[0, 20_000], [40_000, 65_535]], np.uint16)).save(out, "PNG")
    with Image.open(io.BytesIO(media.redraw(out.getvalue()).data)) as again:
        shades = [again.getpixel((x, y)) for y in range(2) for x in range(2)]
    assert shades == [(v, v, v) for v in (0, 78, 156, 255)]


def test_large_pictures_are_scaled_down() -> None:
    with Image.open(io.BytesIO(media.redraw(png((5000, 100))).data)) as again:
        assert again.size == (2400, 48)


@pytest.mark.parametrize(
    "data",
    [
        bomb(60_000, 60_000),
        bomb(2**31 - 1, 2**31 - 1),
        bomb(7000, 7000),
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"%PDF-1.4",
        b"GIF89a<script>alert(1)</script>",
        b"",
        b"\x89PNG\r\n\x1a\n",
        png()[:40],
        b"BM" + b"\0" * 60,
    ],
)
def test_bombs_and_what_is_no_picture_are_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        media.redraw(data)


def test_a_picture_that_is_sound_and_small_but_has_too_many_pixels_is_refused() -> None:
    out = io.BytesIO()
    Image.new("1", (7000, 7000)).save(out, "PNG")
    assert len(out.getvalue()) < 100_000
    with pytest.raises(DataError, match="7000 x 7000: at most 40,000,000 pixels"):
        media.redraw(out.getvalue())


def test_only_the_pictures_of_tournaments_have_an_address(serve: Serve, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(png((4, 4 + (name == "b"))))
    (tmp_path / "secret.png").write_bytes(png((9, 9)))
    options = [{"name": n, "image": f"{n}.png"} for n in "ab"]
    served = serve(options=options, folder=tmp_path, horizon=4, rounds=1)
    page = served.voter("Anna").page.text
    address = re.findall(r'src="(/media/[^"]+)"', page)
    assert len(address) == 2
    answer = httpx.get(served.url + address[0])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "private" in answer.headers["cache-control"]
    digests = [hashlib.sha256((tmp_path / f"{name}.png").read_bytes()).hexdigest() for name in "ab"]
    tries = [
        "a.png",
        *digests,
        "..",
        "../secret.png",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/secret.png",
        "....//secret.png",
    ]
    tries += [str(tmp_path / "secret.png"), "%00", "a" * 32, address[0][7:-1], address[0][7:] + "%00", "..\\secret.png"]
    for name in tries:
        for base in ("/media/", "/static/", "/static/x/"):
            found = httpx.get(f"{served.url}{base}{name}")
            assert found.status_code in (401, 404, 405), name  # 401: the home page, where ".." led to
            assert not found.headers["content-type"].startswith("image/"), name
    for digest in digests:  # who has a picture cannot find out whether it is compared here
        assert digest not in page
    assert all(name not in page for name in ("a.png", "b.png"))


def test_a_picture_that_was_changed_is_not_shown(serve: Serve, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(png((4, 4 + (name == "b"))))
    served = serve(options=[{"name": n, "image": f"{n}.png"} for n in "ab"], folder=tmp_path, horizon=4, rounds=1)
    (tmp_path / "a.png").write_bytes(png((64, 64)))
    (tmp_path / "b.png").unlink()
    addresses = re.findall(r'src="(/media/[^"]+)"', served.voter("Anna").page.text)
    assert {httpx.get(served.url + address).status_code for address in addresses} == {404}
    problems = sorted(served.desk.gallery.missing())
    assert "is not the one that the tournament was made with" in problems[0]
    assert "cannot be read" in problems[1]
