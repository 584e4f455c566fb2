"""The drawing as a strip without words, 600 x 64: where a chapter is."""

from .places import Place
from .shapes import path, rect


def strip(place: Place) -> str:
    """SVG for the head of a chapter; its words stand beside it in the page."""

    def part(name: str, inside: str) -> str:
        here = " here" if name in place.parts else ""
        return f'<g class="p-part p-{name}{here}">{inside}</g>'

    grid = "".join(rect(2 + 15 * (i % 3), 10 + 15 * (i // 3), 13, 13, "p-box", 1) for i in range(9))
    rows = "".join(rect(110, 19 + 9 * i, 34, 6, "p-box", 1) for i in range(4))
    places = "".join(rect(150, 10 + 9 * i, 14, 6, "p-box", 1) for i in range(5))
    norms = rect(228, 32, 20, 26, "p-box", 3) + rect(384, 32, 20, 26, "p-box", 3)
    wires = "M51 32h10M92 32h12M238 16v14M248 45h10M330 45h20v-20M394 16v14M404 45h10M468 45h20v-20"
    return (
        '<svg class="vit-strip-drawing" viewBox="0 0 600 64" aria-hidden="true">'
        + rect(196, 2, 316, 60, "p-block", 7)
        + path(wires, "p-wire")
        + path("M172 16H546", "p-stream")
        + part("image", grid)
        + part("linear", '<path class="p-box" d="M66 14l24 9v18l-24 9z"/>')
        + part("token", rect(110, 10, 34, 6, "p-box", 1))
        + f'<g class="p-part p-rows">{rows}</g>'
        + part("positions", places)
        + part("norm", norms)
        + part("attention", rect(260, 28, 70, 32, "p-box", 4))
        + part("mlp", rect(416, 28, 52, 32, "p-box", 4))
        + "".join(f'<circle class="p-plus" cx="{x}" cy="16" r="6"/>' for x in (350, 488))
        + part(
            "head",
            '<path class="p-box" d="M554 4l22 8v10l-22 8z"/>' + rect(582, 12, 16, 10, "p-box", 1),
        )
        + "</svg>"
    )
