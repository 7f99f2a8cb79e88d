"""Writing SVG: elements, numbers, and texts that stay texts."""

import re
from collections.abc import Iterable, Sequence
from html import escape

_NOT_XML = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

Point = tuple[float, float]


def words(text: object, limit: int = 200) -> str:
    """A text as it may stand in an SVG, whoever wrote it: escaped, printable, and not too long.

    >>> words("<script>\\x00")
    '&lt;script&gt;\ufffd'
    """
    plain = str(text)
    shown = plain if len(plain) <= limit else plain[: limit - 1] + "…"
    return escape(_NOT_XML.sub("\ufffd", shown))


def num(value: float) -> str:
    """A coordinate, to a tenth of a pixel.

    >>> num(3.0), num(2.345)
    ('3', '2.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def element(tag: str, content: str = "", /, **attributes: object) -> str:
    """One element. `class_` and `stroke_width` are written `class` and `stroke-width`; what is None is left out.

    >>> element("circle", cx=1.25, cy=2, r=3, class_="being")
    '<circle cx="1.2" cy="2" r="3" class="being"/>'
    """
    pairs = ((k.rstrip("_").replace("_", "-"), v) for k, v in attributes.items() if v is not None)
    written = "".join(f' {k}="{num(v) if isinstance(v, int | float) else words(v, 100_000)}"' for k, v in pairs)
    return f"<{tag}{written}>{content}</{tag}>" if content else f"<{tag}{written}/>"


def label(x: float, y: float, text: object, class_: str = "small", anchor: str | None = None, limit: int = 200) -> str:
    """Words at a place."""
    return element("text", words(text, limit), x=x, y=y, class_=class_, text_anchor=anchor)


def line(points: Sequence[Point]) -> str:
    """The path data of a line through points."""
    return "M" + "L".join(f"{num(x)} {num(y)}" for x, y in points) if points else ""


def squares(corners: Iterable[Point], side: float) -> str:
    """The path data of many squares, each given by its upper left corner."""
    d = num(side)
    return "".join(f"M{num(x)} {num(y)}h{d}v{d}h-{d}z" for x, y in corners)
