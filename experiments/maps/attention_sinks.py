"""Where do patches look that need nothing from the others, with and without a spare token?"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.measures import parameters, thin
from vitbook.data.glyphs import stamp
from vitbook.inspection import attention_maps
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, train

SIDE, P, KINDS = 4, 8, 8
N = SIDE**2  # cells, one patch each
NOISE = 0.15
MODEL: dict = {
    "image_size": SIDE * P,
    "patch_size": P,
    "in_channels": 1,
    "num_classes": KINDS,
    "embed_dim": 48,
    "depth": 1,
    "num_heads": 1,
    "mlp_ratio": 1.0,
    "positions": "learned",
    "position_std": 0.5,
}
RECIPE: dict = {"steps": 1000, "batch_size": 64, "warmup_steps": 60}
IMAGES = {"train": 10_000, "validation": 1_000, "test": 1_000}
ARMS: dict = {  # is a patch empty, and is there a token to spare?
    "plain": (False, False),
    "empty patch": (True, False),
    "register": (False, True),
    "empty patch, register": (True, True),
    "linear": (False, False),
}


class Copies(NamedTuple):
    """Sixteen cells with a glyph each; one asks and has none, one is asked, one may be empty.

    images (n, 1, 32, 32); says (n, KINDS, N), what each patch has to say; asks, asked, empty
    boolean (n, N), `empty` without a True where no patch is.
    """

    images: Tensor
    says: Tensor
    asks: Tensor
    asked: Tensor
    empty: Tensor


def copies(n: int, seed: int, with_empty: bool) -> Copies:
    """Draw them. The patch that asks says the kind of the one asked, all others their own."""
    random = torch.Generator().manual_seed(seed)
    kinds = torch.randint(KINDS, (n, N), generator=random)
    cells = torch.rand(n, N, generator=random).argsort(dim=1)[:, :3]  # (n, 3), all different
    asks, asked, empty = (F.one_hot(cells[:, i], N).bool() for i in range(3))
    empty = empty & with_empty
    images = torch.zeros(n, 1, SIDE * P, SIDE * P)
    for cell in range(N):
        top, left = (P * i + 1 for i in divmod(cell, SIDE))
        has = ~(asks | empty)[:, cell]
        corner = torch.full((int(has.sum()),), top), torch.full((int(has.sum()),), left)
        glyphs = images[has]
        stamp(glyphs, kinds[has, cell], *corner)
        images[has] = glyphs
        marked = (asks | asked)[:, cell]  # a bar below the glyph, or below nothing
        images[marked, :, top + P - 2, left - 1 : left + P - 1] = 1
    images = (images + NOISE * torch.randn(images.shape, generator=random)).clamp(0, 1)
    kinds = torch.where(asks, kinds[asked][:, None], kinds)
    says = F.one_hot(kinds, KINDS) * ~empty[..., None]
    return Copies(images, says.transpose(1, 2).float(), asks, asked, empty)


class EveryPatch(nn.Module):
    """A ViT of one layer without an MLP, whose head reads each patch on its own.

    What attention brings is added, and nothing behind it can take it back.
    """

    def __init__(self, vit: VisionTransformer) -> None:
        super().__init__()
        self.vit = vit
        for parameter in vit.encoder.blocks[0].mlp.parameters():
            nn.init.zeros_(parameter.requires_grad_(False))  # adds zero, and stays so

    def forward(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, 1, 32, 32) -> (B, KINDS, N)."""
        features = self.vit.forward_features(images, mask)[:, self.vit.num_prefix :]
        return self.vit.head(features).transpose(1, 2)


def build(arm: str, seed: int) -> EveryPatch:
    torch.manual_seed(seed)
    pool = "cls" if ARMS[arm][1] else "mean"  # the class token is there, and is never read
    return EveryPatch(VisionTransformer(**MODEL, pool=pool))


def pictures(part: str, arm: str, scale: float = 1.0) -> Copies:
    """The part's images; each part has a seed of its own."""
    seed = 70 + list(IMAGES).index(part)
    return copies(scaled(IMAGES[part], scale), seed, ARMS[arm][0])


def linear(shown: Copies) -> Callable[[Tensor], Tensor]:
    """The numbers of all patches from all pixels of an image, by least squares."""

    def pixels(images: Tensor) -> Tensor:
        return F.pad(images.flatten(1), (0, 1), value=1.0)  # and a constant

    solved = torch.linalg.lstsq(pixels(shown.images), shown.says.flatten(1), driver="gelsd")
    return lambda images: (pixels(images) @ solved.solution).unflatten(1, (KINDS, N))


