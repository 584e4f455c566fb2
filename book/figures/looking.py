"""Figures of the chapter `looking`, and the models and photographs that it looks at.

``cat.jpg`` is *Chelsea*, by Stefan van der Walt, without restrictions (CC0): the middle square of
scikit-image's ``chelsea.png``, 216 pixels wide. The other two photographs come with scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import Tensor, nn

from vitbook.book.intervals import Interval, student_interval
from vitbook.book.records import Record, load_record
from vitbook.data import MatchingPairs
from vitbook.inspection import attention_maps, attention_rollout, mean_attention_distance
from vitbook.inspection.occlusion import gradient_drop, occlusion
from vitbook.models.vit import VisionTransformer
from vitbook.plotting import ATTENTION, COLORS, INK
from vitbook.training import evaluate

CAT = Path(__file__).with_name("cat.jpg")
LEFT = {"cat": 0, "flower": 100, "temple": 0}  # where the square of each photograph begins
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ARMS = {
    "one_head": {"depth": 1, "heads": 1},
    "four_heads": {"depth": 1, "heads": 4},
    "deep": {"depth": 3, "heads": 4},
}
RANKINGS = {
    "chance": "random numbers",
    "map": "attention, last layer",
    "added": "weight times value",
    "rollout": "rollout",
    "gradient": "gradient",
    "other_paint": "a second occlusion",
}
GRID = (12, 12)
FIVE = 5
NONE_BY_CHANCE = comb(144 - FIVE, FIVE) / comb(144, FIVE)  # two fives of 144 patches
TOP, DARK = 6, 0.62  # even shares, how dark; more is drawn as this, and the photograph stays seen
MOVES: Colormap = LinearSegmentedColormap.from_list("moves", ["white", COLORS["green"]])


def photographs() -> tuple[Tensor, Tensor]:
    """The squares of LEFT: sharp (3, 3, 216, 216), and 36 pixels wide, as the models see them."""
    files = {"flower": "flower.jpg", "temple": "china.jpg"}
    sizes: dict[int, list[Tensor]] = {216: [], 36: []}
    for name, left in LEFT.items():
        whole = load_sample_image(files[name]) if name in files else np.array(Image.open(CAT))
        pixels = torch.tensor(whole).permute(2, 0, 1)[None] / 255
        square = pixels[..., left : left + pixels.shape[2]]
        for side, found in sizes.items():
            found.append(F.interpolate(square, size=side, mode="area"))
    return torch.cat(sizes[216]), torch.cat(sizes[36])


def cifar_model(arm: str) -> VisionTransformer:
    """A model of ARMS from the record ``cifar_maps``, seed 0."""
    record = load_record("cifar_maps")
    depth, heads = ARMS[arm].values()
    vit = VisionTransformer(**record.settings["model"], depth=depth, num_heads=heads)
    vit.load_state_dict(record.weights(arm))
    return vit.eval()


def in_torchvision(vit: VisionTransformer) -> nn.Module:
    """The deep model of ARMS in torchvision's own class, with the same weights."""
    theirs = torchvision.models.VisionTransformer(
        image_size=36,
        patch_size=3,
        num_layers=3,
        num_heads=4,
        hidden_dim=48,
        mlp_dim=96,
        num_classes=10,
    )
    both = zip(theirs.state_dict().items(), vit.state_dict().values(), strict=True)
    theirs.load_state_dict({name: ours.view_as(old) for (name, old), ours in both})
    return theirs.eval()


def in_shares(values: Tensor) -> Tensor:
    """Without signs (B, 12, 12) or (B, 144) -> (B, 144), scaled so that 1 is an even share."""
    values = values.detach().flatten(1).abs()
    return values.shape[1] * values / values.sum(1, keepdim=True)


def lifted(pixels: Tensor) -> np.ndarray:
    """A photograph (3, H, W) in the lightest third of grey, so that a map can be seen over it."""
    grey = pixels.mean(0)
    low, high = grey.min(), grey.max()
    return (0.66 + 0.34 * (grey - low) / (high - low)).numpy()


