"""Record attention weights while a model runs, without changing what it computes.

The model keeps its fused kernels; the weights are worked out a second time, on the side, from the
very inputs its layers saw.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.inspection.again import REPLACED, THROWN, UNCHAINED, Run
from vitbook.inspection.mixing import UNTOLD, drawn, mixers, moved_once
from vitbook.inspection.recorder import Watch, blocks_of, names_of

FEW = 8  # images, of which each runs alone
UNTESTED = (
    "what attention_weights says was not seen to be multiplied with values, so that nothing tests "
    "whether it is what forward does"
)
SAME = 0.05  # how far the maps of two runs may lie apart, by rounding, against the largest


@contextmanager
def record_attention(model: nn.Module, *, verify: bool = True) -> Iterator[dict[str, Tensor]]:
    """Record the attention weights of one forward pass inside a ``with`` block.

    It works with models of any library: layers that call ``F.scaled_dot_product_attention`` or
    ``F.multi_head_attention_forward`` (so ``nn.MultiheadAttention``, timm, torchvision,
    transformers), layers that multiply values with a softmax, and layers that have a method
    ``attention_weights``, as this package's do. Weights are without gradients and without dropout;
    those of the two functions are float32 also in half precision. Logits, gradients and random
    numbers stay the same, bit for bit, and the model is not touched. A compiled model runs
    uncompiled inside the block.

    A layer with as many heads as tokens runs twice more, alone, one token disturbed: so it is seen
    which axis is that of the queries. One that has a method ``attention_weights``, and was not seen
    to multiply by these weights, runs more often, on tokens of three kinds in many orders: what it
    gives has to be the sums of something of each kind, weighted by what it says. Then it is not
    tested which of its heads is which, and how large each is.

    Args:
        model: Any module. It, or parts of it, are called by you, once, inside the block.
        verify: Whether the weights are multiplied with the values, for the first image in every
            head and call, and compared with what the layer got: equal to 0.35 % of the largest
            number in float32, to 10 % in half precision. Without it nothing is compared.

    Yields:
        A dict, filled while the model runs, layer name -> weights (B, h, N_q, N_k), detached, in
        the order in which the layers ran. A layer that attends several times in one pass
        (shared weights) has further maps under "name#2", "name#3" ... Attention in windows, or of
        images and heads on one axis, has the axes that the layer gives it.

    Raises:
        TypeError: ``model`` is no module.
        ValueError: ``model`` ran, and none of its layers showed attention.
        RuntimeError: Nothing ran inside the block, or a layer ran in two passes.

    Warns:
        UserWarning: A layer attends by the name of its class and has no map, or has one that is
            not of its tokens, or not what it multiplies with the values, or that nothing can test.
            It is named. What attends under another name, by other means than a softmax, or is mixed
            or thrown away round its product, is not tested here, nor which axis is that of the
            images where heads or tokens are as many: :func:`attention_maps` alone sees it.
    """
    watch = Watch(require.module("model", model), verify)
    with uncompiled(), watch:
        yield watch.maps
    watch.close()
    _require_some(model, watch)
    if watch.doubts:
        warnings.warn(f"not maps of all tokens: {_doubts(watch.doubts)}", stacklevel=3)
    if watch.untested:
        warnings.warn(f"{listed(watch.untested)}: {UNTESTED}", stacklevel=3)


def attention_maps(
    model: nn.Module,
    images: Tensor,
    layers: str | Sequence[str] | None = None,
    *,
    verify: bool = True,
) -> Tensor:
    """The attention weights of all layers and heads for a batch of images.

    The model, of any library (see :func:`record_attention`), runs in evaluation mode and without
    gradients; afterwards each of its modules is in the mode it was in before. It runs once for the
    maps, and then some more times (22 runs in all for one image of 197 tokens), to test that:

    - each image alone has the same maps, and what they give is the same (more than 8: the first,
      the last, and all by halves);
    - with all attention held still, no token of the first image moves another one (each two are
      asked); nor do half of the tokens of an image that runs alone move the others;
    - each value that some query attends to moves with its token;
    - what a layer gives moves with each row and each half of a head of its product, unless a
      projection has zero columns there;
    - each token follows one patch that a module gives (or one token before the first layer), and
      the same one to the end, up to as many as were added;
    - the tokens of a later layer follow those behind the first one, and its values what the block
      before gave, but where two share their values, or stand side by side in a block that is given
      these tokens alone;
    - where half of an image of noise is another, a token that moved ranks the others anew, and one
      that did not ranks them as before, in all heads.

    Not tested:

    - what a function does to patches before a module gives them, which of them it takes where it
      takes less than half, and what it does to tokens where no module gives or takes them any more,
      which is pooling;
    - what makes the weights themselves, from queries and keys;
    - whether a block uses what its layer gives, or a hook changes it, and a forward that attends
      itself what its product gives;
    - less than half of a head, and values that were scaled or are added;
    - what moves tokens by less than rounding;
    - of more than 8 images, those that are treated in another way, or see each other in one half
      alone; and images that see each other behind the last layer.

    Args:
        model: A model whose attention layers all see the same N tokens.
        images: What the model takes, for a ViT (B, C, H, W).
        layers: Which layers, where not all belong together: a pattern such as "blocks.*", or
            several. The names are those of ``record_attention``. Who names layers asks for a
            part: then tokens may be mixed before and between them, and inside of them only where
            they are called with tokens (B, N, D) is it seen.
        verify: Whether the maps are held against what the model computes, as in
            ``record_attention`` and as above. Without it they are what the model showed, unchecked
            and perhaps rounded in another way, and come several times as fast for one image.

    Returns:
        The weights (L, B, h, N, N); ``maps[l, b, i, q]`` is the row of query q, how much it takes
        from each token. Layers come in the order in which they ran; where a block has two side by
        side, both count.

    Raises:
        TypeError: ``images`` is no tensor, or ``layers`` holds what is no name.
        ValueError: Not all layers that attend gave a map of all tokens with the same shape; the
            weights are not those that are multiplied with the values; something else moves tokens;
            or a second run gives other tokens. The layers are named, and what would help.

    Warns:
        UserWarning: A pattern of ``layers`` fits a module, too, that ran and showed no attention.
            Or a layer has some tokens that the block before did not give, or stands side by side
            with another: a rollout is wrong there.
    """
    layers = list(layers) if isinstance(layers, Iterator) else layers
    watch = watch_images(model, images, verify)
    maps = stacked(model, watch, images, layers)
    if left := _left_out(watch, layers):
        warnings.warn(f"{layers!r} names {listed(left)}, too: no attention was seen", stacklevel=2)
    if verify:
        _require_whole(model, watch, images, maps, everything=layers is None)
    elif images.ndim > 3 and len(images) == next(iter(maps.values())).shape[-1] > 1:
        # images that attend to images would look like tokens
        stacked(model, watch_images(model, images[:1]), images[:1], layers)
    return torch.stack(list(maps.values()))  # (L, B, h, N, N)


def watch_images(model: nn.Module, images: Tensor, verify: bool = False) -> Watch:
    """Run the model once, and see where it attends; unverified, by weights times values alone."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, got {type(images).__name__}")
    if not images.numel():
        raise ValueError(f"images must hold at least one, got the shape {tuple(images.shape)}")
    require.module("model", model)
    model = getattr(model, "_orig_mod", model)  # what was compiled
    watch = Watch(model, verify, rough=not verify)
    with torch.no_grad(), evaluated(model, watch.names), uncompiled(), watch:
        model(images)
    watch.close()
    _require_some(model, watch)
    return watch


