"""Live figures: what a page holds, what it loads and when, and that its numbers are Python's."""

import base64
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from small_book import ROOT, Book

from vitbook.data import matching_pairs
from vitbook.inspection import record_attention
from vitbook.models.vit import VisionTransformer
from website.live.pack import model, packed, script

LIVE = ROOT / "website" / "live"
PROBE = """vitbook.live.figure("probe", function (stage, data) {
  const { decodeAll, el, vit } = vitbook.live;
  globalThis.net = vit(data.model.settings, decodeAll(data.model.weights));
  const said = el("output", {}, "ready");
  stage.box.append(said);
  return { set(values) { said.textContent = JSON.stringify(values); } };
});
"""
FIGURE = """```{live} probe
:title: A probe
:scripts: vit
:data: cut
Try the handle. You should see **much**.
+++
The still says {math}`x`.
```
"""
SETS = "\nLook at {live}`head 3 <probe layer=1 head=3>`.\n"


class LiveBook(Book):
    """The book's own scripts, and one figure of the test's."""

    def __init__(self, folder):
        super().__init__(folder, ("website.syntax.live",))
        (folder / "static" / "live").mkdir(parents=True)
        (folder / "static" / "live" / "probe.js").write_text(PROBE, "utf8")
        self.settings = {"html_static_path": [str(folder / "static")]}
        self.page("index", "```{toctree}\npart/two\none\n```\n")
        self.page("one", "No figure.\n")

    def address(self, name="part/two"):
        return (self.folder / "out" / f"{name}.html").as_uri()


def write_page(folder, text=FIGURE + SETS):
    book = LiveBook(folder)
    book.page("part/two", "Words.\n\n" * 60 + text)
    return book.build()


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("live"))


def test_a_figure_has_its_words_and_its_still_and_names_its_scripts(book):
    assert book.warnings == ""
    figure = book.html("part/two").select_one("#live-probe")
    assert (figure["role"], figure["aria-labelledby"]) == ("group", "live-probe-title")
    assert figure.select_one("#live-probe-title").text == "A probe"
    assert figure.select_one(".live-words").text.strip() == "Try the handle. You should see much."
    assert figure.select_one(".live-still").text.strip().startswith("The still says")
    scripts = json.loads(figure["data-scripts"])
    plain = [re.sub(r"\?v=[0-9a-f]{8}$", "", one) for one in scripts]
    live = "../_static/live"
    assert plain == [f"{live}/vit.js", f"{live}/probe.js", f"{live}/data/cut.js"]
    assert all((book.folder / "out" / "part" / one).is_file() for one in plain)


def test_a_sentence_links_to_its_figure_and_says_how_to_set_it(book):
    link = book.html("part/two").select_one("a.live-set")
    assert (link["href"], link.text) == ("#live-probe", "head 3")
    assert json.loads(link["data-set"]) == {"layer": "1", "head": "3"}


def test_a_figure_whose_address_is_its_state_is_set_from_other_pages(tmp_path):
    book = write_page(tmp_path, "{live}`Lots <train experiment=lots>` and {live}`a <gone b=c>`.")
    link = book.html("part/two").find("a", string="Lots")
    assert link["href"] == "../train.html#train:experiment=lots"
    assert "data-set" not in link.attrs
    assert book.warnings.count("which this page does not have") == 1


def test_only_pages_with_a_figure_load_its_kit(book):
    for name, count in (("index", 0), ("one", 0), ("part/two", 1)):
        page = book.html(name)
        assert len(page.select("script[src*='live/kit.js'][defer]")) == count, name
        assert len(page.select("link[href*='live/live.css']")) == count, name


WRONG = {
    FIGURE.replace(":title: A probe\n", ""): "has no :title:",
    FIGURE.replace("+++\n", ""): "has no still below a line +++",
    FIGURE.replace("Try the handle. You should see **much**.\n", ""): "what to try",
    FIGURE.replace("{live} probe", "{live} Probe"): "is not lower-case words",
    FIGURE.replace("{live} probe", "{live} gone"): "has no script live/gone.js",
    FIGURE.replace(":data: cut", ":data: gone"): "no website.live.gone",
    FIGURE.replace(":data: cut", ":still: beside"): "a still of its own, or :still: above",
    FIGURE.replace(":data: cut", ":still: above"): "above the live figure probe stands no cell",
    FIGURE.replace(":data: cut", ":asks: What?"): "'What?' is not lower-case words",
    FIGURE + "\n" + FIGURE: "stands twice",
    SETS.replace("<probe", "<absent"): "which this page does not have",
    "\n{live}`head 3 <probe>`\n": "a setting is written",
}