def draw_map(ax: Axes, pixels: Tensor, shares: Tensor, colours: Colormap = ATTENTION) -> None:
    """Even shares (144,), multiplied over a photograph (3, H, W)."""
    ground = lifted(pixels)
    heat = colours(DARK * np.clip(shares.view(GRID).numpy() / TOP, 0, 1))[..., :3]
    side = len(ground) // GRID[0]
    heat = heat.repeat(side, 0).repeat(side, 1)
    ax.imshow(heat * ground[..., None], extent=(-0.5, 11.5, 11.5, -0.5))
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def draw_frames(ax: Axes, patches: Tensor, color: str, line: str = "-") -> None:
    for patch in patches.tolist():
        corner = (patch % 12 - 0.45, patch // 12 - 0.45)
        ax.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, ec=color, lw=2.2, ls=line))


def two_pictures(pixels: Tensor, shares: Tensor, moves: Tensor, answer: str) -> Figure:
    """What the map says and what the answer loses: even shares (144,) over one photograph.

    Solid frames: the five largest; dashed: those of the other picture.
    """
    fig, axes = plt.subplots(1, 2, figsize=(6.6, 3.6))
    inks, five = (
        (COLORS["vermillion"], COLORS["green"]),
        [one.topk(FIVE).indices for one in (shares, moves)],
    )
    titles = ("The map, last layer", f"The answer, “{answer}”")
    for at, (ax, values) in enumerate(zip(axes, (shares, moves), strict=True)):
        draw_map(ax, pixels, values, (ATTENTION, MOVES)[at])
        draw_frames(ax, five[1 - at], inks[1 - at], ":")
        draw_frames(ax, five[at], inks[at])
        ax.set_title(titles[at], loc="left", fontsize=11, color=inks[at])
    return fig


def five_ways(vit: VisionTransformer, x: Tensor, maps: Tensor, drops: Tensor) -> dict[str, Tensor]:
    """Rankings of the patches of the first image, in even shares (144,): of the class token the
    last row and the rollout, a floor that knows nothing of places, and what the model says."""
    row = maps[-1].mean(1)[:, 0, 1:]
    shuffled = row[:, torch.randperm(144, generator=torch.Generator().manual_seed(0))]
    ways = {
        "attention, last layer": row,
        "rollout": attention_rollout(maps)[:, 0, 1:],
        "floor: keys shuffled": shuffled,
        "occlusion": drops,
        "gradient": gradient_drop(vit, x, 3),
    }
    return {way: in_shares(values)[0] for way, values in ways.items()}


def maps_beside(pixels: Tensor, maps: Mapping[str, Tensor]) -> tuple[Figure, int, str]:
    """Some maps (144,) over one photograph, on one scale; framed in all is the patch that occlusion
    puts first. Also that patch, and what it has in each map, in words."""
    framed = int(maps["occlusion"].argmax())
    has = ", ".join(f"{way} {values[framed]:.1f}" for way, values in maps.items())
    fig, axes = plt.subplots(2, 3, figsize=(6.0, 4.5))
    for ax, (name, shares) in zip(axes.flat, maps.items(), strict=False):
        draw_map(ax, pixels, shares)
        draw_frames(ax, torch.tensor([framed]), "black")
        ax.set_title(name, loc="center", fontsize=11)
    scale = axes.flat[len(maps)]
    bar = ATTENTION(DARK * np.linspace(0, 1, 256))[None, :, :3]
    scale.imshow(bar, aspect="auto", extent=(0, TOP, 0, 1))
    scale.set(box_aspect=0.12, yticks=[], xlabel="even shares")
    scale.set_xticks([0, 1, 2, 4, 6], ["0", "1", "2", "4", "6+"], fontsize=11)
    scale.spines[:].set_visible(False)
    for ax in axes.flat[len(maps) + 1 :]:
        ax.set_visible(False)
    return fig, framed, has


