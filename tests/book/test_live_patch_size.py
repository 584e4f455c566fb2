"""The slider of patch sizes: its counts are the package's, and hands of every kind can move it."""

import itertools
import json

import pytest
import torch

from vitbook.models.cost import count_multiplies
from vitbook.models.vit import VIT_VARIANTS, VisionTransformer
from website.live.patch_size import SIDES, data

PAGE = """```{live} patch-size
:title: The patch size
:data: patch-size
Drag it. You should see more tokens.
+++
A still.
```

At {live}`1,024 pixels <patch-size side=1024 kept=16 p=8>`.
"""


def divisors(side):
    return [p for p in range(1, side + 1) if side % p == 0]


@pytest.mark.browser
def test_what_it_counts_are_the_multiplications_that_the_package_counts(page):
    """Of every published width; the depth is a factor, so two blocks are enough."""
    settings = [
        {"side": side, "p": p, "D": one["embed_dim"], "L": 2}
        for one, side in itertools.product(VIT_VARIANTS.values(), SIDES)
        for p in divisors(side)
        if side // p <= 16
    ]
    assert len(settings) >= 50
    found = page.evaluate("(all) => all.map(vitbook.live.patchCost)", settings)
    for one, said in zip(settings, found, strict=True):
        with torch.device("meta"):
            sizes = {"image_size": one["side"], "patch_size": one["p"], "in_channels": 3}
            blocks = {"embed_dim": one["D"], "depth": one["L"], "num_heads": one["D"] // 64}
            net = VisionTransformer(**sizes, **blocks, num_classes=1, pool="mean")
            head = one["D"]  # the classifier's, with one class
            images = torch.empty(1, 3, one["side"], one["side"])
            assert said["all"] + head == count_multiplies(net, images), one
        assert said["all"] == said["embedding"] + said["token"] + said["pairs"]
        assert said["N"] == (one["side"] // one["p"]) ** 2


@pytest.mark.browser
def test_arrow_keys_walk_over_the_sizes_that_divide_the_image(page):
    handle = page.get_by_role("slider")
    handle.focus()
    seen = []
    for _ in range(3):
        seen.append(handle.get_attribute("aria-valuetext"))
        page.keyboard.press("ArrowLeft")
    assert seen == ["16 pixels, 196 tokens", "14 pixels, 256 tokens", "8 pixels, 784 tokens"]
    handle.press("ArrowRight")
    handle.press("ArrowRight")  # 14 divides 224 and not 1,024: the next takes its place
    page.get_by_role("combobox").nth(1).select_option("1024 × 1024")
    assert "P = 8: 128 · 128 = 16,384 tokens" in page.locator(".ps-read").inner_text()
    page.get_by_role("combobox").nth(1).select_option("224 × 224")
    handle.press("End")
    assert "P = 224: 1 · 1 = 1 token of" in page.locator(".ps-read").inner_text()
    page.locator(".live-said", has_text="0.005 times the tokens").wait_for(state="attached")


@pytest.mark.browser
def test_a_sentence_sets_it_and_the_comparison_follows(page):
    page.locator("a.live-set").click()
    ratio = page.locator(".ps-ratio", has_text="4.00 times the tokens")
    assert ratio.inner_text().endswith("16 times a head’s map")
    assert "78" in page.locator(".ps-line").first.inner_text()  # percent for pairs of tokens
    assert page.get_by_role("combobox").nth(1).input_value() == "1024 × 1024"
    page.get_by_role("button", name="Compare with this one").click()
    page.locator(".ps-ratio", has_text="1.00 times the multiplications").wait_for()
    page.locator(".live-said", has_text="compared with").wait_for(state="attached")


def test_the_photograph_is_small_and_every_published_size_is_there():
    made = data()
    assert len(json.dumps(made)) < 60_000
    assert made["models"]["ViT-B"] == [768, 12]
    assert len(made["models"]) == len(VIT_VARIANTS)
