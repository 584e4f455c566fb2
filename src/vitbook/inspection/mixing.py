"""What a model does to its tokens beside the attention that was seen.

The model runs some more times, each token as it was or disturbed in one of two ways. With all
attention held still, what a token becomes is its own affair, and the same in every run in which it
was disturbed in the same way. Where it is not, others moved it by no attention of the maps,
whatever does it is called; and the values of each product have to move with their tokens.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from vitbook.inspection.again import (
    APART,
    ASKED,
    MOVES,
    NUMBERS,
    OTHERS,
    PADDED,
    REPLACED,
    THROWN,
    TURNED,
    UNCHAINED,
    ZEROS,
    Apart,
    Begun,
    Disturbed,
    Handed,
    Held,
    Late,
    Passed,
    Place,
    Run,
    rounds_together,
)
from vitbook.inspection.recorder import is_part, parents
from vitbook.inspection.weights import turned_rows

R = TypeVar("R", bound=Run)
SOME = 0.1  # of the tokens
STILL = 1e-5  # how far a token may move, against those that were disturbed
RANDOM = "gives something else when it runs again and nothing is disturbed"
NAN = "gives numbers that are none (nan or inf) where its tokens are disturbed"
SOMETIMES = (
    "shows its map in some runs on the same image, its tokens disturbed, and not in all: it may "
    "change what is large"
)
RENEWED = (
    "some tokens are none that the block before gave (prompts of each layer, a token begun anew, "
    "older ones): the maps are right, but a rollout goes through them as if they were"
)
PARALLEL = (
    "stand side by side with the layer before, as heads that are modules of their own do: the maps "
    "are right, but a rollout takes one behind the other"
)
UNTOLD = {RANDOM, NAN, SOMETIMES, APART}  # with these, nobody can tell what mixes


def mixers(
    model: nn.Module,
    image: Tensor,
    first: Run,
    labels: list[str] | None = None,
    known: dict[str, str] | None = None,
) -> dict[str, str]:
    """What moves tokens by more than the attention that was seen: innermost layer -> how.

    Where maps are asked for by their labels, inside of their layers alone. ``known`` is what moves
    tokens in other images.
    """
    chosen = None if labels is None else {first.shown[label] for label in labels}

    def ran(kind: Callable[..., R], *how: Any, on: Tensor = image) -> R:
        with (run := kind(model, first, *how)):
            model(on)
        return run

    def asked(found: dict[str, str]) -> dict[str, str]:
        if chosen is None:
            return found
        those = [layer for layer, _ in chosen if (layer, "given", 1) in first.kept.given]
        return {
            name: how
            for name, how in found.items()
            if any(is_part(name, of=layer) for layer in those)
        }

    ways = all_ways(first.N).to(image.device)
    heard = heard_of(first, chosen)
    together = any(map(rounds_together, model.modules()))  # in later runs, each token alone
    first = ran(Disturbed, ways[0]) if together else first
    disturbed: list[Run] = [first, *(ran(Disturbed, way) for way in ways[1:])]
    found = asked((known or {}) | wrong(disturbed, ways, heard))
    if not found and image.is_floating_point():
        runs = (ran(Held, on=half) for half in halves(image))
        plain = next(runs)
        found = asked(dict.fromkeys(padded(plain), PADDED))
        found = found or asked(dict.fromkeys(crossed(plain, runs), ASKED))
    if not found:
        of_patches = all_ways(max(first.N, *first.kept.made.values(), 0)).to(image.device)
        start = [ran(Begun, way) for way in of_patches]
        for place in unmoved(start):  # positions
            first.kept.made.pop(place)
            start = [ran(Begun, way) for way in of_patches]
        all_ = torch.ones_like(ways[0])
        later = ran(Late, all_, strangers(start, of_patches, chosen))
        if chosen is None:
            found = replaced(start, of_patches, first, later)
            if not found:
                both = [ran(Handed, odd) for odd in (False, True)]
                found, first.kept.missed = unchained(first, later, both)
        found = found or asked(wrong([first, later], torch.stack([0 * all_, all_]), heard))
    if not found:
        found = (
            mixed_before(start, of_patches) if chosen is None else turned(start, of_patches, chosen)
        )
    if not found:
        before = ran(Apart, 0) if together else first
        suspects = asked(thrown(before, [ran(Apart, 1)]))
        filled: list[Run] = [ran(Apart, sign, True) for sign in (0, 1, -1) if suspects]
        return suspects and asked(thrown(filled[0], filled[1:]))
    if asked(wrong([first, ran(Disturbed, ways[0])], ways[[0, 0]])):
        return dict.fromkeys(found, RANDOM)
    first_of = next((x for x in (UNTOLD, {MOVES}) if x & {*found.values()}), {*found.values()})
    whole = {name: how for name, how in found.items() if how in first_of}
    return {
        name or f"{type(model).__name__}.forward": how
        for name, how in whole.items()
        if not any(is_part(other, of=name) for other in whole if other != name)
    }


def moved_once(model: nn.Module, image: Tensor, first: Run) -> dict[str, str]:
    """What moves tokens where half of them are disturbed, once."""
    if any(map(rounds_together, model.modules())):
        return {}
    half = torch.randperm(first.N, generator=torch.Generator().manual_seed(0)) % 2
    ways = torch.stack([0 * half, half]).to(image.device)
    with (run := Disturbed(model, first, ways[1])):
        model(image)
    return wrong([first, run], ways, heard_of(first))


def heard_of(first: Run, chosen: set[tuple[str, int]] | None = None) -> dict[Place, Tensor]:
    """The tokens (N,) that have some weight in the map of each product; in others, none has."""
    return {
        (layer, "product", number): (first.maps[label].flatten(0, -2).amax(dim=0) > 0)
        & (chosen is None or (layer, number) in chosen)
        for label, (layer, number) in first.shown.items()
        if label in first.maps and first.maps[label].shape[-1] == first.N
    }


def all_ways(N: int) -> Tensor:
    """In which way each token is disturbed in each run (runs, N), 0 ... 2; 0 is not at all.

    Of any two tokens, there are two runs in which the first one is disturbed in one way and the
    second one in two. For a column parts the runs into three sets, no two columns in the same way,
    and of two such partitions neither is finer. 7 runs do for 301 tokens, 8 for 966 (Stirling
    numbers of the second kind).
    """
    columns: list[tuple[int, ...]] = []
    runs = 2
    while len(columns) < N:
        runs += 1
        rests = product(range(3), repeat=runs - 1)
        columns = [
            (0, *rest) for rest in rests if 2 in rest and 1 in rest[: rest.index(2)]
        ]  # each partition once
    some = torch.randperm(len(columns), generator=torch.Generator().manual_seed(0))[:N]
    return torch.tensor(columns)[some].T


def wrong(
    runs: list[Run], ways: Tensor, heard: dict[Place, Tensor] | None = None
) -> dict[str, str]:
    """What is wrong where tokens passed in each of some runs: layer -> what.

    ``heard`` are the tokens that have some weight; values of the others may be anything.
    """
    alike = (ways[:, None] == ways).int().argmax(dim=1)  # (runs, N): the first run in the same way
    found: dict[str, str] = {}
    had: list[Tensor] = []  # values
    for place, first in runs[0].passed.items():
        if place[1] == "product" and any(place not in run.passed for run in runs):
            found.setdefault(first.layer, SOMETIMES)
            continue
        those = [run.passed.get(place, first).numbers for run in runs]
        if any(x.shape != (runs[0].N, NUMBERS) for x in those):
            continue  # other tokens
        x = torch.stack(those)  # (runs, N, 8)
        if bool(x[0].isfinite().all() and not x.isfinite().all()):
            found.setdefault(first.layer, NAN)
        elif _depends(x, alike, first.eps):
            found.setdefault(first.layer, first.why)
        if place[1] == "product":
            last = runs[-1].passed[place]
            shared = not last.alone and any(x[0].equal(y) for y in had)
            some = (heard or {}).get(place, torch.ones_like(ways[0]))
            if last.fed and _stays(x, ways * some) and not shared:
                found.setdefault(first.layer, OTHERS if x.any() else ZEROS)
            had.append(x[0])
    return found


def unmoved(runs: list[Begun]) -> list[Place]:
    """What modules gave that is the same, whatever the patches are that came before."""
    first, *others = (run.come for run in runs)
    return [
        place
        for place, (passed, patches) in first.items()
        if patches and place[1] == "made"
        if all(place in come and come[place][0].numbers.equal(passed.numbers) for come in others)
    ]


def followed(
    runs: list[Begun], ways: Tensor, what: tuple[str, ...]
) -> Iterator[tuple[Place, Passed, Tensor, Tensor]]:
    """Place by place, the token numbers (runs, N, 8), and what each follows (N,).

    A patch; or -1, none, and -2, more than one.
    """
    pairs = torch.tensor(list(combinations(range(len(runs)), 2)), device=ways.device).T
    last = torch.empty(0)
    for place, (first, patches) in runs[0].come.items():
        those = [run.come[place][0].numbers for run in runs if place in run.come]
        same = len(those) == len(runs) and all(x.shape == those[0].shape for x in those)
        if place[1] not in what or not patches or not same:
            continue
        x = torch.stack(those)  # (runs, N, 8)
        alike = ways[pairs[0], :patches] == ways[pairs[1], :patches]  # (pairs, patches)
        differ = [_differ(x[j], x[i], x, first.eps) for i, j in pairs.T.tolist()]  # (N,) each
        apart = torch.stack(differ)  # (pairs, N)
        against = apart.T.double() @ alike.double()  # (N, patches)
        patch = against.argmin(dim=1)
        if len(last) == len(patch) and patches > last.max():
            # behind a gate it moves in some pairs alone, as if it followed others, too
            still = against.gather(1, last.clamp(min=0)[:, None])[:, 0] == 0
            patch = last.where(still & (last >= 0), patch)
        patch = patch.where(apart.any(dim=0), -1).where((against == 0).any(dim=1), -2)
        last = patch.where(patch >= 0, last) if len(last) == len(patch) else patch
        yield place, first, x, patch


def strangers(runs: list[Begun], ways: Tensor, chosen: set[tuple[str, int]] | None) -> set[Place]:
    """Modules that are given tokens of which none follows a patch, behind the first product.

    Of those that are chosen.
    """
    behind, found = False, set()
    for place, _, _, patch in followed(runs, ways, ("given", "product")):
        if place[1] == "product":
            behind |= chosen is None or (place[0], place[2]) in chosen
        elif behind and bool((patch == -1).all()):
            found.add(place)
    return found


def mixed_before(runs: list[Begun], ways: Tensor) -> dict[str, str]:
    """The first where tokens depend on more than one patch, or on other ones than before, and what.

    But for as many as were added. The values of the first product have to move with patches.
    """
    N, products, before = runs[0].N, 0, None
    for place, first, x, patch in followed(runs, ways, ("made", "given", "gave", "product")):
        patches = runs[0].come[place][1]
        if (patch == -2).sum() > max(len(patch) - patches, 0):
            return {first.layer: MOVES}
        if place[1] == "made" or len(patch) != N:
            continue
        before = patch if before is None else before.where(before >= 0, patch)
        if ((patch != before) & (patch >= 0)).any():
            return {first.layer: first.why}
        products += place[1] == "product"
        if place[1] == "product" and products == 1 and (patch != -1).sum() < min(patches, N) / 2:
            return {first.layer: OTHERS if x.any() else ZEROS}
    known = before is not None or runs[0].kept.alike
    return {} if known else dict.fromkeys(_attend(runs[0]), APART)


def replaced(runs: list[Begun], ways: Tensor, first: Run, late: Run) -> dict[str, str]:
    """Modules round a later product, of which some tokens follow no patch any more.

    Nor what the first product gave.
    """
    products = [layer for layer, what, _ in first.passed if what == "product"]
    behind, before = False, None
    for place, _, _, patch in followed(runs, ways, ("given", "product")):
        behind |= place[1] == "product"
        if len(patch) != late.N or place not in late.passed or place not in first.passed:
            continue
        x, then = (run.passed[place].numbers for run in (late, first))
        around = any(is_part(layer, of=place[0]) for layer in products)
        if behind and around and place[1] == "given" and x.shape == then.shape:
            moved = (x - then).abs().amax(dim=1)
            lost = (moved <= 1e-6 * moved.amax()) & (patch == -1)
            if before is not None and (lost & (before >= 0)).any():  # prompts may be new ones
                return {place[0]: REPLACED}
        before = patch if before is None else before.where(before >= 0, patch)
    return {}


def unchained(first: Run, late: Run, runs: list[Handed]) -> tuple[dict[str, str], dict[str, str]]:
    """Layers whose values are the same, whatever the block before gave; and what a rollout misses.

    Two layers may share their values; or stand side by side in a block: a module that is given
    these tokens alone, and in which none stands behind another.
    """
    last, behind = "", ""  # the layer of the product before, and the one that stands before it
    had: list[tuple[str, Tensor]] = []
    before: Tensor | None = None  # what the layer before was given
    missed: dict[str, str] = {}
    for place, passed in first.passed.items():
        if place[1] != "product":
            continue
        layer, values = place[0], passed.numbers
        given = first.passed.get((layer, "given", place[2]))
        same = before is not None and given is not None and given.numbers.equal(before)
        shared = any(values.equal(x) and layer != other for other, x in had)
        block, count = first.since[place]
        run, apart = runs[count % 2], False
        if block and run.since.get(place) == (block, count):
            still = (run.passed[place].numbers == values).all(dim=1)  # (N,)
            apart = bool(still.all()) and (late.passed[place].alone or not shared)
            if still.any() and not still.all():
                missed[layer] = RENEWED
        if apart and not _side_by_side(first, last, layer, behind):
            return {layer: UNCHAINED}, {}
        if apart:
            missed[layer] = PARALLEL
        last, behind = layer, "" if apart or same else last
        before = None if given is None else given.numbers
        had.append((layer, values))
    return {}, missed


def _side_by_side(run: Run, a: str, b: str, behind: str) -> bool:
    """Is one module round both layers given their tokens alone, without what a stands behind?"""
    around = ((x, "given", 1) for x in [a, *parents(a)] if is_part(b, of=x))
    block = next((x for x in around if x in run.kept.given), None)
    if a == b or block is None or block not in run.kept.alone:
        return False
    return not (behind and is_part(behind, of=block[0]))


def turned(runs: list[Begun], ways: Tensor, chosen: set[tuple[str, int]]) -> dict[str, str]:
    """Layers that were named, whose tokens come in another order than in the one before."""
    before: Tensor | None = None
    for (layer, _, number), _, _, patch in followed(runs, ways, ("product",)):
        if (layer, number) in chosen and len(patch) == runs[0].N:
            if before is not None and ((patch != before) & (patch >= 0) & (before >= 0)).any():
                return {layer: TURNED}
            before = patch
    return {}


def _attend(run: Run) -> list[str]:
    return [layer for layer, what, _ in run.passed if what == "product"]


def padded(run: Run) -> list[str]:
    """The layers in which many values are the same."""
    found = []
    for (layer, what, _), passed in run.passed.items():
        x = passed.numbers
        if what == "product":
            alike = torch.cdist(x, x, p=torch.inf) <= STILL * x.abs().amax()
            found += [layer] if alike.sum(dim=1).max() > max(2, len(x) / 4) else []
    return found


def halves(image: Tensor) -> Iterator[Tensor]:
    """The image under noise, and then with other noise in its upper half, and in its left half.

    Of tokens (B, N, D) or (N, B, D), in half of them.
    """
    generator = torch.Generator().manual_seed(image.shape[-1])  # perhaps images were drawn with 0
    under, noise = torch.randn(2, *image.shape, generator=generator).to(image)
    yield image + under
    for axis in range(-2 if image.ndim > 3 else -image.ndim, 0):
        place = torch.arange(image.shape[axis], device=image.device) < image.shape[axis] // 2
        yield image + torch.where(place.view(-1, *[1] * (-1 - axis)), noise, under)


def crossed(first: Held, others: Iterable[Held]) -> list[str]:
    """The layers in which the rows of a map do not move with their tokens, or heads not together.

    All attention is held. A token that is as it was asks others that are as they were as before;
    one that moved does not.
    """
    heads: dict[Place, list[Tensor]] = {}
    apart: dict[Place, list[float]] = {}
    for run in others:  # one at a time, as scores are large
        for place, was in first.asked.items():
            values = first.passed[place].numbers
            square = was.shape[-2] == was.shape[-1] == len(values)
            if not square or place not in run.asked or run.asked[place].shape != was.shape:
                continue
            far = (run.passed[place].numbers - values).abs().amax(dim=1)
            moved = far > 0
            hardly = moved & (far <= STILL * values.abs().amax())  # by rounding, perhaps
            if moved.any():
                before, after = (x.reshape(-1, *x.shape[-2:]) for x in (was, run.asked[place]))
                changed = (before != after).flatten(1).any(dim=1)  # (h,)
                turned, known = turned_rows(before, after, moved)
                heads.setdefault(place, []).append(changed)
                share = _share((turned != moved)[known & changed[:, None] & ~hardly])
                apart.setdefault(place, []).append(share)
    for place, those in heads.items():
        together = torch.stack(those)
        apart[place].append(_share(together.any(dim=0) != together.all(dim=0)))
    return [place[0] for place, shares in apart.items() if max(shares) > SOME]


def _share(x: Tensor) -> float:
    return float(x.double().mean()) if x.numel() else 0.0


def thrown(first: Run, apart: list[Run]) -> dict[str, str]:
    """The layers that give some tokens as before where half a head of their product is another."""
    found = {}
    for layer, what, number in first.passed:
        gave = (layer, "gave", number)
        if what == "product" and all(gave in run.passed for run in (first, *apart)):
            before = first.passed[gave].numbers
            moved = [(run.passed[gave].numbers != before).any(dim=1) for run in apart]
            if not torch.stack(moved).any(dim=0).all():
                found[layer] = THROWN
    return found


def _depends(x: Tensor, alike: Tensor, eps: float) -> bool:
    """Does what tokens become (runs, N, 8) differ between runs in which their way is alike?"""
    then = x.gather(0, alike[..., None].expand_as(x))
    if x.equal(then):
        return False
    differ = [_differ(now, before, x, eps) for now, before in zip(x, then, strict=True)]
    return bool(x[0].isfinite().all() and torch.stack(differ).any())


def _differ(now: Tensor, before: Tensor, x: Tensor, eps: float) -> Tensor:
    """Which tokens (N, 8) differ in two runs, by more than rounding, of all runs (runs, N, 8)?"""
    moved = (now - x[0]).abs().amax()
    # one unit where a unit is coarse: 16 of bfloat16 are an eighth, more than what is looked for
    rounding = min(16 * eps, max(eps, 1e-5)) * x[0].abs().amax()
    return ~((now - before).abs().amax(dim=1) <= (STILL * moved).maximum(rounding))


def _stays(x: Tensor, ways: Tensor) -> bool:
    """Is a token as it is in all runs in which it is disturbed?"""
    moved = (x - x[0]).abs().amax(dim=2)  # (runs, N)
    still = (moved <= 1e-6 * moved.amax()) | (ways == 0)
    return bool((still.all(dim=0) & ways.any(dim=0)).any())


def drawn(first: dict[str, Tensor], again: dict[str, Tensor], same: float) -> list[str]:
    """The layers that have another map of the same image."""

    def differ(x: Tensor, y: Tensor | None) -> bool:
        if y is None or x.numel() != y.numel():
            return True
        return bool(((x - y.view_as(x)).abs() > same * x.abs().amax()).any())  # nan is any

    return [name for name, x in first.items() if differ(x, again.get(name))]
