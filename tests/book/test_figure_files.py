"""The pictures of a page become files, once each, loaded when a reader comes near."""

import base64
import io
import re
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from PIL import Image
from small_book import Book

from website.syntax.cells.figures import slim, write_figures


def data(colour, size=40):
    buffer = io.BytesIO()
    Image.effect_noise((size, size), 90 + colour).save(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


LIGHT, DARK, THIRD = data(1), data(2), data(3)
SMALL = "data:image/png;base64,iVBORw0KGgo="
FIGURES = f"""```{{raw}} html
<figure><img alt="one" class="only-light" width="20" height="20" src="{LIGHT}"><img alt="one"
class="only-dark" width="20" height="20" src="{DARK}"><figcaption>One.</figcaption></figure>
```

```{{raw}} html
<figure><img alt="two" width="20" height="20" src="{THIRD}"></figure>
<figure><i style="background-image:url({SMALL})"></i><i
style="background-image:url({LIGHT})"></i></figure>
```
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("figures"), extensions=("website.syntax.cells.figures",))
    book.page("index", f"```{{toctree}}\npart/two\n```\n\n{FIGURES}")
    book.page("part/two", FIGURES)
    return book.build()


def files(book):
    return sorted((book.folder / "out" / "_images").iterdir())


def test_each_picture_is_one_file_whatever_the_number_of_pages_that_show_it(book):
    assert book.warnings == ""
    contents = {base64.b64encode(path.read_bytes()).decode() for path in files(book)}
    assert contents == {picture.split(",")[1] for picture in (LIGHT, DARK, THIRD)}


@pytest.mark.parametrize("name", ["index", "part/two"])
def test_every_address_leads_to_its_file_and_all_are_lazy(book, name):
    page, images = book.folder / "out" / f"{name}.html", book.html(name).select("img")
    found = {(page.parent / image["src"]).resolve() for image in images}
    assert found == {path.resolve() for path in files(book)}
    layers = [layer["style"] for layer in book.html(name).select("figure i")]
    assert SMALL in layers[0]  # not worth a request
    assert "_images/" in layers[1]
    assert [image.get("loading") for image in images] == ["lazy"] * 3
    for image in images:
        assert (image["width"], image["height"], image["decoding"]) == ("20", "20", "async")


def test_building_again_from_the_same_trees_gives_the_same_page(book):
    before = (book.folder / "out" / "index.html").read_text("utf8")
    (book.folder / "out" / "index.html").unlink()
    assert book.build().folder.joinpath("out", "index.html").read_text("utf8") == before


def test_a_large_picture_becomes_smaller_and_loses_nothing():
    for mode in ("RGB", "RGBA", "P"):
        drawn = Image.effect_noise((300, 300), 90).convert(mode)
        buffer = io.BytesIO()
        drawn.save(buffer, format="png")
        address = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        page = new_document("page")
        page += nodes.raw("", f'<figure><img src="{address}"></figure>', format="html")
        slim(None, page)
        [smaller] = re.findall('<img src="data:image/webp;base64,(.+?)">', page.astext())
        kept = Image.open(io.BytesIO(base64.b64decode(smaller))).convert("RGBA")
        assert kept.tobytes() == drawn.convert("RGBA").tobytes()
        assert len(smaller) < len(address)


def test_the_axes_alone_stay_where_a_prediction_hides_the_figure(tmp_path):
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    axes = f'<div class="figure-axes" hidden><img src="{THIRD}"></div>'
    page = new_document("page")
    for classes in (["ask-output"], []):
        box = nodes.container(classes=classes)
        page += box
        figure = f'<figure><img src="{LIGHT}">{axes}</figure>'
        box += nodes.raw("", figure, format="html")
    write_figures(app, page, "part/two")
    asked, free = (one.astext() for one in page.children)
    assert [one.count("<img") for one in (asked, free)] == [2, 1]
    assert "figure-axes" in asked
    assert "figure-axes" not in free
