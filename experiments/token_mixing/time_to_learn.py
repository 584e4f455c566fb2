"""How long does recall take, with attention and without? Twenty trainings a model, by two tasks.

Each model is trained until it has learned, at a rate that stays the same after the warm-up, and
asked again and again, each time after a twentieth more updates. One budget of multiplications for
all models of a task; who has not learned within it has not learned within it.

Written down before the first run: models, budget, grid, looks, and that the second twenty seeds
(from 500) are trained once, with all the rest.
"""

from functools import cache, partial
from typing import Any

import torch
from torch import nn

from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.token_mixing import mixing_recall as whole
from experiments.token_mixing.mixers import Address, Gated
from experiments.token_mixing.mixing import HEADS, TOLERANCE, WHOLE
from experiments.token_mixing.mixing_recall import IMAGES, RECIPE, SIDE, WIDE, images_of
from experiments.token_mixing.together import DEVICE, Together
from vitbook.comparison.layer import made
from vitbook.comparison.recall_task import PatchAnswers, looks_until
from vitbook.data import ImageSet
from vitbook.layers.efficient import LinearAttention
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig

SINCOS = "ViT, sin-cos places"  # knows from the first update where each patch stands
TABLE: dict = {"positions": "sincos_2d", "position_base": 2.0 * SIDE, "centred_positions": True}
MIXERS: dict = {"gated MLP": Gated, "linear attention": LinearAttention, "address": Address}
FLOORS = ("uniform", "no mixing")
MODELS = (WHOLE, SINCOS, "Mixer", WIDE, *MIXERS, *FLOORS)
TASKS: dict[str, dict] = {
    "place": {"partner": "named", "std": 0.5, "budget": 24 * whole.STEPS},
    "label": {"partner": "labelled", "std": 0.02, "budget": 30 * whole.STEPS},
}
TRAININGS, SEARCHED = 20, 3  # side by side, in a run and in a trial
FRESH = 500  # the first of twenty seeds that nothing was decided on
FIRST, STRIDE = 10, 1.05  # updates until the first look, and from look to look
LOOKED = 500  # images, at a look
LEARNED, ENOUGH = (0.5, 0.95), 0.99  # shares of right answers: noted, and the end
METRICS = {
    "until_half": "updates until half of the answers on test images are right, one number for each "
    "seed from the run's on; 0: not within the budget",
    "until_95": "the same for 95 % of the answers",
    "best": "the largest share of right answers at any look, for each seed",
    "updates": "updates that were made",
}


@cache
def width_of(model: str) -> int:
    """The width with which a ViT with another mixer has about the parameters of the ViT.

    Raises:
        ValueError: no width comes near enough.
    """
    with torch.device("meta"):
        counts = {D: count_parameters(with_mixer(model, D, 0.5)) for D in range(16, 161, 2)}
    target = whole.cost_of(WHOLE)[0]
    width = min(counts, key=lambda D: abs(counts[D] - target))
    if abs(counts[width] / target - 1) > TOLERANCE:
        raise ValueError(f"no width of {model} gives about {target} parameters")
    return width


def with_mixer(model: str, width: int, std: float) -> nn.Module:
    """The ViT with another token mixer in the place of attention."""
    options = whole.options_of(WHOLE)
    layer = partial(made, MIXERS[model], num_tokens=SIDE**2, num_heads=HEADS)
    return PatchAnswers(
        VisionTransformer(
            **whole.task(WHOLE).model,
            embed_dim=width,
            depth=len(options["layers"]),
            num_heads=HEADS,
            mlp_ratio=options["mlp_ratio"],
            pool="mean",
            positions="learned",
            position_std=std,
            attn_layer=layer,
        )
    )


def build(model: str, seed: int, task: str) -> nn.Module:
    """A model before training, which answers for every patch."""
    torch.manual_seed(seed)
    std = TASKS[task]["std"]
    if model in MIXERS:
        return with_mixer(model, width_of(model), std)
    options = whole.options_of(WHOLE if model == SINCOS else model)
    if model == SINCOS:
        options |= {"position_std": None} | TABLE
    elif options["positions"] == "learned":
        options |= {"position_std": std}
    return PatchAnswers(Hybrid(**whole.task(model).model, **options))


@cache
def cost_of(model: str) -> tuple[int, int]:
    """Parameters, and multiplications for one image."""
    with torch.device("meta"):
        built, pixels = build(model, 0, "place").eval(), SIDE * 8
        return count_parameters(built), count_multiplies(built, torch.empty(1, 3, pixels, pixels))


