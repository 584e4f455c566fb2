"""A record's golden replay: its experiment in miniature, which runs anywhere in a second or two.

The very functions that made the record make a few updates, on generated images instead of data sets
that have to be fetched, in double precision, where another formula shows at once and another
processor does not. The losses and all that is measured are kept beside the script. While they
stay the same, the record is what the present code computes; how the code is written does not
matter. Numbers that the miniature cannot reach are compared where they are declared.
"""

import ast
import contextlib
import math
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from experiments.machinery.experiment import Experiment, Log, script_of
from experiments.machinery.generated import generated_sets
from experiments.machinery.worker import tried, versions
from vitbook.book.records import FOLDER as RECORDS
from vitbook.training import TrainConfig, train

STEPS = 4  # updates of a run
LEAST = 3  # of them, in every training of a run: with two, neither betas nor schedule show
LARGEST = 0.64  # scale, for experiments whose data are few already
TABLE = 15  # conditions; of a larger table some are run
MANY = 12  # numbers; of a longer list the golden replay keeps four that depend on all of them
RTOL, ATOL = 1e-9, 1e-11  # seen between AVX-512, AVX2 and plain kernels: 2e-13
SCALED = ("steps", "epochs", "batch_size")  # the miniature's own


def golden_of(
    experiment: Experiment,
    winners: Sequence[dict] = (),
    scales: dict[str, float] | None = None,
    only: Collection[str] | None = None,
) -> dict:
    """Run an experiment in miniature.

    Args:
        experiment: its conditions are run with the first seed, and one trial of its search.
        winners: what the search chose, from the record.
        scales: those of a golden replay that was kept, by the name of the run; without them each
            run is as small as three updates allow.
        only: the names of some runs; without it all of them.

    Returns:
        {"runs": {name: {"scale", "losses", "metrics"}}, "recipes", "constants", "versions"},
        plain values.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    runs: dict[str, dict] = {}
    recipes: list[dict] = []
    made: list[dict] = []
    updates: list[int] = []
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            generated_sets(Path(folder)),
            _double_precision(),
            _short_warmup(made, updates),
            _short_epochs(train),
        ):
            for name, steps, run in _runs(experiment, winners):
                if only is not None and name not in only:
                    continue
                runs[name] = _smallest(run, steps, (scales or {}).get(name), made, updates)
                recipes += [recipe for recipe in made if recipe not in recipes]
    finally:
        torch.set_num_threads(threads)
    constants = dict(sorted(_constants(experiment).items()))
    return {"runs": runs, "recipes": recipes, "constants": constants, "versions": versions()}


def scales_of(kept: dict | None) -> dict[str, float] | None:
    """The scales that a kept golden replay was made with."""
    return kept and {name: run["scale"] for name, run in kept["runs"].items()}


def golden_path(name: str, records: Path = RECORDS) -> Path:
    """Where a golden replay is kept: beside the script; of records elsewhere, in a folder there."""
    if records == RECORDS:
        return script_of(name).with_suffix(".golden.json")
    return records / "golden" / f"{Path(name).stem}.json"


def _runs(experiment: Experiment, winners: Sequence[dict]) -> Iterator[tuple[str, int, Callable]]:
    """Name, steps and `run(log, scale) -> metrics` of each condition, and of one trial."""
    seed, choice = experiment.seeds[0], experiment.choose
    for condition in (*experiment.once, *_thinned(experiment.conditions)):
        steps = experiment.steps(condition) if experiment.steps else 0
        settings = experiment.chosen_for(condition, winners) if winners else {}
        if choice and not settings and condition not in experiment.once:
            settings = {choice.setting: choice.grid[choice.setting][0]}

        def run(
            log: Log, scale: float, condition: dict = condition, settings: dict = settings
        ) -> dict:
            return experiment.run(condition, seed, log, scale, **settings).metrics

        yield _named(condition, settings), steps, run
    if choice:
        assert experiment.replay is not None
        condition = choice.arm(experiment.replay[0])
        settings = {choice.setting: choice.grid[choice.setting][0]}
        given = (condition, choice.seed, 1.0, settings)
        steps = experiment.steps(condition) if experiment.steps else 0
        yield (
            f"trial of {_named(condition, settings)}",
            steps,
            lambda log, scale: tried(experiment, *given, log, scale),
        )


def _thinned(conditions: Sequence[dict]) -> list[dict]:
    """Of a large table enough conditions that every value of every setting is run once."""
    if len(conditions) <= TABLE:
        return list(conditions)
    kept: list[dict] = []
    seen: set[tuple[str, str]] = set()
    for condition in conditions:
        values = {(key, repr(value)) for key, value in condition.items()}
        if not values <= seen:
            kept.append(condition)
            seen |= values
    return kept


def _named(condition: dict, settings: dict) -> str:
    return ", ".join(f"{key} {value}" for key, value in {**condition, **settings}.items())


def _smallest(
    run: Callable, steps: int, scale: float | None, made: list[dict], updates: list[int]
) -> dict:
    """A run as small as can be, or of the scale that was kept.

    `made` are then its recipes, and `updates` the numbers of steps that its trainings make.
    """
    asked, scale = scale, scale or (STEPS / steps if steps > STEPS else 0.02)
    while True:
        losses: list[float] = []
        made.clear()
        updates.clear()
        try:
            metrics = run(lambda loss, losses=losses: losses.append(float(loss)), scale)
        except (IndexError, ValueError):  # perhaps there are too few images for all classes
            if asked or scale >= LARGEST:
                raise
        else:
            enough = min(len(losses), *updates, LEAST) == LEAST
            if asked or not losses or enough or scale >= LARGEST:
                break
        scale = min(LARGEST, 2 * scale)
    measured = {name: _condensed(value) for name, value in sorted(metrics.items())}
    return {"steps": steps, "scale": scale, "losses": _condensed(losses), "metrics": measured}


def _condensed(value: Any) -> list:
    """The numbers of a metric; of a long list the count and three sums that each number moves."""
    numbers = [math.nan if x is None else x for x in _flat(value)]
    if len(numbers) > MANY and not any(isinstance(x, str) for x in numbers):
        values, places = np.asarray(numbers, dtype=float), np.arange(1, len(numbers) + 1)
        sums = (values.sum(), (values**2).sum(), (values * np.cos(places)).sum())
        numbers = [len(numbers), *map(float, sums)]
    return [x if isinstance(x, str) or math.isfinite(x) else str(x) for x in numbers]


def _flat(value: Any) -> Iterator:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def moved(then: dict, now: dict) -> list[str]:
    """What a golden replay does differently from the one that was kept, in sentences.

    A metric or an argument of a recipe that has been added since is no difference, nor is a
    constant that has another name or place.
    """
    found = []
    for name, before in then["runs"].items():
        after = now["runs"].get(name)
        if after is None:
            found.append(f"{name}: there is no such run any more")
            continue
        if after["steps"] != before["steps"]:
            found.append(f"{name}: {after['steps']} updates instead of {before['steps']}")
        # The losses stand apart: many records have a metric "loss", too, of few digits.
        compared = [("loss", before["losses"], after["losses"])]
        compared += [(what, v, after["metrics"].get(what)) for what, v in before["metrics"].items()]
        found += [
            f"{name}: {what} is {_short(new)}, was {_short(was)}"
            for what, was, new in compared
            if not _same(was, new)
        ]
    found += [f"{name}: a new run" for name in now["runs"].keys() - then["runs"].keys()]
    if len(then["recipes"]) != len(now["recipes"]):
        found.append(f"{len(now['recipes'])} recipes, there were {len(then['recipes'])}")
    for before, after in zip(then["recipes"], now["recipes"], strict=False):
        found += [
            f"a recipe has {key} = {after.get(key)}, it was {value}"
            for key, value in before.items()
            if after.get(key) != value
        ]
    before, after = (golden.get("constants", {}) for golden in (then, now))
    found += [
        f"{name} is {after[name]}, it was {value}"
        for name, value in before.items()
        if name in after and not _same([value], [after[name]])
    ]
    return found


def _same(then: list, now: list | None) -> bool:
    if now is None or len(then) != len(now):
        return False
    return all(
        a == b if isinstance(a, str) or isinstance(b, str) else np.isclose(b, a, RTOL, ATOL)
        for a, b in zip(then, now, strict=True)
    )


def _short(values: list | None) -> str:
    if values is None:
        return "missing"
    words = [x if isinstance(x, str) else f"{x:.10g}" for x in values]
    return ", ".join(words[:4]) + (" ..." if len(words) > 4 else "")


def _constants(experiment: Experiment) -> dict[str, float]:
    """The numbers in capitals of a script and of all it takes from this folder, by their names.

    A limit of 2,000 images changes nothing in miniature, so it is compared by itself.
    """
    modules = _modules("experiment")
    used = [module for module in modules if vars(module).get("EXPERIMENT") is experiment]
    for module in used:
        values = list(vars(module).values())
        names = {getattr(v, "__module__", getattr(v, "__name__", None)) for v in values}
        used += [other for other in modules if other.__name__ in names and other not in used]
    return {
        f"{module.__name__.removeprefix('experiment_').rpartition('.')[2]}.{name}": number
        for module in used
        for constant in _declared(module)
        for name, number in _numbers(constant, getattr(module, constant, None))
    }


def _declared(module: ModuleType) -> list[str]:
    """The names in capitals that a module gives itself; those that it imports are another's."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    given = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    names = [part for node in given for part in ast.walk(node) if isinstance(part, ast.Name)]
    return [name.id for name in names if isinstance(name.ctx, ast.Store) and name.id.isupper()]


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The numbers in a constant; inner ones have the names or places of their parts."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        yield name, value
    parts = dict(enumerate(value)) if isinstance(value, (tuple, list)) else value
    if isinstance(parts, dict):
        for key, part in parts.items():
            yield from _numbers(f"{name}.{key}", part)