def _require_whole(
    model: nn.Module, watch: Watch, images: Tensor, maps: dict[str, Tensor], everything: bool
) -> None:
    """The same tokens in a second run, and no token moves another but by the maps."""
    kind, model = type(model).__name__, getattr(model, "_orig_mod", model)
    B, _, _, N = next(iter(maps.values())).shape
    names = [watch.shown[label][0] for label in maps]
    if dropped := sorted(watch.draws & set(names)):
        raise ValueError(
            f"model ({kind}) drops weights of {listed(dropped)} at random in evaluation mode, too"
        )
    if untested := [name for name in watch.untested if name in names]:
        raise ValueError(
            f"model ({kind}), {listed(untested)}: {UNTESTED}; verify=False does not ask"
        )
    try:
        with same_draws(images), torch.no_grad(), evaluated(model), uncompiled():
            axis = _axis_of_images(model, images, B)
            one = images.narrow(axis, 0, 1) if B > 1 else images
            blocks = blocks_of(watch.modules, names)
            with (first := Run(model, N, 1, blocks)):
                model(one)
            random = _apart(watch, first, torch.arange(1), maps, _rounding(first, one))
            moved: dict[str, str] = {}
            for part in _parts(B):
                some = images.index_select(axis, part.to(images.device))
                with (run := Run(model, N, len(part), blocks)):
                    model(some)
                random += _apart(watch, run, part, maps, _rounding(first, one))
                moved |= moved_once(model, some, run) if len(part) == 1 and not random else {}
            random = list(dict.fromkeys(random))
            missing = sorted(watch.maps.keys() ^ first.maps.keys()) if everything else []
            chosen = None if everything else list(maps)
            mixing = {} if random or missing else mixers(model, one, first, chosen, moved)
            alone = everything and all((x, "given", 1) in first.kept.given for x in names)
            chain = not {REPLACED, UNCHAINED} & {*mixing.values()}
            apart = alone and mixing and chain and not mixers(model, one, first, list(maps), moved)
    except Exception as error:  # of a model of somebody's
        raise ValueError(
            f"model ({kind}) fails where the first image runs again with a token disturbed "
            f"({error}), so that nobody can tell what its maps leave out; verify=False does not ask"
        ) from error
    if random:
        raise ValueError(
            f"model ({kind}) draws at random, or keeps something from one run for the next, or "
            "what it makes of an image depends on the others, "
            f"or {listed(random)} has the images on another axis than the first: two runs give "
            "other maps of the same image, or other products, so that a map of one run is none of "
            "the next"
        )
    if missing:
        raise ValueError(
            f"model ({kind}) cannot be asked what its maps leave out: {listed(missing)} shows a "
            "map in one of two runs only (it keeps something from the run before, or attends in "
            "another way to one image than to several, or what has an axis for the images looks "
            "like attention where there is one)"
        )
    if mixing:
        why = "; ".join(f"{listed(names)} {why}" for why, names in _by_reason(mixing).items())
        if any(x.ndim == 3 and x.shape[1] == x.shape[2] == N for x in first.given()):
            why += ", or it is given channels first, (B, D, N), as many as tokens"
        advice = (
            f". attention_maps(model, images, layers={_pattern(list(maps), watch.maps)!r}) gives "
            f"the maps of {listed(list(maps))} alone"
        )
        if UNTOLD.issuperset(mixing.values()):
            raise ValueError(
                f"model ({kind}) cannot be asked what its maps leave out: {why}; verify=False does "
                "not ask"
            )
        less = set(mixing.values()) == {THROWN}
        how = "uses less than its maps" if less else "mixes tokens by more than its maps"
        raise ValueError(f"model ({kind}) {how}: {why}{advice if apart else ''}")
    for why, those in _by_reason(first.kept.missed).items():
        warnings.warn(f"{listed(those)}: {why}", stacklevel=3)