def test_what_is_written_wrongly_is_a_warning(tmp_path):
    warnings = write_page(tmp_path, "\n".join(WRONG)).warnings
    assert [words for words in WRONG.values() if words not in warnings] == []


def test_numbers_that_half_precision_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="finite in half precision"):
        packed([1.0, 1e6])


# --- in the browser ---


@pytest.fixture
def open_page(browser, book):
    """open_page(**context): the page at its figure, from a file."""
    contexts = []

    def opened(address=None, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(address or book.address(), wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()


def started(page):
    page.locator("#live-probe").scroll_into_view_if_needed()
    page.locator("#live-probe.live-running").wait_for()
    return page


DATA = "() => document.querySelectorAll('script[src*=\"live/data\"]').length"


@pytest.mark.browser
def test_a_figure_loads_nothing_before_it_comes_near_or_a_sentence_sets_it(open_page):
    page = open_page(viewport={"width": 800, "height": 600})
    page.wait_for_timeout(300)
    assert page.evaluate(DATA) == 0
    assert page.locator(".live-still").count() == 1
    started(page)
    assert page.evaluate(DATA) == 1
    assert page.locator("#live-probe output").inner_text() == "ready"
    assert not page.locator(".live-still").is_visible()
    page.reload(wait_until="load")
    page.locator("a.live-set").focus()
    page.keyboard.press("Enter")
    page.locator("#live-probe output", has_text='{"layer":"1","head":"3"}').wait_for()
    assert page.errors == []


# a file; what it is changed into, or None: it is gone; what is told
DAMAGED = {
    "no data": ("data/cut.js", None, "the file cut.js is missing"),
    "data cut off": ("data/cut.js", lambda text: text[: len(text) // 2], "its data are damaged"),
    "one letter": ("data/cut.js", lambda text: text.replace("AA", "AB", 1), "its data are damaged"),
    "no figure": ("probe.js", None, "the file probe.js is missing"),
    "half a figure": ("probe.js", lambda text: text[:60], "its script is damaged"),
}


@pytest.mark.browser
def test_a_missing_or_damaged_file_is_told_in_place_and_the_still_stays(open_page, book, tmp_path):
    html = Path(shutil.copytree(book.folder / "out", tmp_path / "out"))
    page = open_page((html / "part/two.html").as_uri())
    for name, change, words in DAMAGED.values():
        file = html / "_static/live" / name
        text = file.read_text("utf8")
        file.write_text(change(text), "utf8") if change else file.unlink()
        page.reload(wait_until="load")
        page.locator("#live-probe").scroll_into_view_if_needed()
        page.locator(".live-failed").wait_for()
        file.write_text(text, "utf8")
        assert words in page.locator(".live-failed").inner_text()
        assert page.locator(".live-still").is_visible()


# arrays as the bytes of 32-bit numbers: as JSON the maps take twenty times as long
PACK = """(arrays) => {
    const bytes = new Uint8Array(4 * arrays.reduce((sum, one) => sum + one.length, 0));
    const all = new Float32Array(bytes.buffer);
    arrays.reduce((at, one) => { all.set(one, at); return at + one.length; }, 0);
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192)
        text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
}"""
SAY = f"""([images, asked]) => {{
    const said = images.map((image, i) => {{
        const cut = Object.entries(asked).map(([name, all]) => [name, all[i]]);
        return net.forward(Float32Array.from(image), Object.fromEntries(cut));
    }});
    const {{ heads, N }} = net, L = said[0].after.length, pack = {PACK};
    const flat = (name) => pack(said.flatMap((one) => one[name]));
    return [[L, heads, N], pack(said.map((one) => one.logits)), flat("maps"), flat("after")];
}}"""


def unpacked(text, *shape, dtype=torch.float32):
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).view(shape)


def in_page(page, images, **asked):
    """By the page's script: logits (n, classes), maps (n, L, h, N, N), logits after each layer."""
    (L, h, N), logits, maps, after = page.evaluate(SAY, [images.flatten(1).tolist(), asked])
    n = len(images)
    return unpacked(logits, n, -1), unpacked(maps, n, L, h, N, N), unpacked(after, n, L, -1)


def recorded():
    from vitbook.book.records import load_record

    record = load_record("matching_pairs")
    net = VisionTransformer(**record.settings["model"])
    net.load_state_dict({k: v.half().float() for k, v in record.weights("attention").items()})
    return net.eval()


@torch.no_grad()
def in_python(net, images, arrows=None, heads=None):
    """The same by the package, an image at a time: masks differ from image to image and layer to
    layer. ``arrows`` (n, L, h, N, N) and ``heads`` (n, L, h) say what is cut."""
    L = len(net.encoder.blocks)
    all_maps, logits, after = [], [], []
    for i, image in enumerate(images):
        x, maps, read = net.embed(image[None]), [], []
        for layer, block in enumerate(net.encoder.blocks):
            mask = None if arrows is None else ~arrows[i, layer].bool()[None]
            h = block.attn.num_heads
            gone = torch.zeros(h) if heads is None else heads[i, layer].float()
            weights = block.attn.attention_weights(block.norm1(x), mask)
            _, _, v = block.attn.project(block.norm1(x))
            out = (weights @ v) * (1 - gone)[None, :, None, None]
            x = x + block.attn.proj(out.transpose(1, 2).flatten(2))
            x = x + block.mlp(block.norm2(x))
            maps.append(weights[0] * (1 - gone)[:, None, None])
            read.append(net.forward_head(net.encoder.norm(x))[0])
        all_maps.append(torch.stack(maps))
        after.append(torch.stack(read))
        logits.append(read[-1])
    assert len(all_maps[0]) == L
    return torch.stack(logits), torch.stack(all_maps), torch.stack(after)


def agree(one, other):
    for mine, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.browser
@torch.no_grad()
def test_the_pages_script_computes_what_the_package_computes(open_page):
    """Also when arrows or heads are cut, or patches are not there."""
    page, net = started(open_page()), recorded()
    images = matching_pairs(60, seed=7).images
    with record_attention(net) as maps:
        logits = net(images)
    stacked = torch.stack(list(maps.values()), dim=1)  # (n, L, h, N, N)
    agree(in_page(page, images)[:2], (logits, stacked))

    random = torch.Generator().manual_seed(0)
    images = matching_pairs(50, seed=8).images
    for what, shape in {"arrows": (50, 2, 4, 16, 16), "heads": (50, 2, 4)}.items():
        cut = torch.rand(shape, generator=random) < 0.3
        if what == "arrows":
            cut[0, 0, 0, 5] = True  # a query that may look at nothing takes nothing
        asked = {what: cut.flatten(1).int().tolist()}
        agree(in_page(page, images, **asked), in_python(net, images, **{what: cut}))

    gone = torch.rand(50, 16, generator=random) < 0.4
    found, *_ = in_page(page, images, dropped=gone.int().tolist())
    kept = [x[None, ~one] for x, one in zip(net.embed(images), gone, strict=True)]
    agree([found], [torch.cat([net.forward_head(net.encoder(x)) for x in kept])])


SHAPES = {
    "image_size": (12, 20),
    "patch_size": 4,
    "in_channels": 3,
    "num_classes": 7,
    "embed_dim": 24,
    "depth": 3,
    "num_heads": 3,
    "mlp_ratio": 1.5,
    "position_std": 0.5,
}


@pytest.mark.browser
def test_class_token_learned_positions_and_colours_are_known_too(open_page):
    page = started(open_page())
    torch.manual_seed(0)
    net = VisionTransformer(**SHAPES).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_((parameter + 0.1 * torch.randn_like(parameter)).half())
    page.evaluate(
        script("other", {"model": model(SHAPES, net.state_dict())}).replace(
            "vitbook.live.data", "globalThis.keep = (name, value) => value; globalThis.other = keep"
        )
    )
    page.evaluate(
        "net = vitbook.live.vit(other.model.settings, vitbook.live.decodeAll(other.model.weights))"
    )
    images = torch.rand(50, 3, 12, 20, generator=torch.Generator().manual_seed(1))
    found = in_page(page, images)
    agree(found, in_python(net, images))
    without = torch.zeros(50, 1).tolist()
    logits, _, _ = in_page(page, images, positions=[False] * len(without))
    with torch.no_grad():
        net.positions.table.zero_()
        agree([logits], [net(images)])


@pytest.mark.browser
def test_halves_and_bytes_come_out_as_they_went_in(open_page):
    page = started(open_page())
    values = np.arange(65536, dtype="<u2").view("<f2")
    values = values[np.isfinite(values)]
    found = page.evaluate("one => [...vitbook.live.decode(one)]", packed(values))
    assert np.array_equal(np.array(found), values.astype(float))
    levels = np.arange(256, dtype=np.uint8)
    decode = "one => [...vitbook.live.decode(one)]"
    assert page.evaluate(decode, packed(levels, "u8")) == levels.tolist()
    wide = np.array([1e-7, -3.4e38, 1 / 3], dtype=np.float32)
    assert page.evaluate(decode, packed(wide, "f32")) == wide.astype(float).tolist()
