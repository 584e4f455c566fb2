"""The digit model of the live figure: MNIST augmented, digits of a pen, and what is no digit."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from experiments.drawn_digits.hand_drawn import NOT_SURE, drawings, images_of, said, score, share
from experiments.drawn_digits.pen import KINDS, NO_DIGIT, pen_digits, pen_others
from experiments.full_sets.augment import random_affine
from experiments.full_sets.parts import Averaged, KeepHalf
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.image_sets import whole_checksums, whole_set
from experiments.machinery.measures import ANSWERS, answers, parameters, probabilities, thin
from experiments.machinery.small_vit import GREY
from vitbook.book.records import load_record
from vitbook.data import STATISTICS, ImageSet, normalize
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, evaluate, train

SIZES: dict = {"embed_dim": 64, "depth": 4, "num_heads": 4, "mlp_ratio": 2.0}
MODEL: dict = {**GREY, "image_size": 28, "patch_size": 4, **SIZES, "position_std": 0.5}
RECIPE: dict = {"steps": 4000, "batch_size": 128, "warmup_steps": 150}
HALF_SHARE = 0.8  # of the steps, with half of the patches
PEN_DIGITS = 12_000  # drawn digits to learn from, besides 54,000 of MNIST
PEN_OTHERS = {"letters": 4000, "scribbles": 2000, "marks": 1000}
EMPTY = 100  # empty boards to learn from
HELD_OUT = 1000  # of the drawn digits, and of each kind that is none, to measure with
DEGREES, ZOOM, PIXELS = 12, 0.12, 2  # the largest turn, change of size, shift
THINNER, THICKER = 0.5, 0.6  # share of the way to the least, the largest pixel of 3 x 3
UNSURE = 0.01  # of held-out digits may be called "not sure": that sets the threshold
BLACK = -STATISTICS["mnist"][0][0] / STATISTICS["mnist"][1][0]  # paper, normalised


mnist = partial(whole_set, "mnist")


def pen(part: str, kind: str, count: int) -> ImageSet:
    """Drawings, normalised like MNIST; `kind` is "digits", one of KINDS or "empty"."""
    if kind == "empty":
        images, labels = torch.zeros(count, 1, 28, 28), torch.full((count,), NO_DIGIT)
    else:
        made = pen_digits(part, count) if kind == "digits" else pen_others(part, kind, count)
        images, labels = made
    return ImageSet(normalize(images, *STATISTICS["mnist"]), labels)


def learned(scale: float = 1.0) -> ImageSet:
    """All that a model learns from; what is no digit has the label NO_DIGIT."""
    counts = {"digits": PEN_DIGITS, **PEN_OTHERS, "empty": EMPTY}
    drawings = [pen("train", kind, scaled(count, scale)) for kind, count in counts.items()]
    images, labels = zip(mnist("train"), *drawings, strict=True)
    return ImageSet(torch.cat(images), torch.cat(labels))


def thickened(images: Tensor, generator: Generator) -> Tensor:
    """Make the lines of each image thinner or thicker: (B, 1, H, W) -> (B, 1, H, W)."""
    share = torch.rand(len(images), generator=generator) * (THINNER + THICKER) - THINNER
    share = share.to(images.dtype)[:, None, None, None]
    most = F.max_pool2d(images, 3, stride=1, padding=1)
    least = -F.max_pool2d(-images, 3, stride=1, padding=1)
    return images + share.clamp(min=0) * (most - images) + share.clamp(max=0) * (images - least)


def changed(images: Tensor, generator: Generator) -> Tensor:
    """The augmentation: turned, scaled, moved, thinner or thicker."""
    images = thickened(images, generator)
    given = {"degrees": DEGREES, "zoom": ZOOM, "pixels": PIXELS, "fill": BLACK}
    return random_affine(images, generator, **given)


def told(log: Callable[[float], None]) -> Callable[[Tensor, Tensor], Tensor]:
    """Cross-entropy; for what is no digit all ten answers are equally right."""

    def loss_function(logits: Tensor, labels: Tensor) -> Tensor:
        targets = torch.cat([torch.eye(10), torch.full((1, 10), 0.1)]).to(logits.dtype)
        loss = F.cross_entropy(logits, targets[labels])
        log(loss.item())
        return loss

    return loss_function


def fit(
    seed: int, log: Log, scale: float, *, learning_rate: float, length: float = 1.0
) -> tuple[Averaged, list[float]]:
    """Train one model: it with its average, and the loss of each step."""
    steps = scaled(RECIPE["steps"], scale * length)
    batch_size = scaled(RECIPE["batch_size"], scale)
    torch.manual_seed(seed)
    model: Any = VisionTransformer(**MODEL)
    model.dropout = KeepHalf(round(HALF_SHARE * steps), prefix=model.num_prefix)
    averaged = Averaged(model)
    given = {**RECIPE, "steps": steps, "batch_size": batch_size, "learning_rate": learning_rate}
    history = train(
        averaged,
        *learned(scale),
        TrainConfig(**given, seed=seed),
        augment=changed,
        loss_function=told(log),
        progress=False,
    )
    return averaged, [row["loss"] for row in history]


def run(condition: dict, seed: int, log: Log, scale: float, *, learning_rate: float) -> Outcome:
    """Train on nine tenths of the training images and on drawings, then test once."""
    model, losses = fit(seed, log, scale, learning_rate=learning_rate)
    test = mnist("test", scale)
    given = probabilities(model, test.images)
    metrics = {
        **answers(given, test.labels),
        **doubts(model, given, scale),
        "loss": thin(losses),
        "parameters": parameters(model.average),
    }
    return Outcome(metrics, model.average.state_dict())


def doubts(model: torch.nn.Module, test: Tensor, scale: float) -> dict:
    """When a model says "not sure": the threshold, and how often on digits and on the rest.

    `test` are its probabilities on the test images.
    """
    given = partial(probabilities, model)

    def unsure(probs: Tensor) -> float:
        return (probs.amax(-1) < threshold).double().mean().item()

    held_out, count = mnist("validation", scale), scaled(HELD_OUT, scale)
    on_held_out = given(held_out.images)
    threshold = on_held_out.amax(-1).quantile(UNSURE).item()
    drawn = pen("validation", "digits", count)
    on_drawn = given(drawn.images)
    found = {
        "threshold": threshold,
        "validation_accuracy": right(on_held_out, held_out.labels),
        "pen_accuracy": right(on_drawn, drawn.labels),
        "unsure_test": unsure(test),
        "unsure_pen": unsure(on_drawn),
        "empty_confidence": given(pen("validation", "empty", 1).images).amax().item(),
    }
    others = {kind: given(pen("validation", kind, count).images) for kind in KINDS}
    found |= {f"unsure_{kind}": unsure(probs) for kind, probs in others.items()}
    by_hand = given(normalize(images_of(drawings()), *STATISTICS["mnist"]))
    words = said(by_hand, threshold)
    counts = score(drawings(), words)
    return {
        **found,
        "hand_digits": share(counts, digits=True),
        "hand_others": share(counts, digits=False),
        "hand_answers": [NO_DIGIT if word == NOT_SURE else int(word) for word in words],
        "hand_confidence": [round(sure, 4) for sure in by_hand.amax(-1).tolist()],
    }


def stored() -> tuple[VisionTransformer, float]:
    """The model of the figure, and its threshold."""
    record = load_record("draw_digit")
    model = VisionTransformer(**record.settings["model"])
    model.load_state_dict(record.weights())
    return model.eval(), record.values("threshold", model="vit")[0]


def right(given: Tensor, labels: Tensor) -> float:
    """Share of right answers."""
    return (given.argmax(-1) == labels).double().mean().item()


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, learning_rate: float
) -> dict[str, float]:
    """Train with a rate on trial, judge on held-out training images."""
    model, _ = fit(seed, log, scale, learning_rate=learning_rate, length=length)
    result = evaluate(model, *mnist("validation", scale))
    return {"validation_loss": result.loss, "validation_accuracy": result.accuracy}


EXPERIMENT = Experiment(
    what="The digit model of the live figure: a ViT of 7 x 7 patches that learns from MNIST, "
    "augmented, from digits of a pen, and from letters, scribbles and marks, on which all ten "
    "answers are equally right.",
    chosen_on='a tenth of each class of the training images of MNIST ("validation"), which the '
    "models do not learn from: the learning rate, in trainings of 15 % of the steps, and the "
    'threshold below which a model says "not sure"; the test images were looked at once, at the '
    "end of each run",
    metrics={
        "test_accuracy": "share of the 10,000 official test images answered rightly, with the "
        "running average of the weights, as all that follows; sure or not",
        **ANSWERS,
        "threshold": f'confidence below which the answer is "not sure": so that {UNSURE:.0%} of '
        "the validation images fall below",
        "validation_accuracy": "share of the validation images answered rightly",
        "pen_accuracy": f"share of {HELD_OUT:,} drawn digits answered rightly, of the shapes that "
        "were learned from, drawn anew",
        "unsure_test": 'share of the test images that get "not sure"',
        "unsure_pen": 'share of those drawn digits that get "not sure"',
        "unsure_letters": 'share of letters that get "not sure", none of which was learned from',
        "unsure_scribbles": 'share of scribbles that get "not sure", drawn anew',
        "unsure_marks": 'share of dots, dashes and the like that get "not sure", drawn anew',
        "hand_digits": "share of the digits drawn by hand, by another person, that are answered "
        "rightly and surely",
        "hand_others": "share of the letters, scribbles and the empty board drawn by hand that get "
        '"not sure"; letters of these names were learned from',
        "hand_answers": "the answer to each drawing by hand, in the order of their file; "
        f'{NO_DIGIT} is "not sure"',
        "hand_confidence": "with what confidence",
        "empty_confidence": "confidence on an empty board",
        "loss": "training loss, means over about a hundredth of the steps each",
        "parameters": "numbers that are learned",
    },
    conditions=[{"model": "vit"}],
    seeds=range(3),
    run=run,
    data=lambda: {
        **whole_checksums("mnist", added=""),
        "drawings": checksum(*learned(0.01)),
        "by hand": checksum(images_of(drawings())),
    },
    settings={
        "model": MODEL,
        "training": RECIPE,
        "drawings": {"digits": PEN_DIGITS, **PEN_OTHERS, "empty": EMPTY},
        "half_share": HALF_SHARE,
        "by hand": [[one.label, one.shape, one.placement] for one in drawings()],
    },
    replay=({"model": "vit"}, 0),
    keep={"vit": ({"model": "vit"}, 0)},
    steps=lambda condition: RECIPE["steps"],
    workers=1,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=trial, length=0.15, finalists=0, limit=4
    ),
)