def _axis_of_images(model: nn.Module, images: Tensor, B: int) -> int:
    """On which axis the images lie: (B, ...), or tokens (N, B, D). Where both fit, one tells."""
    sizes = images.shape[: 2 if images.ndim == 3 else 1]
    fits = [axis for axis, size in enumerate(sizes) if size == B > 1]
    if len(fits) < 2:
        return sum(fits)
    with suppress(Exception), (alone := Watch(model, verify=False)):
        model(images[:1])
    return int(not alone.maps or len(next(iter(alone.maps.values()))) > 1)


def _parts(count: int) -> list[Tensor]:
    """Images that run without the others, beside the first: each alone, or many by halves."""
    alone = [torch.tensor([number]) for number in range(1, count)]
    halves = torch.randperm(count, generator=torch.Generator().manual_seed(count)).chunk(2)
    return alone if count <= FEW else [alone[-1], *halves]


def _apart(
    watch: Watch, alone: Run, part: Tensor, maps: dict[str, Tensor], same: float
) -> list[str]:
    """The layers whose maps or products are others for these images without the rest."""
    found = drawn({name: x[part] for name, x in maps.items()}, alone.maps, same)
    names = {watch.shown[label][0] for label in maps}
    for (name, number), (gave, axis) in watch.gave.items():
        again = alone.kept.given.get((name, "product", number))
        again = again[0] if isinstance(again, tuple) else again
        if name not in names or again is None or again.shape[axis] != len(part):
            continue
        if gave.shape[axis] <= part.max():
            continue  # image by image
        x = gave.index_select(axis, part.to(gave.device))
        if x.shape == again.shape and bool(((x - again).abs() > same * x.abs().amax()).any()):
            found.append(name)
    return found


