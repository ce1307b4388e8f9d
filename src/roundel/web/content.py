"""How options and contexts are shown: text by default, Markdown without HTML, data as JSON, pictures by digest."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from roundel.tournament.spec import Content

LONGEST = 200_000  # characters that a page shows of one content
DEEPEST_HEADING = 6

_TAGS = {
    *("p", "br", "hr", "blockquote", "pre", "code", "em", "strong", "s", "ul", "ol", "li", "a"),
    *("h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}


def show(content: Content, picture: Callable[[Content], str]) -> Markup:
    """Return the HTML of a content; `picture` gives the address of an image."""
    if "markdown" in content:
        return _cut(content["markdown"], markdown)
    if "image" in content:
        return Markup('<img src="{}" alt="picture" class="picture" decoding="async">').format(picture(content))
    if "data" in content:
        value = content["data"]
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        return _cut(text, code)
    return _cut(str(content.get("text", "")), plain)


def _cut(text: str, render: Callable[[str], Markup]) -> Markup:
    if len(text) <= LONGEST:
        return render(text)
    note = Markup('<p class="cut">The first {:,} of {:,} characters are shown.</p>').format(LONGEST, len(text))
    return render(text[:LONGEST]) + note


def plain(text: str) -> Markup:
    """Return text as it is."""
    return Markup('<div class="plain" dir="auto">{}</div>').format(text)


def code(text: str) -> Markup:
    """Return code as it is."""
    return Markup('<pre tabindex="0"><code>{}</code></pre>').format(text)


@lru_cache(maxsize=4096)
def markdown(text: str) -> Markup:
    """Return Markdown as HTML that can do no harm: HTML in it is text, and what comes out is checked once more."""
    html = nh3.clean(
        _markdown.render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )
    return Markup('<div class="markdown" dir="auto">{}</div>').format(Markup(html))


def _deeper(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Put headings below those of the page."""
    token = tokens[index]
    token.tag = f"h{min(DEEPEST_HEADING, int(token.tag[1]) + 2)}"
    return renderer.renderToken(tokens, index, options, env)


def _no_picture(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Name a picture instead of loading it from elsewhere: that would tell others who votes on what."""
    return str(escape(f"[picture: {tokens[index].content or 'without a name'}]"))


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    reader.add_render_rule("heading_open", _deeper)
    reader.add_render_rule("heading_close", _deeper)
    reader.add_render_rule("image", _no_picture)
    return reader


_markdown = _reader()
