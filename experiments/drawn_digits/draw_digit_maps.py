"""Does the digit model's answer need the patches that its maps show? On digits drawn by hand."""

from functools import lru_cache

import torch
from torch import Tensor

from experiments.drawn_digits.draw_digit import stored
from experiments.drawn_digits.hand_drawn import drawings, images_of
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum
from vitbook.data import STATISTICS, normalize
from vitbook.inspection import attention_maps, attention_rollout
from vitbook.inspection.occlusion import rank_correlation

VIEWS = ("mean", "rollout")
LAYERS = 4
INK = {"map": "ink"}  # the strongest opponent: what anybody sees without a model
ARMS: list[dict] = [
    INK,
    *({"map": view, "layer": n} for view in VIEWS for n in range(1, LAYERS + 1)),
]


def digits(scale: float = 1.0) -> Tensor:
    """The digits drawn by hand, normalised, (n, 1, 28, 28)."""
    images = images_of([one for one in drawings() if one.label.isdecimal()])
    return normalize(images[:: round(1 / scale)], *STATISTICS["mnist"])


@torch.no_grad()
def costs(model: torch.nn.Module, images: Tensor) -> Tensor:
    """What the answer loses without each patch, whose token is taken away: nats (n, patches)."""
    tokens = model.embed(images)  # (n, N, D)
    before = _says(model, tokens)
    answers = before.argmax(-1, keepdim=True)  # (n, 1)
    N, lost = tokens.shape[1], []
    for gone in range(1, N):
        after = _says(model, tokens[:, torch.arange(N) != gone])
        lost.append((before.gather(1, answers) - after.gather(1, answers))[:, 0])
    return torch.stack(lost, dim=1)


def _says(model: torch.nn.Module, tokens: Tensor) -> Tensor:
    return model.forward_head(model.encoder(tokens)).log_softmax(-1)


@lru_cache(maxsize=4)
def looked(scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """The drawings, the maps of all layers (L, n, h, N, N), and the costs."""
    images, (model, _) = digits(scale), stored()
    return images, attention_maps(model, images), costs(model, images)


def shown(condition: dict, images: Tensor, maps: Tensor) -> Tensor:
    """A map over the patches, (n, patches): of the class token, or the ink in each patch."""
    if condition == INK:
        tiles = images.unflatten(3, (7, 4)).unflatten(2, (7, 4))  # (n, 1, 7, 4, 7, 4)
        return tiles.sum(dim=(1, 3, 5)).flatten(1)
    layer = condition["layer"]
    if condition["map"] == "rollout":
        return attention_rollout(maps[:layer])[:, 0, 1:]
    return maps[layer - 1].mean(1)[:, 0, 1:]


def settled(images: Tensor) -> list[float]:
    """The share of drawings whose answer after each layer is already the last one."""
    model, _ = stored()
    with torch.no_grad():
        x, answers = model.embed(images), []
        for block in model.encoder.blocks:
            x = block(x)
            answers.append(model.forward_head(model.encoder.norm(x)).argmax(-1))
    return [(one == answers[-1]).double().mean().item() for one in answers]


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    images, maps, lost = looked(scale)
    map_ = shown(condition, images, maps)
    draw = torch.Generator().manual_seed(seed)
    orders = torch.stack([torch.randperm(map_.shape[1], generator=draw) for _ in map_])
    correlations = rank_correlation(map_, lost)
    first, worth = map_.argmax(-1), lost.argmax(-1)
    return Outcome(
        {
            "correlation": correlations.mean().item(),
            "correlations": [round(one, 4) for one in correlations.tolist()],
            "by_chance": rank_correlation(map_.gather(1, orders), lost).mean().item(),
            "first": (first == worth).double().mean().item(),
            "first_by_chance": 1 / map_.shape[1],
            "lost_at_first": lost.gather(1, first[:, None]).mean().item(),
            "lost_at_most": lost.amax(-1).mean().item(),
            "settled": settled(images),
        }
    )


EXPERIMENT = Experiment(
    what="The kept model of `draw_digit` on the digits drawn by hand: its maps, and the ink alone, "
    "against what the answer loses when each patch is taken out.",
    chosen_on="nothing: all maps are compared",
    metrics={
        "correlation": "rank correlation over the 49 patches of the map with what the answer "
        "loses without each, mean over the drawings",
        "correlations": "the same, of each drawing",
        "by_chance": "the same, with the patches of each map shuffled",
        "first": "share of drawings whose first patch on the map is the one that costs most",
        "first_by_chance": "the same, of a patch drawn by lot",
        "lost_at_first": "nats that the answer loses without the first patch of the map, mean",
        "lost_at_most": "nats that it loses without the patch that costs most, mean",
        "settled": "share of drawings whose answer after each layer is already the last one",
    },
    conditions=[],
    once=ARMS,
    seeds=range(1),
    run=run,
    data=lambda: {"by hand": checksum(images_of(drawings()))},
    settings={"digits": len(digits())},
    workers=1,
)