def _rounding(first: Run, image: Tensor) -> float:
    """How far the maps of two runs may lie apart, against the largest weight."""
    eps = [passed.eps for passed in first.passed.values()]
    eps += [2**-10] if image.is_cuda else []  # convolutions round to ten bits there
    return min(SAME, 10 * max(eps, default=1.0) ** 0.5)


def same_draws(images: Tensor) -> AbstractContextManager:
    """Afterwards random numbers go on as if nothing had been drawn."""
    return torch.random.fork_rng([images.device] if images.is_cuda else [])


@contextmanager
def evaluated(model: nn.Module, modules: Iterable[nn.Module] = ()) -> Iterator[None]:
    """In evaluation mode; afterwards each module is in the mode it was in before.

    It goes back by its own ``train``, which may do more: loralib merges its weights for evaluation,
    and what stays merged does not learn.
    """
    modes = {module: module.training for module in modules or names_of(model)}
    try:
        if any(modes.values()):
            model.eval()
    except NotImplementedError as error:  # of torch.export
        raise ValueError(
            f"model ({type(model).__name__}) cannot be set to evaluation mode ({error}): give the "
            "model that was exported"
        ) from error
    try:
        yield
    finally:
        for module, mode in [*modes.items()] * 2:  # again, as parents take along what they share
            if module.training != mode:
                module.train(mode)
        for module, mode in modes.items():
            if module.training != mode:  # of a class whose train does not say so
                module.training = mode


def stacked(
    model: nn.Module, watch: Watch, images: Tensor, layers: str | Sequence[str] | None
) -> dict[str, Tensor]:
    """The maps of the layers that were asked for, if they can be stacked."""
    if layers is not None and not isinstance(layers, Iterable):
        raise TypeError(f"layers must be a pattern or several, got {layers!r}")
    wanted = ["*"] if layers is None else [layers] if isinstance(layers, str) else list(layers)
    seen = {**watch.maps, **watch.doubts}
    if not all(isinstance(pattern, str) for pattern in wanted):
        raise ValueError(
            f"layers must hold names of layers, or patterns of them, as text, got {layers!r}; seen "
            f"were {listed(list(seen))}"
        )
    fits = {x: [x] if x in seen else [n for n in seen if _fits(watch, n, x)] for x in wanted}
    if not fits or [x for x, names in fits.items() if not names]:
        raise ValueError(f"layers must each match some of {listed(list(seen))}; got {layers!r}")
    names = [name for name in seen if any(name in those for those in fits.values())]
    doubts: dict[str, str] = {}
    kinds: dict[tuple[int, ...], list[str]] = {}  # shape -> the layers that have it
    for name in names:
        why = watch.doubts.get(name) or _misfit(watch.maps[name], images)
        if why:
            doubts[name] = why
        else:
            kinds.setdefault(tuple(watch.maps[name].shape), []).append(name)
    said = [_doubts(doubts)] if doubts else []
    if len(kinds) > 1:
        shapes = "; ".join(f"{shape} of {listed(names)}" for shape, names in kinds.items())
        said.append(f"maps of different shapes: {shapes}")
    if said:
        raise ValueError(
            f"model ({type(model).__name__}) has attention that cannot be stacked: "
            f"{'; '.join(said)}. record_attention(model) gives what was seen by name"
            f"{_choice(model, watch, images, kinds)}"
        )
    return {name: watch.maps[name] for name in names}


def _fits(watch: Watch, label: str, pattern: str) -> bool:
    """Is it a map of a layer whose name fits? A layer that runs several times has several."""
    name, _ = watch.shown.get(label, (label, 1))
    return fnmatchcase(label, pattern) or fnmatchcase(name, pattern)


def _left_out(watch: Watch, layers: str | Sequence[str] | None) -> list[str]:
    """The modules called as the layers that a pattern is for, which ran and showed nothing."""
    seen = {name for name, _ in watch.shown.values()}
    ran = [name for name in watch.ran if name not in seen]
    return [
        name
        for pattern in ([layers] if isinstance(layers, str) else layers or [])
        for name in ran
        if name.rpartition(".")[2] == pattern.rpartition(".")[2] and fnmatchcase(name, pattern)
    ]