def steps(condition: dict) -> int:
    """The updates whose multiplications are the budget."""
    budget, model = TASKS[condition["task"]]["budget"], condition["model"]
    return round(budget * cost_of(WHOLE)[1] / cost_of(model)[1])


def looks_of(longest: int) -> list[int]:
    """After how many updates the models are asked."""
    return looks_until(longest, FIRST, STRIDE)


def fit(
    condition: dict, seeds: range, part: str, log: Log, scale: float, **chosen: Any
) -> tuple[list[int], torch.Tensor, torch.Tensor]:
    """Train until all have learned, or until the budget is spent.

    Returns:
        The looks that were made; losses and shares of right answers at each, (looks, S).
    """
    task, longest = condition["task"], scaled(steps(condition), scale)
    of = {"partner": TASKS[task]["partner"]}
    asked = ImageSet(*(one[:LOOKED] for one in images_of(part, scale, **of)))
    config = TrainConfig(
        steps=longest,
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        **chosen,
    )
    models = [build(condition["model"], seed, task) for seed in seeds]
    device = DEVICE if scale == 1 else "cpu"
    all_of_them = Together(models, images_of("train", scale, **of), config, seeds, device)
    looks, seen, pending = looks_of(longest), [], []
    for look in looks:
        while all_of_them.done < look:
            pending.append(all_of_them.update().mean())
        for loss in torch.stack(pending).tolist():
            log(loss)
        pending.clear()
        seen.append([one.tolist() for one in all_of_them.answered(asked)])
        if min(seen[-1][1]) >= ENOUGH:
            break
    losses, right = (torch.tensor(one, dtype=torch.float64) for one in zip(*seen, strict=True))
    return looks[: len(seen)], losses, right


def until(share: float, looks: list[int], right: torch.Tensor) -> list[int]:
    """The first look of each training at which so many answers were right; 0 without one."""
    reached = right >= share  # (looks, S)
    first = reached.long().argmax(0).tolist()
    return [looks[i] if some else 0 for i, some in zip(first, reached.any(0), strict=True)]


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    seeds = range(seed, seed + TRAININGS)
    looks, _, right = fit(condition, seeds, "test", log, scale, **chosen)
    half, most = (until(share, looks, right) for share in LEARNED)
    best = [round(share, 4) for share in right.amax(0).tolist()]
    return Outcome({"until_half": half, "until_95": most, "best": best, "updates": looks[-1]})


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, **tried: Any
) -> dict:
    """Three models, judged by the mean loss over all looks: sooner is better.

    The looks are twice as far apart where time is twice as long, so a factor counts the same
    everywhere; the last look stands for those that were no longer needed.
    """
    seeds = range(seed, seed + SEARCHED)
    looks, losses, right = fit(condition, seeds, "validation", log, scale, **tried)
    left = len(looks_of(scaled(steps(condition), scale))) - len(looks)
    loss = (losses.sum(0) + left * losses[-1]) / (len(looks) + left)
    return {"validation_loss": loss.mean().item(), "validation_accuracy": right[-1].mean().item()}


CONDITIONS = [
    {"task": task, "model": model}
    for task in TASKS
    for model in MODELS
    if (task, model) != ("label", SINCOS)
]
EXPERIMENT = Experiment(
    what="Recall by place and by label: how many updates until half, and until 95 %, of the "
    "answers are right? Models with equal parameters, one budget of multiplications for all of a "
    f"task, {TRAININGS} seeds from 0 and {TRAININGS} fresh ones from {FRESH}.",
    chosen_on="validation images: the learning rate of each model and task, by the mean of "
    f"{SEARCHED} seeds over the whole way",
    metrics=METRICS,
    conditions=CONDITIONS,
    seeds=(0, FRESH),
    run=run,
    data=lambda: {
        f"recall, {task}, {part}": checksum(*images_of(part, partner=of["partner"]))
        for task, of in TASKS.items()
        for part in IMAGES
    },
    settings={
        "training": {**RECIPE, "schedule": "flat after the warm-up"},
        "tasks": TASKS,
        "trainings": TRAININGS,
        "models": {
            m: dict(zip(("parameters", "multiplies"), cost_of(m), strict=True)) for m in MODELS
        },
        "widths": {m: width_of(m) for m in MIXERS},
        "looks": {"first": FIRST, "ratio": STRIDE, "images": LOOKED},
        "longest": {
            task: {c["model"]: steps(c) for c in CONDITIONS if c["task"] == task} for task in TASKS
        },
    },
    replay=({"task": "place", "model": WHOLE}, 0),
    steps=steps,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=trial, length=1.0, finalists=0, limit=8
    ),
)
