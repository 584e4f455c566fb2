"""How a script in `experiments` declares what it compares and measures."""

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from experiments.machinery.choose import Choice

Log = Callable[[float], None]  # told the loss after each step
FOLDER = Path(__file__).resolve().parents[1]
_TAKEN = {"metric", "confidence", "first", "second"}  # argument names of Record's methods


@dataclass(frozen=True)
class Outcome:
    """What one run gives back: numbers or nested lists by metric, and perhaps a state dict."""

    metrics: dict[str, Any]
    weights: dict[str, Tensor] | None = None


@dataclass(frozen=True)
class MustBeat:
    """The whole model has to beat logistic regression; `recording` refuses a record otherwise.

    Args:
        whole: the condition with the whole model. Where only a longer training beats the other,
            the condition with the longer training, and the page says so.
        data: the images, as the record `baselines` names them.
    """

    whole: dict
    data: str


@dataclass(frozen=True)
class Experiment:
    """One recorded experiment.

    Args:
        what: one sentence for the reader.
        chosen_on: which data the settings were chosen on, in a sentence.
        metrics: each measured number or curve, with a few words on what it is.
        conditions: what is compared; each a dict of plain values such as {"model": "vit"}.
        seeds: each condition is run with each of them.
        run: `run(condition, seed, log, scale) -> Outcome`. It calls `log(loss)` after each step,
            and multiplies its numbers of steps by `scale` (1.0 except in tests; see `scaled`).
            What `choose` has chosen for the condition is one more argument, by its name.
        data: gives the checksum of each set that is learned from, by name; see `checksum`.
        settings: what a reader needs to know or to rebuild the model; plain values.
        once: conditions without randomness, run with the first seed only.
        replay: condition and seed whose first losses are kept, to tell later whether changed
            code still does the same; None when nothing can be replayed.
        keep: weights to store: name -> (condition, seed).
        steps: how many steps a condition takes, for the progress bar; without it runs are counted.
        workers: processes side by side; 1 for experiments that measure time.
        timing: whether it measures time or memory: then it has no golden replay, only its date.
        choose: the search for a setting that the runs of `conditions` (not `once`) use.
        must_beat: another record's model; a record that does not beat it is not written.
    """

    what: str
    chosen_on: str
    metrics: dict[str, str]
    conditions: Sequence[dict]
    seeds: Sequence[int]
    run: Callable[..., Outcome]
    data: Callable[[], dict[str, str]] = dict
    settings: dict = field(default_factory=dict)
    once: Sequence[dict] = ()
    replay: tuple[dict, int] | None = None
    keep: dict[str, tuple[dict, int]] = field(default_factory=dict)
    steps: Callable[[dict], int] | None = None
    workers: int = 2
    timing: bool = False
    choose: Choice | None = None
    must_beat: MustBeat | None = None

    def __post_init__(self) -> None:
        for condition in (*self.conditions, *self.once):
            if taken := _TAKEN & condition.keys():
                raise ValueError(f"conditions may not use the name {taken.pop()!r}")
        for condition, seed in (*self.keep.values(), *([self.replay] if self.replay else [])):
            if (condition, seed) not in self.runs:
                raise ValueError(f"there is no run of {condition} with seed {seed}")
        if self.choose and self.choose.seed in self.seeds:
            raise ValueError(f"choose needs a seed of its own, {self.choose.seed} is one of a run")
        if self.choose and (not self.replay or self.replay[0] in self.once):
            raise ValueError("an experiment that chooses needs a run of its conditions to replay")
        if self.must_beat and self.must_beat.whole not in self.conditions:
            raise ValueError(f"must_beat: there is no condition {self.must_beat.whole}")

    @property
    def runs(self) -> list[tuple[dict, int]]:
        """All (condition, seed), seed by seed, so that early results cover every condition."""
        seeded = [(condition, seed) for seed in self.seeds for condition in self.conditions]
        return [(condition, self.seeds[0]) for condition in self.once] + seeded

    @property
    def plan(self) -> dict | None:
        """The search in plain values; None where nothing is chosen."""
        return self.choose.plan(self.conditions) if self.choose else None

    def chosen_for(self, condition: dict, winners: Sequence[dict]) -> dict:
        """The chosen setting of a condition as arguments for `run`; {} where nothing was chosen."""
        if not self.choose or condition in self.once:
            return {}
        (value,) = (w["value"] for w in winners if w["condition"] == self.choose.arm(condition))
        return {self.choose.setting: value}


def checksum(*tensors: Tensor) -> str:
    """SHA-256 over the types, shapes and bytes of some tensors."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def scaled(count: int, scale: float) -> int:
    """A number of steps (or images), made smaller for a test; at least 2."""
    return max(2, round(count * scale))


def logged(log: Log, label_smoothing: float = 0.0) -> Callable:
    """Cross-entropy that tells `log` its value at each step; for `train(loss_function=...)`."""

    def loss_function(logits: Tensor, labels: Tensor) -> Tensor:
        loss = F.cross_entropy(logits, labels, label_smoothing=label_smoothing)
        log(loss.item())
        return loss

    return loss_function


def script_of(name: str) -> Path:
    """The script of an experiment, given by its name or by its path."""
    path = Path(name) if name.endswith(".py") else _scripts().get(name)
    if path is None or not path.is_file():
        raise ValueError(f"there is no experiment {name!r}; there are: {', '.join(all_names())}")
    return path.resolve()


def all_names() -> list[str]:
    """Every experiment in the folders, by the name of its record."""
    return sorted(_scripts())


def _scripts() -> dict[str, Path]:
    """The modules in the folders that declare an EXPERIMENT; what they share declares none."""
    modules = [path for path in FOLDER.glob("*/*.py") if path.parent.name != "machinery"]
    scripts = [path for path in modules if "\nEXPERIMENT = " in path.read_text(encoding="utf-8")]
    by_name = {path.stem: path for path in scripts}
    if len(by_name) < len(scripts):
        twice = sorted({str(path) for path in scripts} - {str(path) for path in by_name.values()})
        raise ValueError(f"two experiments have one name: {', '.join(twice)}")
    return by_name


def load_experiment(name: str) -> Experiment:
    """Import the script and return its `EXPERIMENT`.

    The source itself is compiled: Python's kept bytecode is told from that of an edited script by
    size and second only, and a digit that is changed at once changes neither.
    """
    path = script_of(name)
    spec = importlib.util.spec_from_file_location(f"experiment_{path.stem}", path)
    assert spec is not None  # for a file that ends in .py there is one
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    exec(compile(path.read_bytes(), path, "exec"), vars(module))
    return module.EXPERIMENT
