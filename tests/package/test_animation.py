"""The wandering query: frames that are right, and a figure that can stand still."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

from vitbook.plotting.animation import TOP, animation_html
from vitbook.plotting.colormaps import ATTENTION

B, PANELS, F, ROWS, COLUMNS = 2, 3, 4, 2, 5
MAPS = torch.rand(B, PANELS, F, ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
IMAGES = torch.rand(B, 3, 8, 20, generator=torch.Generator().manual_seed(1))
QUERIES = [0, 3, 6, 9]
WORDS = {"names": ["one", "two", "<three>"], "alt": 'A "query".', "caption": "Over $N$ patches."}


def figure(**options) -> str:
    given = {"images": IMAGES, "maps": MAPS, "queries": QUERIES, **WORDS, **options}
    return animation_html(**given)


def layers(content: str, kind: str) -> list[np.ndarray]:
    found = re.findall(rf'<i class="{kind}" style="background-image:url\(([^)]+)\)', content)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(x.split(",")[1])))) for x in found]


def test_each_frame_holds_the_map_of_its_query_and_marks_the_query():
    films = layers(figure(), "film")
    per_row = 1 + 2 * PANELS  # the query on the image; a map and the query on each panel
    assert len(films) == B * per_row
    heat = films[per_row + 1 + 2].reshape(F, ROWS, COLUMNS, 3)  # image 1, panel 1
    top = MAPS[1, 1].amax(dim=(1, 2), keepdim=True)
    expected = ATTENTION((TOP * MAPS[1, 1] / top).numpy())[..., :3] * 255
    assert np.abs(heat - expected).max() <= 1
    marks = films[0].reshape(F, ROWS * COLUMNS, 4)[..., 3] > 0
    assert [row.nonzero()[0].tolist() for row in marks] == [[q] for q in QUERIES]


def test_words_are_escaped_and_nothing_is_loaded_from_elsewhere():
    content = figure()
    assert "<three>" not in content
    assert "&lt;three&gt;" in content
    assert 'aria-label="A &quot;query&quot;."' in content
    assert "<i>N</i>" in content
    assert "http" not in content
    assert "<script" not in content
    assert len(content) < 30_000


@pytest.fixture
def page(browser):
    with browser.new_context(reduced_motion="no-preference") as context:
        page = context.new_page()
        page.set_content(
            f'<html lang="en"><title>x</title><main><h1>x</h1>{figure(seconds=0.2)}</main>'
        )
        yield page


def place(page) -> str:
    return page.evaluate(
        "getComputedStyle(document.querySelectorAll('.film')[1]).backgroundPositionY"
    )


@pytest.mark.browser
def test_readers_who_want_less_motion_see_one_frame_and_are_told_so(page):
    assert not page.locator(".still").is_visible()
    page.emulate_media(reduced_motion="reduce")
    page.set_content(figure(still=1))
    assert place(page) == "33.3333%"
    page.wait_for_timeout(300)
    assert place(page) == "33.3333%"
    assert page.locator(".still").is_visible()
    assert not page.locator("label").is_visible()


BAD_INPUT = [
    (lambda: figure(maps=MAPS[0]), ValueError, "maps must have the axes"),
    (lambda: figure(images=IMAGES[:1]), ValueError, "images must be as many"),
    (lambda: figure(queries=[0, 1, 2, 10]), ValueError, "queries must name 4 patches"),
    (lambda: figure(still=4), ValueError, "still must be"),
    (lambda: figure(maps=MAPS - 1), ValueError, "must not be negative"),
    (lambda: figure(names=["one"]), ValueError, "names must hold 3 labels"),
]