def fit(
    condition: dict, seed: int, log: Log, scale: float, *, length: float = 1.0, learning_rate: float
) -> tuple[Any, list[float]]:
    """Train one model; it and its losses."""
    shown = pictures("train", condition["arm"], scale)
    given = {**RECIPE, "steps": scaled(RECIPE["steps"], scale * length)}
    given["batch_size"] = scaled(RECIPE["batch_size"], scale)

    def error(said: Tensor, image: Tensor) -> Tensor:
        """The patch that asks counts as much as the fifteen others together."""
        wrong = (said - shown.says[image]).square().mean(dim=1)  # (B, N)
        asks = shown.asks[image]
        loss = wrong[asks].mean() + wrong[~asks].mean()
        log(loss.item())
        return loss

    model = build(condition["arm"], seed)
    history = train(
        model,
        shown.images,
        torch.arange(len(shown.images)),  # which image it is, instead of one class for each
        TrainConfig(**given, learning_rate=learning_rate, seed=seed),
        loss_function=error,
        progress=False,
    )
    return model, [row["loss"] for row in history]


@torch.no_grad()
def said(model: Callable[..., Tensor], shown: Copies, *mask: Tensor) -> dict[str, float]:
    """How right they are: the patch that asks, the others with a glyph, and all numbers."""
    outputs = model(shown.images, *mask)
    right = outputs.argmax(dim=1) == shown.says.argmax(dim=1)  # (n, N)
    idle = ~(shown.asks | shown.empty)
    return {
        "ask_right": float(right[shown.asks].double().mean()),
        "keep_right": float(right[idle].double().mean()),
        "error": float(F.mse_loss(outputs, shown.says)),
    }


