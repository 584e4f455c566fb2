"""One token mixer against those of a record: the same block, task, budget and search."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache, partial
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm

from vitbook import require
from vitbook.book.intervals import Interval, student_interval
from vitbook.book.records import Record, load_record
from vitbook.comparison.layer import made, read_layer, require_mixer
from vitbook.comparison.recall_task import TASKS, PatchAnswers, answered, fit_recall
from vitbook.comparison.verdict import BESIDE, WHOLE, Contest, Verdict
from vitbook.data import ImageSet
from vitbook.data.recall import recall
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig

TOLERANCE = 0.05  # of the parameters
WIDTHS = range(16, 161, 2)


def prepare(
    place: str,
    record: Record,
    task: str = "places",
    *,
    layer: Callable[..., nn.Module] | None = None,
    count: Callable[[nn.Module, Tensor], int] = count_multiplies,
) -> Contest:
    """Choose width and updates for a layer.

    Args:
        place: "file.py:Class".
        record: Of the layers beside it.
        task: One of ``TASKS``.
        layer: What makes the layer; if not given, the class that the place names.
        count: Multiplications of a model for images.

    Raises:
        ValueError: It is no token mixer, or no width comes near the parameters.
    """
    layer, whole = layer or read_layer(place), record.settings["models"][WHOLE]
    tokens = (
        record.settings["images"]["image_size"] // record.settings["images"]["patch_size"]
    ) ** 2
    found, said = {}, ""
    for width in WIDTHS:
        try:
            found[width] = count_parameters(mixer_model(layer, width, 0, record))
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:
            said = f"; D = {width}: {' '.join(str(error).split())[:120]}"
    off = {width: abs(number / whole["parameters"] - 1) for width, number in found.items()}
    if not off:
        raise ValueError(f"LAYER cannot be made with any even width from 16 to 160{said}")
    width = min(off, key=off.__getitem__)
    if off[width] > TOLERANCE:
        raise ValueError(
            f"no width gives about {whole['parameters']:,} parameters: the nearest, D = {width}, "
            f"gives {found[width]:,}"
        )
    grid = math.isqrt(tokens)
    require_mixer(
        made(layer, embed_dim=width, num_tokens=tokens, grid=(grid, grid), num_heads=2),
        tokens,
        width,
    )
    model = mixer_model(layer, width, 0, record).eval()
    size = record.settings["images"]["image_size"]
    multiplies = count(model, torch.zeros(1, 3, size, size))
    updates = record.settings["training"]["steps"]
    steps = round(updates * whole["multiplies"] / multiplies)
    return Contest(place, task, width, found[width], multiplies, steps, updates)


def mixer_model(
    layer: Callable[..., nn.Module], width: int, seed: int, record: Record
) -> nn.Module:
    """The ViT of the record with another layer in the place of its attention."""
    torch.manual_seed(seed)
    sizes, whole = record.settings["images"], record.settings["models"][WHOLE]
    side = grid_of(record)
    offered = {"num_tokens": side**2, "grid": (side, side)}
    model = VisionTransformer(
        **sizes,
        embed_dim=width,
        depth=len(whole["layers"]),
        num_heads=whole["num_heads"],
        mlp_ratio=whole["mlp_ratio"],
        pool="mean",
        positions=whole["positions"],
        position_std=whole["position_std"],
        attn_layer=partial(made, layer, **offered),
    )
    return PatchAnswers(model)


def grid_of(record: Record) -> int:
    """Patches in a row."""
    return record.settings["images"]["image_size"] // record.settings["images"]["patch_size"]


@lru_cache(maxsize=3)
def recall_images(partner: str, count: int, seed: int) -> ImageSet:
    """The images of the record, drawn again."""
    found = recall(count, seed=seed, partner=partner)
    return ImageSet(2 * found.images - 1, found.labels)


def train_one(contest: Contest, rate: float, seed: int, part: str, folder: Path | None) -> dict:
    """One training of the layer in the file, on the images of the record."""
    record = load_record(TASKS[contest.task].record, folder)
    first = record.settings["first_seed"]
    return train_layer(read_layer(contest.place), contest, rate, seed, part, record, first)


def train_layer(
    layer: Callable[..., nn.Module],
    contest: Contest,
    rate: float,
    seed: int,
    part: str,
    record: Record,
    first: int,
) -> dict:
    """One training, judged on one part: loss and share of right answers, over all patches.

    Args:
        layer: What makes the layer.
        contest: Its width and updates.
        rate: The learning rate.
        seed: Of the start and the order.
        part: "validation" or "test".
        record: Whose task, counts and budget these are.
        first: Seed of the images for training; the other parts have those after it.
    """
    torch.set_num_threads(1)
    task = TASKS[contest.task]
    counts, training = record.settings["counts"], record.settings["training"]
    sets = {
        name: recall_images(task.partner, counts[name], first + i)
        for i, name in enumerate(counts)
        if name in ("train", part)
    }
    model = mixer_model(layer, contest.width, seed, record)
    config = TrainConfig(
        steps=contest.steps,
        batch_size=training["batch_size"],
        warmup_steps=training["warmup_steps"],
        learning_rate=rate,
        seed=seed,
    )
    try:
        fit_recall(model, sets["train"], config, lambda loss: None)
    except ArithmeticError:  # diverged
        return {"loss": math.inf, "accuracy": 0.0}
    loss, accuracy = answered(model, sets[part])
    return {"loss": loss, "accuracy": accuracy}


def search_rate(choice: dict, loss_at: Callable[[float], float]) -> tuple[float, bool]:
    """The rate of least loss on the record's grid, widened while the best is at its edge.

    Args:
        choice: The grid and how many rates may be tried, from the record.
        loss_at: The loss of a rate.

    Returns:
        The rate, and whether it still lies at the edge.
    """
    losses: dict[float, float] = {}
    wanted = list(choice["grid"])
    while wanted:
        losses |= {rate: loss_at(rate) for rate in wanted}
        best, low, high = min(losses, key=losses.__getitem__), min(losses), max(losses)
        wanted = [best / 2] if best == low else [best * 2] if best == high else []
        wanted = wanted if len(losses) < choice["limit"] else []
    return best, best in (low, high)


class Ledger:
    """What was trained so far, one line for each training, so that a stopped contest goes on."""

    def __init__(self, path: Path, contest: Contest):
        source = Path(contest.place.rpartition(":")[0]).read_bytes()
        self.path, self.key = path, blake2b(source + repr(contest).encode()).hexdigest()[:16]
        self.known: dict[str, dict] = {}
        for line in path.read_text().splitlines() if path.is_file() else ():
            row = json.loads(line)
            if row["layer"] == self.key:
                self.known[row["run"]] = row["found"]

    def add(self, run: str, found: dict) -> None:
        """Keep the result of a training; it is on the disk on return."""
        self.known[run] = found
        with open(self.path, "a") as file:
            file.write(json.dumps({"layer": self.key, "run": run, "found": found}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def compare(
    place: str,
    out: Path,
    *,
    task: str = "places",
    workers: int | None = None,
    progress: bool | None = None,
    folder: Path | None = None,
) -> Verdict:
    """Train a layer as the record's layers were trained, and set it beside them.

    The learning rate is searched as theirs was: the record's grid, widened while the best value is
    at its edge, each value by the mean validation loss of as many seeds. Then the record's seeds.

    Args:
        place: "file.py:Class".
        out: Folder for the trainings that are done; a second call goes on from there.
        task: "places" or "labels", by which a patch names another one; see ``TASKS``.
        workers: Processes; as many as there are cores, if not said.
        progress: Whether a bar shows the time that is left; if not said, on a terminal.
        folder: Of the record; the package's own, if not said.

    Returns:
        The :class:`Verdict`.

    Raises:
        ValueError: The layer cannot be compared; the message says why.
    """
    record = load_record(TASKS[require.one_of("task", task, tuple(TASKS))].record, folder)
    contest = prepare(place, record, task)
    out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(out / "trainings.jsonl", contest)
    choice, trials = record.choice, record.settings["trial_seeds"]
    seeds = [run["seed"] for run in record.runs if run["condition"] == {"model": WHOLE}]
    context = get_context("spawn")
    bar = tqdm(
        total=len(choice["grid"]) * trials + len(seeds),
        disable=None if progress is None else not progress,
        unit="training",
    )
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context) as pool, bar:

        def run_all(jobs: list[tuple[float, int, str]]) -> list[dict]:
            keys = {job: f"{job[2]} {job[0]:g} {job[1]}" for job in jobs}
            open_ = {
                pool.submit(train_one, contest, *job, folder): job
                for job in jobs
                if keys[job] not in ledger.known
            }
            bar.update(len(jobs) - len(open_))
            for done in as_completed(open_):
                ledger.add(keys[open_[done]], done.result())
                bar.update()
            return [ledger.known[keys[job]] for job in jobs]

        def loss_at(rate: float) -> float:
            if rate not in choice["grid"]:
                bar.total += trials
            tried = run_all([(rate, choice["seed"] + i, "validation") for i in range(trials)])
            return sum(one["loss"] for one in tried) / trials

        best, at_edge = search_rate(choice, loss_at)
        final = run_all([(best, seed, "test") for seed in seeds])
    accuracies = [one["accuracy"] for one in final]
    rows: list[tuple[str, Interval, Interval | None]] = []
    for other in BESIDE:
        theirs = record.values("test_accuracy", model=other)
        difference = student_interval([a - b for a, b in zip(accuracies, theirs, strict=True)])
        rows.append((other, student_interval(theirs), difference))
    rows.append((place.rpartition(":")[2], student_interval(accuracies), None))
    return Verdict(contest, best, at_edge, tuple(accuracies), tuple(rows))