@contextlib.contextmanager
def _double_precision() -> Iterator[None]:
    """Every number that comes into being inside is of 64 bits, whatever asks for 32.

    Nothing is rounded to 32 on the way, so that a conversion that changes nothing is no change.
    """

    def widened(value: Any) -> Any:
        return torch.float64 if value is torch.float32 else value

    class Double(TorchFunctionMode):
        def __torch_function__(
            self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            function = Tensor.double if function is Tensor.float else function
            named = {name: widened(value) for name, value in (kwargs or {}).items()}
            made = function(*map(widened, args), **named)
            single = isinstance(made, Tensor) and made.dtype == torch.float32
            return made.double() if single else made

    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    _forget()
    try:
        with Double():
            yield
    finally:
        torch.set_default_dtype(default)
        _forget()


def _forget() -> None:
    """Images that an experiment keeps in memory are of one precision."""
    for module in _modules("experiment"):
        for value in list(vars(module).values()):
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()


def _modules(*beginnings: str) -> list[ModuleType]:
    """What is imported, by the beginning of its name."""
    return [module for name, module in sys.modules.items() if name.startswith(beginnings)]


@contextlib.contextmanager
def _short_warmup(made: list[dict], updates: list[int]) -> Iterator[None]:
    """Note each recipe and its updates; a warm-up longer than half of those becomes that half.

    So the miniature takes the way down, too. The warm-up that was asked for is noted.
    """
    check = TrainConfig.__post_init__

    def shorten(config: TrainConfig) -> None:
        check(config)
        asked = {key: value for key, value in asdict(config).items() if key not in SCALED}
        asked = {k: list(v) if isinstance(v, tuple) else v for k, v in asked.items()}
        if asked not in made:
            made.append(asked)
        if config.steps:
            updates.append(config.steps)
            short = min(config.warmup_steps, config.steps // 2)
            object.__setattr__(config, "warmup_steps", short)

    with patch.object(TrainConfig, "__post_init__", shorten):
        yield


@contextlib.contextmanager
def _short_epochs(whole: Callable) -> Iterator[None]:
    """The last update of a training belongs to a second epoch, and one image fills no batch.

    So many images are taken evenly from those that the experiment gives, some of them several times
    where these are fewer; how many they are still counts. `whole` is the function that trains.
    """

    def short(
        model: nn.Module, images: Tensor, labels: Tensor, config: TrainConfig, **options: Any
    ) -> Any:
        before_the_last = max(1, config.total_steps(len(images)) - 1)
        count = before_the_last * config.batch_size + 1
        places = torch.arange(count) * len(images) // count
        return whole(model, images[places], labels[places], config, **options)

    with contextlib.ExitStack() as stack:
        for module in _modules("experiment", "vitbook"):
            for name in [name for name, value in vars(module).items() if value is whole]:
                stack.enter_context(patch.object(module, name, short))
        yield