@torch.no_grad()
def looks(model: EveryPatch, shown: Copies) -> dict[str, float]:
    """What `LOOKS` names: where the patches look, and what they would say if they did not."""
    prefix, n = model.vit.num_prefix, len(shown.images)
    maps = attention_maps(model, shown.images)[0, :, 0]  # (n, prefix + N, prefix + N)
    rows, idle = maps[:, prefix:], ~(shown.asks | shown.empty)  # by query

    def share(queries: Tensor, keys: Tensor) -> float:
        """Of the attention of some patches (n, N), on some tokens (n, prefix + N)."""
        return float((rows * keys[:, None]).sum(dim=-1)[queries].double().mean())

    def tokens(patches: Tensor, spare: bool = False) -> Tensor:
        """Patches (n, N), and perhaps the spare token -> tokens (n, prefix + N)."""
        return torch.cat([torch.full((n, prefix), spare), patches], dim=1)

    own = shown.says.transpose(1, 2) * idle[..., None]  # (n, N, KINDS), of those with a glyph
    alike = torch.cat([torch.zeros(n, N, prefix), own @ own.mT], dim=2)  # (n, N, prefix + N)
    nobody = torch.zeros_like(idle)
    mean_row = (rows * idle[..., None]).sum(dim=1) / idle.sum(dim=1)[:, None]  # of the idle ones
    itself = rows[:, :, prefix:].diagonal(dim1=1, dim2=2)
    x = model.vit.embed(shown.images)
    block = model.vit.encoder.blocks[0]
    value = block.attn.project(block.norm1(x))[2][:, 0] @ block.attn.proj.weight.T  # one head
    usual = value[:, prefix:].norm(dim=-1)[idle].mean()
    length = block(x)[:, prefix:].norm(dim=-1)  # (n, N)
    allowed = torch.ones(n, prefix + N, prefix + N, dtype=torch.bool)
    cut, forced = allowed.clone(), allowed.clone()
    cut[:, prefix:] &= ~(idle[..., None] & tokens(shown.empty, spare=True)[:, None])
    forced[:, prefix:] &= ~idle[..., None] | tokens(shown.asked)[:, None]
    found = {
        "ask_to_asked": share(shown.asks, tokens(shown.asked)),
        "idle_to_asked": share(idle & ~shown.asked, tokens(shown.asked)),
        "idle_to_itself": float(itself[idle].double().mean()),
        "idle_to_alike": float((rows * alike).sum(dim=-1)[idle].double().mean()),
        "idle_top_patch": float(mean_row[:, prefix:].amax(dim=1).double().mean()),
        "longest": float((length.amax(dim=1) / length.median(dim=1).values).mean()),
        **{f"{k}_forced": v for k, v in said(model, shown, forced[:, None]).items()},
    }
    if prefix:
        found["idle_to_spare"] = share(idle, tokens(nobody, spare=True))
        found["value_spare"] = float(value[:, 0].norm(dim=-1).mean() / usual)
    if shown.empty.any():
        found["idle_to_empty"] = share(idle, tokens(shown.empty))
        found["value_empty"] = float(value[:, prefix:].norm(dim=-1)[shown.empty].mean() / usual)
    if prefix or shown.empty.any():
        found |= {f"{k}_cut": v for k, v in said(model, shown, cut[:, None]).items()}
    return found


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model, test it, and see where its patches look, before and after."""
    test = pictures("test", condition["arm"], scale)
    if condition["arm"] == "linear":
        return Outcome(said(linear(pictures("train", "linear", scale)), test))
    before = looks(build(condition["arm"], seed), test)
    model, losses = fit(condition, seed, log, scale, **chosen)
    metrics = said(model, test) | looks(model, test)
    metrics |= {f"{name}_untrained": v for name, v in before.items() if name.startswith("idle")}
    return Outcome(metrics | {"loss": thin(losses), "parameters": parameters(model)})


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, **tried: Any
) -> dict:
    model, _ = fit(condition, seed, log, scale, length=length, **tried)
    return {
        "validation_loss": said(model, pictures("validation", condition["arm"], scale))["error"]
    }


SAID = {
    "ask_right": "share of the patches that ask and say the kind of the patch asked",
    "keep_right": "share of the other patches with a glyph that say their own kind",
    "error": "mean squared error of all numbers",
}
IDLE = {
    "idle_to_asked": "attention of patches that need not look (have a glyph) on the patch asked",
    "idle_to_itself": "attention of a patch that need not look on itself",
    "idle_to_alike": "attention of a patch that need not look on all patches with its glyph, "
    "itself among them",
    "idle_to_empty": "attention of patches that need not look on the empty patch",
    "idle_to_spare": "attention of patches that need not look on the spare token",
    "idle_top_patch": "largest share of the attention of all patches that need not look that one "
    "patch gets",
}
LOOKS = {
    "ask_to_asked": "attention of the patch that asks on the patch asked",
    "longest": "norm of an image's longest patch token over their median, after the layer",
    "value_spare": "norm of what the spare token would bring, over that of a patch with a glyph",
    "value_empty": "norm of what the empty patch would bring, over that of a patch with a glyph",
    **{
        f"{k}_forced": f"{v}, when all of these must look at the patch asked"
        for k, v in SAID.items()
    },
    **{
        f"{k}_cut": f"{v}, when these may not look at the empty patch and the spare token"
        for k, v in SAID.items()
    },
}

EXPERIMENT = Experiment(
    what="One patch has to say which glyph a marked patch shows, all others which glyph they show "
    "themselves: where do these look, in a ViT of one layer and one head, with and without an "
    "empty patch, with and without a token to spare?",
    chosen_on="validation images drawn with a seed of their own: the learning rate, with "
    "the plain model; all four have the same",
    metrics={
        **{name: f"{words}, 1,000 test images" for name, words in (SAID | IDLE | LOOKS).items()},
        **{f"{name}_untrained": f"{name} before training" for name in IDLE},
        "loss": "training error, about 100 means",
        "parameters": "numbers of the model, those of the MLP that is switched off among them",
    },
    conditions=[{"arm": arm} for arm in ARMS if arm != "linear"],
    once=[{"arm": "linear"}],
    seeds=range(3),
    run=run,
    data=lambda: {
        f"copies{', one patch empty' * empty}, {part}": checksum(shown.images, shown.says)
        for part in IMAGES
        for arm, empty in (("plain", False), ("empty patch", True))
        for shown in [pictures(part, arm)]
    },
    settings={"model": MODEL, "training": RECIPE, "images": IMAGES, "kinds": KINDS, "noise": NOISE},
    replay=({"arm": "register"}, 0),
    steps=lambda condition: RECIPE["steps"],
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=trial,
        length=0.25,
        finalists=0,
        arm=lambda condition: {"arm": "plain"},
    ),
)