def _misfit(weights: Tensor, images: Tensor) -> str:
    """Why a layer's map is not (B, h, N, N), or nothing."""
    shape = tuple(weights.shape)
    if weights.sum().isnan():  # as any is
        return "its map holds nan: the images or the model do, or it makes some"
    batch = {len(images)} | ({1} if images.ndim == 2 else set())
    batch |= {images.shape[1]} if images.ndim == 3 else set()  # (N, B, D)
    count = "one image or the" if images.ndim == 3 else "the"  # perhaps (C, H, W)
    if weights.ndim == 3 and shape[1] == shape[2]:
        if len(images) == 1 and images.ndim > 3:
            return f"heads, and perhaps windows or groups, share an axis of {shape}"
        return (
            f"images and heads share an axis of {shape}: one image at a time can be read, if "
            "no windows share it, too"
        )
    if weights.ndim not in (3, 4) or shape[0] not in batch:
        return (
            f"it attends within windows or groups, {shape}, or gives maps whose first axis is not "
            f"that of {count} {len(images)} images (perhaps of one image alone)"
        )
    if shape[-2] != shape[-1]:
        return f"{shape[-2]} queries ask {shape[-1]} keys (a pooling head, other or fewer keys)"
    return ""


def _choice(
    model: nn.Module, watch: Watch, images: Tensor, kinds: dict[tuple[int, ...], list[str]]
) -> str:
    """The layers that can be stacked, as a pattern, where there is one that fits."""
    names = max(kinds.values(), key=len, default=[])
    pattern = _pattern(names, {**watch.maps, **watch.doubts})
    if not isinstance(pattern, str) or not _can_be_had(model, watch, images, names):
        return ""
    return f", and attention_maps(model, images, layers={pattern!r}) asks for {listed(names)} alone"


def _can_be_had(model: nn.Module, watch: Watch, images: Tensor, names: list[str]) -> bool:
    """Are the maps of these layers given where they are asked for alone?"""
    watch = watch if watch.verify else watch_images(model, images, verify=True)
    if not set(names) <= watch.maps.keys() - watch.doubts.keys():
        return False
    try:
        maps = {name: watch.maps[name] for name in names}
        _require_whole(model, watch, images, maps, everything=False)
    except ValueError:
        return False
    return True


def _pattern(names: list[str], seen: Iterable[str]) -> str | list[str]:
    """What matches these layers alone: one pattern, or all names."""
    parts = [name.split(".") for name in names]
    if not names or len({len(split) for split in parts}) > 1:
        return names
    pattern = ".".join(p[0] if len(set(p)) == 1 else "*" for p in zip(*parts, strict=True))
    return pattern if [name for name in seen if fnmatchcase(name, pattern)] == names else names


def _doubts(doubts: dict[str, str]) -> str:
    """Which layers, reason by reason."""
    return "; ".join(f"{listed(names)}: {why}" for why, names in _by_reason(doubts).items())


def _by_reason(doubts: dict[str, str]) -> dict[str, list[str]]:
    by_reason: dict[str, list[str]] = {}
    for name, why in doubts.items():
        by_reason.setdefault(why, []).append(name)
    return by_reason


def listed(names: list[str]) -> str:
    named = ", ".join(repr(name) for name in names[:3])
    return named if len(names) < 4 else f"{named} ... {names[-1]!r} ({len(names)} layers)"


def _require_some(model: nn.Module, watch: Watch) -> None:
    kind = type(model).__name__
    if not watch.ran:
        raise RuntimeError(
            f"nothing was recorded: call model ({kind}), or parts of it, inside the with block; it "
            "must be this very model, no copy of it"
        )
    if not watch.maps:
        doubts = f": {_doubts(watch.doubts)}" if watch.doubts else ""
        raise ValueError(
            f"model ({kind}) ran, and none of its layers showed attention{doubts}. A layer that "
            "attends in a way of its own can say it by a method attention_weights, which takes "
            "what forward takes and gives (B, h, N_q, N_k)"
        )


def uncompiled() -> AbstractContextManager:
    """Compiled code would run unseen. Where none can be there, torch's compiler stays unloaded."""
    compilers = {"torch._dynamo", "torch.nn.attention.flex_attention"}  # flex compiles itself
    if not compilers & sys.modules.keys() or not hasattr(torch.compiler, "set_stance"):
        return nullcontext()  # torch 2.5 has no such switch: it traces what watches, and is slow
    return torch.compiler.set_stance("force_eager")
