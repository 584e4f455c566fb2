"""Where do small ViTs look on CIFAR-10, and does a map foretell what hiding a patch does?"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, MustBeat, Outcome, scaled
from experiments.machinery.image_sets import whole_checksums, whole_set
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.data import ImageSet
from vitbook.inspection import attention_maps, attention_rollout, mean_attention_distance
from vitbook.inspection.occlusion import gradient_drop, occlusion, rank_correlation
from vitbook.models.vit import VisionTransformer

SET = "cifar10"
SIDE, P = 36, 3  # 12 x 12 = 144 patches
IMAGES: dict = {"image_size": SIDE, "patch_size": P, "in_channels": 3}
MODEL: dict = {**SMALL, **LEARNED, **IMAGES, "pool": "cls"}
RECIPE: dict = {"steps": 700, "batch_size": 64, "warmup_steps": 40}  # one pass over 45,000 images
ARMS = [{"depth": 3, "heads": 4}, {"depth": 1, "heads": 1}, {"depth": 1, "heads": 4}]
LOOKED, TESTED = 500, 80  # test images: whose maps are averaged; whose patches are replaced
TOP = 14  # patches that are replaced together, a tenth
SPREAD = (0.1, 0.5, 0.9)  # quantiles over images, of a rank correlation


def build(depth: int, heads: int) -> VisionTransformer:
    return VisionTransformer(**MODEL, depth=depth, num_heads=heads)


def resized(images: Tensor) -> Tensor:
    """Images (n, 3, 32, 32) -> (n, 3, 36, 36), bilinear."""
    return F.interpolate(images, size=(SIDE, SIDE), mode="bilinear", align_corners=False)


def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Normalised images (n, 3, 36, 36) and labels (n,)."""
    images, labels = whole_set(SET, part, scale)
    return ImageSet(resized(images), labels)


CLASSIFIER = Classifier(build=build, images=images_of, recipe=RECIPE)


def rounded(values: Tensor) -> list:
    """Nested lists, four digits after the point."""
    return [
        round(v, 4) if isinstance(v, float) else rounded(torch.tensor(v)) for v in values.tolist()
    ]


def views(model: VisionTransformer, images: Tensor) -> dict[str, Tensor]:
    """Where attention goes, means over images: each (L, h), norms (L,)."""
    chunks = [attention_maps(model, x) for x in images.split(50)]
    far = torch.cat([mean_attention_distance(m, model.patch_embed.grid, P) for m in chunks], dim=1)
    shares = torch.cat([m.mean(dim=-2) for m in chunks], dim=1)  # (L, n, h, N): key by key
    ratios, x = [], model.embed(images[:50])
    for block in model.encoder.blocks:
        x = block(x)
        norms = x[:, 1:].norm(dim=-1)  # of the patches, (n, N_patches)
        ratios.append((norms.amax(dim=1) / norms.median(dim=1).values).mean())
    return {
        "distance": far.mean(dim=1),
        "class_key": shares[..., 0].mean(dim=1),
        "top_patch_key": shares[..., 1:].amax(dim=-1).mean(dim=1),
        "norm_ratio": torch.stack(ratios),
    }


def added(model: VisionTransformer, images: Tensor) -> Tensor:
    """How long a vector each patch adds to the class token in the last layer, (n, N_patches).

    Weight times value, through the output matrix, all heads together.
    """
    attn: Any = model.encoder.blocks[-1].attn
    seen: list[Tensor] = []
    hook = attn.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model(images)
    hook.remove()
    weights = attn.attention_weights(seen[0])[:, :, 0]  # (n, h, N)
    values = attn.project(seen[0])[2]  # (n, h, N, d)
    vectors = (weights[..., None] * values).transpose(1, 2).flatten(2)  # (n, N, D)
    return nn.functional.linear(vectors, attn.proj.weight).norm(dim=-1)[:, 1:]


def scores(model: VisionTransformer, images: Tensor) -> dict[str, Tensor]:
    """For each image a number for each patch (n, N_patches), by every way of asking."""
    maps = attention_maps(model, images)  # (L, n, h, N, N)
    random = torch.Generator().manual_seed(0)
    last = maps[-1].mean(dim=1)  # (n, N, N), the mean of the heads
    mixed = images[torch.arange(len(images)).roll(1)]  # the patches of another image
    with torch.no_grad():
        vectors = added(model, images)
    return {
        "map": last[:, 0, 1:],
        "all_rows": last[:, :, 1:].mean(dim=1),
        "rollout": attention_rollout(maps)[:, 0, 1:],
        "added": vectors,
        "gradient": gradient_drop(model, images, P).flatten(1),
        "other_paint": occlusion(model, images, P, mixed).flatten(1),
        "occlusion": occlusion(model, images, P).flatten(1),
        "chance": torch.rand(last[:, 0, 1:].shape, generator=random),
        **{
            f"head_{layer + 1}_{head + 1}": maps[layer, :, head, 0, 1:]
            for layer in range(maps.shape[0])
            for head in range(maps.shape[2])
        },
    }