def far_of_two() -> tuple[float, float]:
    """Mean attention distance of even attention, and of a head that takes from its 3 x 3 neighbours
    alone, in pixels."""
    even = torch.full((145, 145), 1 / 145)
    place = torch.stack([torch.arange(144) // 12, torch.arange(144) % 12], dim=1)
    near = ((place[:, None] - place).abs().amax(-1) <= 1).float()
    near = F.pad(near / near.sum(-1, keepdim=True), (1, 0, 1, 0))  # and a class token
    far = (mean_attention_distance(one[None, None, None], GRID, 3) for one in (even, near))
    far_even, far_near = (one.item() for one in far)
    return far_even, far_near


def distances(record: Record, lines: Mapping[str, float]) -> tuple[Figure, str]:
    """Mean attention distance of each head before and after training, and what it is, in words.

    Args:
        lines: Words -> a distance in pixels to compare with.
    """
    fig, ax = plt.subplots(figsize=(6.0, 3.5))
    names: list[str] = []
    told = []
    for arm, condition in ARMS.items():
        after, before = (
            record.values(key, **condition).mean(0) for key in ("distance", "distance_untrained")
        )
        for layer, (now, old) in enumerate(zip(after, before, strict=True)):  # (h,) each
            at = len(names)
            ax.plot([at - 0.13] * len(old), old, "o", mfc="white", mec=COLORS["blue"], ms=7)
            ax.plot([at + 0.13] * len(now), now, "s", color=COLORS["vermillion"], ms=7, mec="white")
            heads = condition["heads"]
            alone = f"1 layer,\n{heads} head{'s' * (heads > 1)}"
            names.append(f"3 layers:\nlayer {layer + 1}" if arm == "deep" else alone)
            far = ", ".join(f"{value:.1f}" for value in now)
            told.append(f"{names[-1]} {far}".replace("\n", " "))
    for (words, y), line in zip(lines.items(), (":", "--"), strict=True):
        ax.axhline(y, color=INK, ls=line, lw=1.3)
        ax.text(-0.45, y - 0.5, words, va="top", fontsize=11)
    ax.plot([], [], "o", mfc="white", mec=COLORS["blue"], label="before training")
    ax.plot([], [], "s", color=COLORS["vermillion"], label="trained")
    ax.legend(loc="center left", frameon=False, fontsize=11)
    ax.set_xticks(range(len(names)), names, fontsize=11)
    ax.set(ylabel="distance in pixels", ylim=(0, 23), xlim=(-0.5, len(names) - 0.6))
    return fig, "; ".join(told)


def rollout_arrows(layers: Sequence[Tensor], start: int = 0) -> Figure:
    """Three tokens and the layers (3, 3) between them, the first first: what each takes, as arrows
    as wide as their share. Orange: what the token ``start`` has in the end comes along these."""
    fig, ax = plt.subplots(figsize=(6.0, 2.7))
    N, reached = len(layers[0]), {start}
    for layer in range(len(layers) - 1, -1, -1):
        share, below = layers[layer], set()
        for q in range(N):
            for k in range(N):
                if not share[q, k]:
                    continue
                used = q in reached
                below |= {k} if used else set()
                color = COLORS["vermillion"] if used else "#c9ced8"
                arrow = FancyArrowPatch(
                    (layer + 0.93, -q),
                    (layer + 0.07, -k),
                    arrowstyle="-|>",
                    mutation_scale=11,
                    lw=7 * share[q, k].item(),
                    color=color,
                    zorder=1 + used,
                )
                ax.add_patch(arrow)
                if used:
                    over, under = share[q, k].item().as_integer_ratio()
                    label = ax.text(layer + 0.7, -q + 0.267 * (q - k), f"{over}/{under}", zorder=3)
                    label.set(ha="center", va="center", fontsize=11)
                    label.set_bbox({"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none"})
        reached = below
    for x in range(len(layers) + 1):
        for token in range(N):
            ax.plot(x, -token, "o", ms=24, mfc="white", mec=INK, zorder=4)
            ax.text(x, -token, str(token + 1), ha="center", va="center", zorder=5)
        ax.text(x, 0.5, f"after layer {x}" if x else "patches", ha="center", fontsize=11)
    ax.set(xlim=(-0.3, len(layers) + 0.3), ylim=(-N + 0.6, 0.8), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return fig


def pair_models() -> tuple[list[VisionTransformer], list[VisionTransformer]]:
    """Three models that answer matching pairs, the recorded one first, and forty untrained ones."""
    first, others = load_record("matching_pairs"), load_record("pair_models")

    def built(seed: int) -> VisionTransformer:
        torch.manual_seed(seed)
        return VisionTransformer(**first.settings["model"]).eval()

    trained = [built(seed) for seed in range(3)]
    trained[0].load_state_dict(first.weights("attention"))
    for seed, vit in enumerate(trained[1:], start=1):
        vit.load_state_dict(others.weights(f"seed_{seed}"))
    return trained, [built(seed) for seed in range(1, 41)]


def other_paints(pairs: MatchingPairs) -> tuple[Tensor, Tensor]:
    """What may replace patches: another image, and the same with noise in place of its glyphs."""
    other = pairs.images.roll(1, dims=0)
    tiles = F.unfold(other, 8, stride=8).mT  # (n, 16, 64)
    glyphs = pairs.glyph_patches(8).any(1).roll(1, dims=0)  # (n, 16)
    free = glyphs.int().argmin(1)[:, None, None].expand(-1, 16, 64)
    tiles = torch.where(glyphs[..., None], tiles.gather(1, free), tiles)
    return other, F.fold(tiles.mT, pairs.images.shape[2:], 8, stride=8)


def both_on_top(pairs: MatchingPairs) -> tuple[dict[str, Tensor], Tensor]:
    """In how many images a ranking puts both glyphs on top, drops without their sign, in %.

    Returns:
        Ranking -> (models, 2): images with two equal glyphs, with two different ones; and how many
        answers of the trained models are right, (3,).
    """
    trained, untrained = pair_models()
    images, same, glyphs = pairs.images, pairs.labels == 1, pairs.glyph_patches(8).any(1)
    other, clean = other_paints(pairs)

    def share(values: Tensor) -> list[float]:
        chosen = values.flatten(1).abs().topk(2).indices
        hit = (torch.zeros_like(glyphs).scatter(1, chosen, True) == glyphs).all(1).float()
        return [100 * hit[kind].mean().item() for kind in (same, ~same)]

    def first_map(vit: VisionTransformer) -> Tensor:
        return attention_maps(vit, images)[0].mean(1).mean(1)

    found = {
        "contrast of the pixels": [share(F.unfold(images, 8, stride=8).mT.std(-1))],
        "map of layer 1, untrained": [share(first_map(vit)) for vit in untrained],
        "map of layer 1": [share(first_map(vit)) for vit in trained],
        "occlusion, mean colour": [share(occlusion(vit, images, 8)) for vit in trained],
        "occlusion, another image": [share(occlusion(vit, images, 8, other)) for vit in trained],
        "occlusion, clean paint": [share(occlusion(vit, images, 8, clean)) for vit in trained],
    }
    rights = [100 * evaluate(vit, images, pairs.labels).accuracy for vit in trained]
    return {way: torch.tensor(values) for way, values in found.items()}, torch.tensor(rights)


def tops_table(tops: Mapping[str, Tensor], rights: Tensor) -> dict[str, Any]:
    """What :func:`both_on_top` found, for :func:`~vitbook.book.table.show_table`."""
    untrained = len(tops["map of layer 1, untrained"])
    return {
        "rows": [[way, span(values[:, 0]), span(values[:, 1])] for way, values in tops.items()],
        "header": ["ranking", "same glyphs, %", "different, %"],
        "caption": "Images in which both glyphs are on top, lowest to highest of three trained "
        f"models ({span(rights)} % of their answers are right) and of {untrained} untrained ones. "
        "Map: mean over heads and queries. Drops without their sign; mean colour, another image, "
        "clean paint: what replaces the patch.",
    }


def span(values: Tensor) -> str:
    """The lowest and the highest of some numbers, rounded."""
    low, high = (round(one.item()) for one in values.aminmax())
    return f"{low}" if low == high else f"{low} to {high}"


@torch.no_grad()
def cut_arrows(
    models: Sequence[VisionTransformer], images: Tensor, strong: float
) -> tuple[Tensor, int, int]:
    """Each arrow of each model and image cut alone.

    Returns:
        How far those between two patches with a larger weight than ``strong`` bring the lead of the
        answer "same" on the way to the turn, 1 = all of it, without sign; in how many cases a
        single arrow turns the answer; how many cases there are.
    """
    h, N = 4, 16
    every = torch.ones(h * N * N, h * N * N, dtype=torch.bool).fill_diagonal_(False)
    between = ~torch.eye(N, dtype=torch.bool)
    far, turned, cases = [], 0, list(product(models, images))
    for vit, image in cases:
        leads = []
        for block in vit.encoder.blocks:
            hook = block.get_submodule("attn").register_forward_pre_hook(
                lambda _, given: (given[0], every.view(-1, h, N, N))
            )
            with hook:
                leads.append(_lead(vit(image.expand(h * N * N, -1, -1, -1))).view(h, N, N))
        weight, lead = attention_maps(vit, image[None])[:, 0], _lead(vit(image[None]))[0]
        way = 1 - torch.stack(leads) / lead
        assert (way[weight < 1e-6].abs() < 1e-3 * (1 + 1 / lead.abs())).all()  # nothing to cut
        far.append(way[(weight > strong) & between].abs())
        turned += int((way[:, :, between] > 1).any())
    return torch.cat(far), turned, len(cases)


def _lead(logits: Tensor) -> Tensor:
    """How far the answer "same" leads, (B,)."""
    return logits[:, 1] - logits[:, 0]


def strong_arrows(far: Tensor) -> Figure:
    """How far cuts of strong arrows move the lead: 1 is the turn; more is drawn there."""
    fig, ax = plt.subplots(figsize=(6.0, 2.4))
    counts, edges = np.histogram(far.clamp(max=1), 20, (0, 1))
    bars = ax.bar(edges[:-1], counts, 1 / 20, align="edge", color=COLORS["green"])
    ax.bar_label(bars, [str(count) if count else "" for count in counts], padding=2)
    ax.axvspan(0.9, 1, color=COLORS["vermillion"], alpha=0.18, lw=0)
    ax.text(0.89, 0.9, "promised", transform=ax.transAxes, ha="right", color=COLORS["vermillion"])
    ax.set(xlabel="part of the way to the other answer", yticks=[], xlim=(-0.01, 1.01))
    ax.spines["left"].set_visible(False)
    ax.margins(y=0.15)
    return fig


def agreement_table(record: Record) -> dict[str, Any]:
    """How well rankings agree with occlusion, for :func:`~vitbook.book.table.show_table`."""
    shown = {"one_head": "1 layer, 1 head", "four_heads": "1 layer, 4 heads"}
    shown |= {"deep": "3 layers, 4 heads"}
    rows = [
        [
            words,
            *(student_interval(record.values(f"agreement_{way}", **ARMS[arm])) for arm in shown),
        ]
        for way, words in RANKINGS.items()
    ]
    return {
        "rows": rows,
        "header": ["ranking", *shown.values()],
        "caption": "Rank correlation with occlusion by the mean colour, drops and slopes without "
        f"their sign: mean over 80 test images and {len(record.seeds)} seeds, 95 % interval over "
        "the seeds. Attention, weight times value, rollout: those of the class token. Second "
        "occlusion: with the patches of another image. Bold: the map usually shown.",
        "best": RANKINGS["map"],
        "of": shown["deep"],
        "formats": dict.fromkeys(shown.values(), "z.2f"),
    }


def minus_second(record: Record, arm: str) -> Interval:
    """The map's agreement minus that of a second occlusion, paired by model."""
    map_, second = (
        record.values(f"agreement_{way}", **ARMS[arm]) for way in ("map", "other_paint")
    )
    return student_interval(map_ - second)
