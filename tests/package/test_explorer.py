"""The explorer: exact data, and a figure that works in three kinds of page.

L = 3, B = 2, h = 4, a grid of 3 x 4 patches and one class token: no two sizes alike.
"""

import base64
import html
import math
import re
import zlib

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from vitbook.explorer import AttentionExplorer, attention_explorer, pack
from vitbook.explorer.pack import pooled, quantise
from vitbook.inspection import attention_maps, attention_rollout

L, B, H, GRID, N = 3, 2, 4, (3, 4), 13


def random_maps(*shape):
    generator = torch.Generator().manual_seed(0)
    return (2 * torch.randn(*(shape or (L, B, H, N, N)), generator=generator)).softmax(dim=-1)


def images(*shape):
    return torch.rand(*(shape or (B, 1, 9, 16)), generator=torch.Generator().manual_seed(1))


MAPS = random_maps()


def explorer(**options) -> AttentionExplorer:
    return attention_explorer(images(), MAPS, GRID, labels=["a three", "an eight"], **options)


# --- the data ----------------------------------------------------------------------------------


def unpacked(data):
    """The pixels, and for prefix tokens and blocks of patches (codes, peaks), as pack.py says."""
    text = base64.b64decode(data["packed"])
    text, at = zlib.decompress(text) if data["deflated"] else text, 0

    def take(dtype, *shape):
        nonlocal at
        start, at = at, at + math.prod(shape) * np.dtype(dtype).itemsize
        return np.frombuffer(text[start:at], dtype).reshape(shape)

    count, (rows, columns), pool = len(data["labels"]), data["grid"], data["pool"]
    blocks = -(-rows // pool) * -(-columns // pool)
    pixels = take(np.uint8, count, *data["size"], data["channels"])
    take(np.uint8, count if data["marks"] else 0, rows * columns)
    maps = count, data["layers"], data["heads"] + (pool > 1)
    parts = []
    for queries, keys in [(data["prefix"], rows * columns), (blocks, blocks)]:
        peaks = take("<f4", *maps, queries, 1)
        parts.append((take(np.uint8, *maps, queries, data["prefix"] + keys), peaks))
    assert at == len(text)
    return pixels, *parts


def test_weights_are_exact_to_a_255th_of_their_rows_maximum_and_small_ones_to_more():
    data = explorer().data
    assert not data["deflated"], "any browser reads what is as small as that"
    _, first, rest = unpacked(data)
    codes, peaks = (np.concatenate(pair, axis=3) for pair in zip(first, rest, strict=True))
    weights = MAPS.transpose(0, 1).numpy()
    error = np.abs((codes / 255) ** 2 * peaks - weights)
    assert (error <= peaks / 255).all()
    assert (error <= np.sqrt(weights * peaks) / 255 + peaks / 510**2 + 1e-7).all()
    assert error.max() > 0, "nothing was rounded, so the bound says nothing"


def test_rows_of_zeros_and_half_precision_are_packed():
    maps = MAPS.clone()
    maps[0, 1, 2, 3] = 0
    codes, peaks = quantise(maps.bfloat16())
    assert peaks[1, 0, 2, 3] == 0
    assert not codes[1, 0, 2, 3].any()
    assert codes.max() == 255


def test_pixels_are_handed_over_as_bytes():
    pixels = images()
    got = unpacked(explorer().data)[0]
    assert np.abs(got / 255 - pixels.permute(0, 2, 3, 1).numpy()).max() <= 0.5 / 255 + 1e-6
    assert np.array_equal(unpacked(explorer(invert=True).data)[0], 255 - got)


def test_what_does_not_fit_gets_fewer_levels_and_then_pooled_maps(monkeypatch):
    maps = random_maps(2, 1, 2, 26, 26)
    monkeypatch.setattr(pack, "PLAIN", 0)
    seen = []
    for limit in (3400, 2700, 1500):
        data = attention_explorer(images(1, 1, 5, 5), maps, 5, most=limit).data
        assert len(data["packed"]) <= limit
        seen.append((data["levels"], data["pool"]))
        (codes, peaks), (coarse, tops) = unpacked(data)[1:]
        row = (codes / 255) ** 2 * peaks  # the class token's stays whole
        assert np.abs(row[0, :, :2, 0] - maps[:, 0, :, 0].numpy()).max() < 0.004
        block = (coarse / data["levels"]) ** 2 * tops
        assert np.abs(block.sum(-1) - 1).max() < 1.5 / data["levels"] + 0.1
    (fine, whole), (rough, same), (_, blocks) = seen
    assert (whole, same) == (1, 1)
    assert 255 >= fine > rough >= 8
    assert blocks > 1
    assert any("blocks of 2" in note or "blocks of 3" in note for note in data["notes"])


def test_a_block_has_the_mean_row_of_its_patches_and_takes_the_sum_of_their_shares():
    maps = random_maps(2, 1, 3, 17, 17)  # 3 x 5 patches and two prefix tokens
    first, rest = pooled(maps, (3, 5), 2, pool=2)
    assert first.shape == (2, 1, 4, 2, 17)
    assert rest.shape == (2, 1, 4, 6, 8)
    queries = [2 + 5 * row + column for row in (0, 1) for column in (2, 3)]  # block (0, 1)
    keys = [2 + 5 * row + 4 for row in (0, 1)]  # block (0, 2): the last column is alone
    wanted = maps[:, :, :, queries][..., keys].sum(-1).mean(-1)
    torch.testing.assert_close(rest[:, :, :3, 1, 2 + 2], wanted)
    torch.testing.assert_close(rest.sum(-1), torch.ones(2, 1, 4, 6))
    torch.testing.assert_close(first[:, :, :3], maps[..., :2, :])
    torch.testing.assert_close(first[1, :, 3], attention_rollout(maps)[:, :2])


@pytest.mark.slow
def test_twelve_layers_and_heads_of_14_x_14_patches_fit_whole_into_a_file_of_3_mb(tmp_path):
    maps = (1.5 * torch.randn(12, 1, 12, 197, 197)).softmax(dim=-1)  # hard to compress
    figure = attention_explorer(images(1, 3, 224, 224), maps, 14, even=True)
    figure.save(tmp_path / "look.html")
    assert figure.data["pool"] == 1
    assert figure.data["levels"] >= 8
    assert (tmp_path / "look.html").stat().st_size < 3_000_000


@pytest.mark.parametrize(
    "pixels",
    [images(B, 9, 16), images() * 7 - 3, (images() * 255).byte(), images(B, 3, 9, 16)],
    ids=["no channel axis", "normalised", "uint8", "three channels"],
)
def test_images_of_every_kind_are_taken(pixels):
    data = attention_explorer(pixels, MAPS, GRID).data
    assert data["size"] == [9, 16]
    assert data["channels"] == (3 if pixels.ndim == 4 and pixels.shape[1] == 3 else 1)
    assert data["labels"] == ["image 1", "image 2"]


def test_the_same_input_gives_the_same_html_and_another_key_for_other_input():
    first, second = explorer()._repr_html_(), explorer()._repr_html_()
    assert first == second
    other = explorer(layer=0)._repr_html_()
    assert re.search('data-key="([^"]+)"', first)[1] != re.search('data-key="([^"]+)"', other)[1]


def test_labels_cannot_break_out_of_the_figure():
    evil = "</script><script>window.evil=1</script>"
    page = attention_explorer(images(), MAPS, GRID, labels=[evil, "b"])._repr_html_()
    assert evil not in page
    assert page.count("</script>") == 2


# --- in the browser ------------------------------------------------------------------------------

PAGE = (
    '<!doctype html><html lang="en"{attributes}><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Explorer</title>'
    "<style>body{{margin:0;background:#fff}} button,label,span{{color:red!important;"
    "text-transform:uppercase}}</style></head>"
    "<body><main><h1>A page</h1>{body}</main></body></html>"
)


@pytest.fixture
def tab(browser):
    """A page that fails the test on any script error, console error or request."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, has_touch=True)
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: problems.append(r.url) if r.url.startswith("http") else None)
    yield page
    context.close()
    assert not problems


def show(page, body, attributes="", **viewport):
    if viewport:
        page.set_viewport_size({"height": 900} | viewport)
    page.set_content(PAGE.format(body=body, attributes=attributes))


def figure(page):
    return page.locator(".vitbook-explorer .card")


SHADOW = "document.querySelector('.vitbook-explorer').shadowRoot"


def title(frame):
    return frame.locator(".title").first.inner_text()


def pressed(frame):
    return frame.locator(".thumb[aria-pressed=true]").get_attribute("aria-label")


def sentence(frame):
    return frame.locator(".sentence").inner_text().replace("\u202f", " ")


def spoken_shares(frame):
    found = re.findall(r"(<?)([\d.]+) %", sentence(frame))
    return [float(number) / (200 if less else 100) for less, number in found]  # "<0.1 %": 0.05 %


def close(got, wanted, peak):
    """Equal up to what a byte holds and to rounding: whole percent from 10 on, else tenths."""
    rounded = 0.005 if wanted >= 0.098 else 0.0005
    return abs(got - wanted) <= rounded + (wanted * peak) ** 0.5 / 255 + 1e-5


@pytest.mark.browser
@pytest.mark.parametrize("mode", ["page", "sandboxed frame", "innerHTML in a frame"])
def test_the_figure_starts_and_answers_in(mode, tab):
    source, frame = explorer()._repr_html_(), tab.frame_locator("iframe")
    if mode == "page":
        show(tab, source)
        frame = tab
    elif mode == "sandboxed frame":  # Colab's model
        inner = html.escape(PAGE.format(body=source, attributes=""))
        sandbox = 'title="output" sandbox="allow-scripts" width="900" height="800"'
        show(tab, f'<iframe {sandbox} srcdoc="{inner}"></iframe>')
    else:  # JupyterLab's model
        show(tab, '<iframe title="output" width="900" height="800" srcdoc="<p>x</p>"></iframe>')
        tab.frames[1].wait_for_selector("p")
        tab.frames[1].evaluate("source => { document.body.innerHTML = source }", source)
    assert title(frame) == "Where the class token looks"
    assert frame.locator(".patch").count() == 12
    before = sentence(frame)
    frame.get_by_role("radio", name="row 2, column 3").click()
    assert title(frame) == "Where row 2, column 3 looks"
    assert sentence(frame) != before
    assert frame.locator(".card").count() == 1, "it must start once, not twice"


@pytest.mark.browser
def test_what_is_said_is_what_the_maps_hold_for_heads_mean_and_rollout(tab):
    show(tab, explorer()._repr_html_())
    means, rollouts = MAPS.mean(dim=2), [attention_rollout(MAPS[: i + 1]) for i in range(L)]
    for image, layer, query in [(0, 0, 0), (1, 2, 7), (0, 1, 12)]:
        tab.locator(".images input").nth(image).check()
        tab.locator("fieldset").nth(1).locator("input").nth(layer).check()
        tab.locator(".token, .patch").nth(query).click()
        for head in range(H + 2):
            tab.locator("fieldset").nth(2).locator("input").nth(head).check()
            tab.mouse.move(0, 0)
            if head < H:
                row = MAPS[layer, image, head, query]
            else:
                row = means[layer, image, query] if head == H else rollouts[layer][image, query]
            others = row[1:].clone()
            if query:
                others[query - 1] = -1
            wanted = [others.max(), row[query], row[0]][: 3 if query else 2]
            got = spoken_shares(tab)
            assert len(got) == len(wanted)
            assert all(
                close(g, float(w), float(row.max())) for g, w in zip(got, wanted, strict=True)
            ), (got, wanted)
            p = int(others.argmax())
            assert f"on row {p // 4 + 1}, column {p % 4 + 1}" in sentence(tab)


@pytest.mark.browser
def test_the_strongest_patch_has_the_strongest_colour_and_the_scale_its_number(tab):
    show(tab, explorer(layer=1, head=2)._repr_html_())
    colours = tab.locator(".patch").evaluate_all("all => all.map(p => p.style.backgroundColor)")
    strongest = int(MAPS[1, 0, 2, 0, 1:].argmax())
    assert colours[strongest] == "rgb(224, 96, 11)"
    assert colours.count("rgb(224, 96, 11)") == 1
    peak = float(MAPS[1, 0, 2, 0, 1:].max())
    said = tab.locator(".scale").inner_text().split("\n")[-1].split("\u202f")[0]
    assert close(float(said) / 100, peak, peak)


LISTEN = "() => { window.seen = []; document.onkeydown = e => window.seen.push(e.key) }"


@pytest.mark.browser
def test_arrow_keys_walk_over_patches_and_the_live_region_speaks(tab):
    show(tab, explorer()._repr_html_())
    tab.evaluate(LISTEN)
    tab.keyboard.press("Tab")
    for key, place in [
        ("ArrowDown", "row 1, column 3"),
        ("ArrowLeft", "row 1, column 2"),
        ("ArrowDown", "row 2, column 2"),
        ("End", "row 3, column 4"),
        ("ArrowRight", "row 3, column 4"),
        ("ArrowDown", "row 3, column 4"),
        ("Home", "row 1, column 1"),
        ("ArrowUp", "the class token"),
        ("ArrowDown", "row 1, column 3"),
        ("Escape", "the class token"),
        ("ArrowDown", "row 1, column 3"),
    ]:
        tab.keyboard.press(key)
        assert title(tab) == f"Where {place} looks", key
    assert tab.evaluate("() => window.seen") == ["Tab"], "arrow keys do not reach the page"
    assert tab.evaluate(f"() => {SHADOW}.activeElement.ariaLabel") == "row 1, column 3"
    live = tab.locator("[aria-live=polite]")
    heard = f"{SHADOW}.querySelector('[aria-live]').textContent"
    tab.wait_for_function(f"() => {heard}.includes('row 1, column 3 looks')")
    assert sentence(tab) in live.inner_text().replace("\u202f", " ")
    assert "layer 3, mean of heads" in live.inner_text()


@pytest.mark.browser
def test_every_choice_can_be_made_and_seen_with_the_keyboard_alone(tab):
    show(tab, explorer()._repr_html_())
    tab.evaluate(LISTEN)
    stop = (
        f"() => {{ const a = {SHADOW}.activeElement, set = a.closest('fieldset');"
        "return a.ariaLabel || (set ? set.firstChild.textContent : a.tagName) }"
    )
    outlined = (
        f"() => {{ const r = {SHADOW}, a = r.activeElement;"
        "return [a, a.nextElementSibling, r.querySelector('.ring')].some("
        "e => e && getComputedStyle(e).outlineStyle === 'solid') }"
    )
    stops = []
    for _ in range(6):
        tab.keyboard.press("Tab")
        stops.append(tab.evaluate(stop))
        assert tab.evaluate(outlined), "what has the focus is seen"
    assert stops == ["class token", "Image", "Layer", "Head", "SUMMARY", "layer 3, mean of heads"]
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowRight")
    assert pressed(tab) == "layer 2, rollout"
    assert tab.locator("fieldset").nth(1).locator("input:checked + span").inner_text() == "2"
    assert tab.locator("fieldset").nth(2).locator("input:checked + span").inner_text() == "rollout"
    assert set(tab.evaluate("() => window.seen")) == {"Tab"}, "arrow keys do not reach the page"


@pytest.mark.browser
def test_a_step_of_the_query_writes_little(tab):
    show(tab, explorer()._repr_html_())
    tab.evaluate(
        "() => { window.seen = []; new MutationObserver(all => all.forEach(one => window.seen.push("
        f"one.target.className))).observe({SHADOW}, {{ attributes: true, subtree: true }}) }}"
    )
    tab.locator(".patch").nth(5).evaluate("patch => patch.click()")
    seen = tab.evaluate("() => window.seen")
    assert "board" not in seen, "the photograph, half a megabyte of text, is written again"
    assert sum("patch" in one for one in seen) <= 12 + 2  # a colour each, and the choice


@pytest.mark.browser
@pytest.mark.parametrize("seen", ["on paper", "on the screen"])
def test_the_table_is_painted_when_it_is_seen(tab, seen):
    ink = "canvas => canvas.getContext('2d').getImageData(0, 0, 4, 3).data.some(byte => byte > 0)"
    show(tab, f"<div style='height: 5000px'></div>{explorer()._repr_html_()}")
    canvas = tab.locator(".thumb canvas").first
    assert not canvas.evaluate(ink)
    assert tab.locator(".thumb[aria-pressed=true]").count() == 1  # known before it is seen
    if seen == "on paper":
        tab.emulate_media(media="print")
    else:
        tab.evaluate("() => scrollTo(0, 5000)")
    tab.wait_for_timeout(300)
    assert canvas.evaluate(ink)


@pytest.mark.browser
@pytest.mark.parametrize("comes", ["scrollTo(0, 0)", "dispatchEvent(new Event('beforeprint'))"])
def test_above_the_reader_it_grows_when_it_is_near_or_printed(tab, comes):
    show(tab, "<div style='height: 5000px'></div>")
    tab.evaluate(
        "html => { scrollTo(0, 4000); const all = document.createRange();"
        " document.body.prepend(all.createContextualFragment(html)); }",
        explorer()._repr_html_(),
    )
    tab.wait_for_timeout(300)
    started = "document.querySelector('.vitbook-explorer').shadowRoot !== null"
    assert not tab.evaluate(started)
    tab.evaluate(comes)
    tab.wait_for_function(started)


@pytest.mark.browser
def test_a_mouse_previews_a_click_keeps_and_a_finger_chooses(tab):
    show(tab, explorer()._repr_html_(), width=390)
    tab.locator(".patch").nth(5).hover()
    assert title(tab) == "Where row 2, column 2 looks"
    tab.mouse.move(1, 1)
    assert title(tab) == "Where the class token looks"
    tab.locator(".patch").nth(5).click()
    tab.mouse.move(1, 1)
    assert title(tab) == "Where row 2, column 2 looks"
    tab.locator(".patch").nth(10).tap()
    assert title(tab) == "Where row 3, column 3 looks"
    tab.get_by_role("button", name="layer 1, head 4").tap()
    assert pressed(tab) == "layer 1, head 4"
    sizes = tab.locator(".patch, .token, .bar label, .thumb, summary").evaluate_all(
        "all => all.map(e => Math.min(e.offsetWidth, e.offsetHeight))"
    )
    assert min(sizes) >= 44


THEMES = [  # the system's, what the page says, the paper of the figure
    ("light", "", "rgb(255, 255, 255)"),
    ("light", "document.documentElement.dataset.theme = 'dark'", "rgb(19, 26, 34)"),
    ("dark", "document.documentElement.dataset.theme = 'light'", "rgb(255, 255, 255)"),
    ("dark", "delete document.documentElement.dataset.theme", "rgb(19, 26, 34)"),
    ("dark", "document.body.dataset.jpThemeLight = 'true'", "rgb(255, 255, 255)"),
]


@pytest.mark.browser
def test_the_theme_of_the_page_wins_over_that_of_the_system_and_its_style_stays_outside(tab):
    show(tab, explorer()._repr_html_())
    assert tab.locator(".token").evaluate("e => getComputedStyle(e).textTransform") == "none"
    patches, colours = "all => all.map(p => p.style.backgroundColor)", {}
    for system, said, paper in THEMES:
        tab.emulate_media(color_scheme=system)
        tab.evaluate(f"() => {{ {said} }}")
        ground = figure(tab).evaluate("card => getComputedStyle(card).backgroundColor")
        assert ground == paper
        colours.setdefault(paper, tab.locator(".patch").evaluate_all(patches))
    light, dark = colours.values()
    assert light != dark, "cells keep the old theme"


@pytest.mark.browser
def test_heads_are_called_as_asked_and_one_layer_offers_neither_layers_nor_rollout(tab):
    one = attention_explorer(images(), MAPS[:1], GRID, names=range(4), head=0)
    assert "<th>head 0</th>" in one._repr_html_()
    show(tab, one._repr_html_())
    bars = [text.split() for text in tab.locator("fieldset").all_inner_texts()]
    assert [bar[0] for bar in bars] == ["Image", "Head"]
    assert bars[1][1:] == ["0", "1", "2", "3", "mean"]
    assert tab.locator(".thumb").count() == 5
    assert pressed(tab) == "layer 1, head 0"
    show(tab, attention_explorer(images(), MAPS[:1], GRID, head="rollout")._repr_html_())
    assert pressed(tab) == "layer 1, rollout"


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(tab, theme, width):
    marks = torch.zeros(B, 12, dtype=torch.bool)
    marks[:, 3] = True
    body = explorer(marks=marks)._repr_html_() + explorer(layer=0, query=4)._repr_html_()
    show(tab, body, f' data-theme="{theme}"', width=width)
    tab.locator("summary").first.click()
    results = Axe().run(tab)
    assert results.violations_count == 0, results.generate_report()
    # prove that axe looks into the shadow tree
    tab.evaluate(f"() => {SHADOW}.querySelector('.patch').removeAttribute('aria-label')")
    assert Axe().run(tab).violations_count > 0


@pytest.mark.browser
def test_two_figures_on_a_page_even_equal_ones_do_not_disturb_each_other(tab):
    body = explorer()._repr_html_()
    show(tab, body + body)
    first, second = (figure(tab).nth(i) for i in range(2))
    first.locator("fieldset").nth(2).locator("input").nth(0).check()
    first.locator(".patch").nth(2).click()
    tab.mouse.move(0, 0)
    assert title(first) == "Where row 1, column 3 looks"
    assert title(second) == "Where the class token looks"
    assert second.locator("fieldset").nth(2).locator("input").nth(4).is_checked()
    ids = tab.evaluate("() => [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.browser
def test_the_start_can_be_chosen_and_marks_are_framed(tab):
    marks = torch.zeros(B, 12, dtype=torch.bool)
    marks[0, 6] = marks[1, [1, 2]] = True
    source = explorer(layer=1, head="rollout", query=7, marks=marks, marks_label="the partner")
    show(tab, source._repr_html_())
    assert title(tab) == "Where row 2, column 3 looks"
    assert pressed(tab) == "layer 2, rollout"
    assert "the partner" in tab.locator(".stage").inner_text()
    for image in range(B):
        tab.locator(".images input").nth(image).check()
        marked = "all => all.map(p => p.classList.contains('marked'))"
        assert tab.locator(".patch").evaluate_all(marked) == marks[image].tolist()


@pytest.mark.browser
def test_the_strongest_three_are_named_and_none_where_all_is_on_itself(tab):
    maps = torch.zeros(1, 1, 1, 16, 16)
    maps[..., 0, [3, 7, 9, 12]] = torch.tensor([0.4, 0.3, 0.2, 0.1])
    maps[..., 1:, :] = torch.eye(16)[1:]
    made = attention_explorer(torch.rand(1, 3, 8, 8), maps, 4, num_prefix=0, query=0, even=True)
    assert "Where the patch in row 1, column 1 looks" in made._repr_html_()
    show(tab, made._repr_html_(), width=390)
    assert sentence(tab) == (
        "40 % on row 1, column 4 (6.4 even shares), then row 2, column 4 (4.8) and row 3, column 2 "
        "(3.2); <0.1 % on itself."
    )
    assert (
        tab.locator(".thumb").first.get_attribute("aria-description") == "most on row 1, column 4"
    )
    assert tab.locator(".values span").count() == 3
    tab.locator(".patch").nth(5).click()
    tab.mouse.move(0, 0)
    assert sentence(tab) == "<0.1 % on any other patch, 100 % on itself."


@pytest.mark.browser
def test_what_changed_is_spoken(tab):
    pixels = images(B, 3, 9, 16)
    show(tab, attention_explorer(pixels, MAPS, GRID, labels=["one", "two"])._repr_html_())

    def heard(words):
        found = f"{SHADOW}.querySelector('.live').textContent"
        tab.wait_for_function(f"words => {found}.startsWith(words)", arg=words)

    tab.locator(".images input").nth(1).check()
    heard("two: Where the class token looks")
    row = MAPS[-1, 1].mean(0)[0, 1:]
    over = int((13 * row > 1).sum())
    told = f"More than an even share: {over} of 12 patches."
    assert tab.locator(".live").inner_text().endswith(told)
    tab.get_by_label("map", exact=True).check()
    heard("Shown: map.")
    tab.get_by_label("6 even shares").check()
    heard("Strongest colour: 6 even shares.")


@pytest.mark.browser
@pytest.mark.parametrize("num_prefix", [0, 2])
def test_without_a_class_token_or_with_another_prefix_token(tab, num_prefix):
    n = 12 + num_prefix
    maps = random_maps(1, 1, 2, n, n)
    page = attention_explorer(images(1, 3, 9, 16), maps, GRID, num_prefix=num_prefix)._repr_html_()
    show(tab, page)
    assert tab.locator(".token").count() == num_prefix
    start = "row 2, column 3" if num_prefix == 0 else "the class token"
    assert title(tab) == f"Where {start} looks"
    legends = tab.locator("legend").all_inner_texts()
    assert legends == ["Head", "Show", "Strongest colour"], "one image and layer need no choice"
    assert Axe().run(tab).violations_count == 0


@pytest.mark.browser
def test_readers_without_javascript_find_the_strongest_patches_in_words(browser):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.set_content(PAGE.format(body=explorer()._repr_html_(), attributes=""))
        words = page.inner_text("main")
    row = MAPS[1, 0, 2, 0, 1:]
    row_of, column = divmod(int(row.argmax()), GRID[1])
    assert "needs JavaScript" in words
    assert f"{100 * row.max():.1f} % on row {row_of + 1}, column {column + 1}" in words


# --- a photograph, and a file ---------------------------------------------------------------------


def saved(folder, monkeypatch, pool=1, **options):
    """A file with compressed maps of 4 x 6 patches, and the maps."""
    maps = random_maps(2, 1, 6, 25, 25)
    monkeypatch.setattr(pack, "PLAIN", 0)
    if pool > 1:
        monkeypatch.setattr(pack, "WHOLE", 0)
        monkeypatch.setattr(pack, "MAX_TEXT", 7000)
    figure = attention_explorer(images(1, 3, 16, 24), maps, (4, 6), even=True, **options)
    assert (figure.data["deflated"], figure.data["pool"]) == (True, pool)
    figure.save(folder / "look.html")
    return (folder / "look.html").as_uri(), maps


@pytest.mark.browser
@pytest.mark.parametrize("pool", [1, 2])
def test_a_file_opens_from_a_disk_and_says_what_the_maps_hold(tab, tmp_path, monkeypatch, pool):
    address, maps = saved(tmp_path, monkeypatch, pool, warning="Random weights.")
    tab.goto(address)
    tab.locator(".card").wait_for()
    row = maps[1, 0].mean(0)[0]
    best = int(row[1:].argmax())
    assert f"on row {best // 6 + 1}, column {best % 6 + 1}" in sentence(tab)
    assert f"({25 * float(row[1 + best]):.1f} even shares)" in sentence(tab)
    tab.locator("fieldset").nth(1).locator("input").last.check()
    flow = attention_rollout(maps)[0, 0]
    assert close(spoken_shares(tab)[0], float(flow[1:].max()), float(flow.max()))
    tab.locator(".patch").nth(13).click()
    name = "row 3, column 2" if pool == 1 else "rows 3 to 4, columns 1 to 2"
    assert title(tab) == f"Where {name} looks"
    assert tab.locator(".warning").inner_text() == "Random weights."
    assert "Not audited." in tab.locator("main").inner_text()
    assert Axe().run(tab).violations_count == 0


@pytest.mark.browser
@pytest.mark.parametrize("broken", ["undefined", "class { constructor() { throw Error() } }"])
def test_a_browser_that_cannot_unpack_shows_the_still_and_says_so(
    tab, tmp_path, monkeypatch, broken
):
    address, _ = saved(tmp_path, monkeypatch)
    tab.add_init_script(f"window.DecompressionStream = {broken}")
    tab.goto(address)
    tab.get_by_text("This browser cannot unpack the maps").wait_for()
    assert tab.locator("img").evaluate("image => image.naturalWidth") > 400
    assert tab.locator(".card").count() == 0


class Small(torch.nn.Module):
    """One layer of attention over 2 x 3 patches and a class token."""

    num_prefix = 1

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(12, 2, batch_first=True)

    def forward(self, x):
        tokens = (
            x.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        )
        tokens = torch.cat([tokens.mean(1, keepdim=True), tokens], dim=1)
        return self.attention(tokens, tokens, tokens)[0][:, 0]


def test_a_model_and_a_photograph_make_the_same_figure_as_its_maps(tmp_path):
    model, pixels = Small(), (255 * images(1, 3, 4, 6)).byte()
    Image.fromarray(pixels[0].permute(1, 2, 0).numpy()).save(tmp_path / "photo.png")
    known = {"mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2), "size": (4, 6)}
    seen = attention_explorer(model, tmp_path / "photo.png", **known).data
    maps = attention_maps(model, (pixels / 255 - 0.5) / 0.2)
    assert seen["packed"] == attention_explorer(pixels, maps, (2, 3), even=True).data["packed"]
    assert "mean 0.5, 0.5, 0.5" in seen["notes"][-1]
    model.pretrained_cfg = {"mean": known["mean"], "std": known["std"], "input_size": (3, 4, 6)}
    assert attention_explorer(model, tmp_path / "photo.png").data == seen


# --- bad input ---------------------------------------------------------------------------------


def make(pixels=None, maps=MAPS, grid=GRID, **options):
    return attention_explorer(images() if pixels is None else pixels, maps, grid, **options)


def make_of(model, **options):
    return attention_explorer(model, images(1, 3, 4, 6), **options)


EVEN = torch.full((1, 1, 1, 5, 5), 1 / 5)
BAD_INPUT = [
    (lambda: make(images().numpy()), TypeError, "images must be a torch.Tensor"),
    (lambda: make(images()[0, 0]), ValueError, "images must have the axes"),
    (lambda: make(images(B, 2, 9, 16)), ValueError, "1 or 3 channels"),
    (lambda: make(images(3, 1, 9, 16)), ValueError, "as many as maps hold, 2"),
    (lambda: make(images() * float("nan")), ValueError, "images must be finite"),
    (lambda: make(images()[:0], MAPS[:, :0]), ValueError, "at least one"),
    (lambda: make(maps=MAPS[0]), ValueError, "maps must have the axes"),
    (lambda: make(maps=MAPS * 9), ValueError, "between 0 and 1"),
    (lambda: make(grid=3), ValueError, "N = 13"),
    (lambda: make(images(B, 1, 10, 16)), ValueError, "does not divide the image"),
    (lambda: make(num_prefix=2), ValueError, "num_prefix 2"),
    (lambda: make(labels=["one"]), ValueError, "labels must hold one text for each of 2"),
    (lambda: make(marks=torch.zeros(B, 12)), TypeError, "marks must be a boolean"),
    (lambda: make(marks=torch.zeros(B, N) > 0), ValueError, "marks must have the shape"),
    (lambda: make(layer=3), ValueError, "layer must be below 3"),
    (lambda: make(head=4), ValueError, "head must be below 4"),
    (lambda: make(head="max"), ValueError, '"mean" or "rollout"'),
    (lambda: make(query=13), ValueError, "query must be below N = 13"),
    (lambda: make(torch.rand(1, 3, 900, 900), EVEN, grid=2), ValueError, "do not fit into the 2.9"),
    (lambda: make(most=0), ValueError, "most must be at least 1, got 0"),
    (lambda: make(grid=None), TypeError, "with images and maps say grid"),
    (lambda: make_of(Small(), size=(4, 6)), ValueError, "mean and std of this model's images must"),
    (lambda: make(size=224), TypeError, "belong to a model"),
]