@torch.no_grad()
def fall(model: VisionTransformer, images: Tensor, values: Tensor) -> tuple[float, float]:
    """Replace the patches with the highest values together, by the image's mean colour.

    Returns:
        By how many nats the log-probability of the answer falls, and the share of answers that
        become others.
    """
    chosen = torch.zeros_like(values).scatter(1, values.topk(min(TOP, values.shape[1])).indices, 1)
    where = chosen.view(-1, 1, SIDE // P, SIDE // P)
    where = where.repeat_interleave(P, dim=2).repeat_interleave(P, dim=3).bool()
    painted = torch.where(where, images.mean(dim=(2, 3), keepdim=True), images)
    before, answers = model(images).log_softmax(dim=-1).max(dim=-1)
    after = model(painted).log_softmax(dim=-1)
    drop = before - after.gather(1, answers[:, None])[:, 0]
    return float(drop.mean()), float((after.argmax(dim=-1) != answers).double().mean())


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model, test it, look where it looks, and hold that against replaced patches."""
    images, _ = images_of("test", scale)
    looked, tested = (images[: scaled(count, scale)] for count in (LOOKED, TESTED))
    fresh = CLASSIFIER.fresh(condition, seed)
    with torch.no_grad():
        before = views(fresh, looked)
    model, losses = CLASSIFIER.fit(condition, seed, log, scale, **chosen)
    metrics = CLASSIFIER.measure(model, losses, scale)
    with torch.no_grad():
        after = views(model, looked)
    metrics |= {name: rounded(values) for name, values in after.items()}
    metrics["distance_untrained"] = rounded(before["distance"])
    by_way = scores(model, tested)
    moved = by_way["occlusion"].abs()  # (n, N_patches)
    metrics["moved"] = float(moved.mean())
    heads = [name for name in by_way if name.startswith("head")]
    agree = {name: rank_correlation(v.abs(), moved) for name, v in by_way.items()}  # (n,) each
    metrics["agreement_heads"] = [round(float(agree[name].mean()), 4) for name in heads]
    for name in WAYS:
        metrics[f"agreement_{name}"] = float(agree[name].mean())
        metrics[f"spread_{name}"] = rounded(agree[name].quantile(torch.tensor(SPREAD).double()))
        metrics[f"fall_{name}"], metrics[f"changed_{name}"] = fall(model, tested, by_way[name])
    return Outcome(metrics, model.state_dict())


WAYS = {
    "map": "the class token's row of the last layer, mean of the heads",
    "all_rows": "the mean of all rows of the last layer, mean of the heads",
    "rollout": "the class token's row of the rollout",
    "added": "the length of the vector that the patch adds to the class token in the last layer "
    "(weight times value, through the output matrix)",
    "gradient": "what the gradient foretells (`gradient_drop`)",
    "other_paint": "an occlusion with the patches of another image",
    "occlusion": "the occlusion itself",
    "chance": "random numbers",
}

EXPERIMENT = Experiment(
    what="Small ViTs on CIFAR-10 with 12 x 12 patches: where they look, how far, and whether their "
    "maps foretell what the answer loses when a patch is replaced.",
    chosen_on="validation images, a tenth of the official training images: the learning rate of "
    "each model",
    metrics={
        **METRICS,
        "distance": f"mean attention distance in pixels of 36, by layer and head, {LOOKED} test "
        "images",
        "distance_untrained": "the same before training",
        "class_key": "share of attention that the class token gets as a key, mean over all "
        "queries, by layer and head",
        "top_patch_key": "share of attention that the most attended patch of an image gets, mean "
        "over all queries, by layer and head",
        "norm_ratio": "norm of an image's longest patch token over their median, after each block",
        "moved": "mean size of the change of the answer's log-probability, in nats, when a patch "
        f"takes the image's mean colour, {TESTED} test images",
        "agreement_heads": "rank correlation, over the 144 patches of an image, of the size of "
        "that change and the class token's row, for each head of each layer, one after the other; "
        f"mean over {TESTED} test images",
        **{
            f"agreement_{name}": f"the same with the size of {words}"
            for name, words in WAYS.items()
        },
        **{
            f"spread_{name}": f"quantiles {SPREAD} of that correlation over the images"
            for name in WAYS
        },
        **{
            f"fall_{name}": "by how many nats the answer's log-probability falls when the "
            f"{TOP} patches that are highest by {words} take the image's mean colour together"
            for name, words in WAYS.items()
        },
        **{
            f"changed_{name}": f"share of the answers that are others then, by {words}"
            for name, words in WAYS.items()
        },
    },
    conditions=ARMS,
    seeds=range(3),
    run=run,
    data=lambda: whole_checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "images": "CIFAR-10, 32 x 32, normalised and resized to 36 x 36 by "
        "torch.nn.functional.interpolate (bilinear, align_corners=False)",
        "ways": WAYS,
    },
    replay=({"depth": 1, "heads": 1}, 0),
    keep={
        "deep": ({"depth": 3, "heads": 4}, 0),
        "one_head": ({"depth": 1, "heads": 1}, 0),
        "four_heads": ({"depth": 1, "heads": 4}, 0),
    },
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=CLASSIFIER.trial, length=0.15, finalists=0
    ),
    must_beat=MustBeat({"depth": 3, "heads": 4}, data=SET),
)
