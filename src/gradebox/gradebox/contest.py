"""A contest of layers: each student's file in the sandbox, all on seeds that no student knows.

The model, its images, their labels and the training stay out here (``remote``). A finished entry is
kept under the digest of its text and the rules, a training under its own, so a contest that was
stopped goes on.
"""

import json
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from gradebox.ranking import Entry, in_lines, ranked, write_csv
from gradebox.reading import NotReadableError, read_file
from gradebox.remote import SET_UP, EntryError, Remote, count_with_sandbox
from gradebox.sandbox import Limits, Sandbox
from gradebox.session import Session
from gradebox.sources import InputError
from gradebox.store import digest, file_name, write_json
from vitbook.comparison.candidate import prepare
from vitbook.comparison.contest import Ledger, search_rate, train_layer
from vitbook.comparison.tasks import record_of

PROCESSOR_S = 120  # what a layer may take of the processor in one training
YARDSTICKS = {
    "attention": """from vitbook.layers.attention import MultiHeadSelfAttention
class {name}(MultiHeadSelfAttention):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim=embed_dim, num_heads=num_heads)
""",
    "no mixing": """from torch import nn
class {name}(nn.Identity):
    pass
""",
}


@dataclass(frozen=True)
class Rules:
    """What is equal for all entries.

    Args:
        name: The class, in every file.
        task: One of ``TASKS``.
        seeds: Trainings that count, for each entry.
        length: Of the budget, in that of ``python -m vitbook compare``.
        first: The drawn number from which images and trainings have their seeds.
        limits: Of the sandbox.
        sandbox: Where the layers run.
        records: Folder of the records; the package's own, if None.
    """

    name: str
    task: str
    seeds: int
    length: float
    first: int
    limits: Limits
    sandbox: Sandbox
    records: Path | None = None


def hold(
    files: Path,
    out: Path,
    rules: Rules,
    *,
    jobs: int = 1,
    again: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Train what is not trained yet, write ``contest.csv``; 1 when the machine failed for some.

    Raises:
        InputError: There are no files, or the results are those of another contest.
    """
    sources = read_entries(files, rules.name)
    (out / "entries").mkdir(parents=True, exist_ok=True)
    rules = replace(rules, first=drawn_once(out, rules))
    failures = []
    todo = [name for name in sources if again or kept(out, name, sources[name], rules) is None]
    for name in todo if again else ():
        (out / "entries" / f"{file_name(name)}.jsonl").unlink(missing_ok=True)
    context = get_context("spawn")
    with (
        ProcessPoolExecutor(jobs, mp_context=context) as pool,
        tqdm(total=len(todo), unit="entry", disable=not todo) as bar,
    ):
        waiting: dict[Future, str] = {
            pool.submit(enter, name, sources[name], out, rules): name for name in todo
        }
        try:
            for done in as_completed(waiting):
                bar.update()
                if error := done.exception():  # one entry must not end the contest of all others
                    failures.append(f"{waiting[done]}: {type(error).__name__}: {error}")
        except BaseException:  # Ctrl-C: nothing else begins
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    found = [kept(out, name, source, rules) for name, source in sources.items()]
    rows = ranked([entry for entry in found if entry is not None], tuple(YARDSTICKS))
    write_csv(out / "contest.csv", rows)
    for line in [
        *in_lines(rows),
        *(f"not run, by this machine's fault: {one}" for one in sorted(failures)),
    ]:
        say(line)
    return 1 if failures else 0


def read_entries(folder: Path, name: str) -> dict[str, str]:
    """The text of each student's file, and of the yardsticks beside them."""
    if not name.isidentifier():
        raise InputError(f"--contest needs the name of a class, got {name!r}")
    if not folder.is_dir():
        raise InputError(f"{folder} must be a folder with a file STUDENT.py for each student")
    sources = {f"({key})": text.format(name=name) for key, text in YARDSTICKS.items()}
    for path in sorted(folder.glob("*.py")):
        try:
            sources[path.stem] = read_file(path).decode("utf-8", "replace")
        except NotReadableError as error:
            raise InputError(f"{path}: {error}") from error
    if len(sources) == len(YARDSTICKS):
        raise InputError(f"{folder} holds no STUDENT.py")
    return sources


def drawn_once(out: Path, rules: Rules) -> int:
    """The number of this folder's contest; drawn when the folder is new.

    Raises:
        InputError: The folder holds a contest with other rules.
    """
    path, asked = out / "contest.json", {"layer": rules.name, "task": rules.task}
    if not path.exists():
        write_json(path, {**asked, "first": rules.first or secrets.randbelow(2**31)})
    told = json.loads(path.read_text(encoding="utf-8"))
    if {key: told.get(key) for key in asked} != asked:
        raise InputError(
            f"--out {out} holds a contest of {told.get('layer')} by {told.get('task')}"
        )
    return told["first"]


def key_of(source: str, rules: Rules) -> str:
    how = repr(
        (rules.name, rules.task, rules.seeds, rules.length, rules.first, asdict(rules.limits))
    )
    return digest(source.encode("utf-8", "replace"), how.encode())


def kept(out: Path, name: str, source: str, rules: Rules) -> Entry | None:
    """What an earlier run found for the same text and rules."""
    try:
        told = json.loads((out / "entries" / f"{file_name(name)}.json").read_text("utf-8"))
        return Entry(**told["entry"]) if told["key"] == key_of(source, rules) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def enter(name: str, source: str, out: Path, rules: Rules) -> Entry:
    """Run one entry to its end and keep what came out, be it a sentence.

    Raises:
        MachineError: The sandbox does not work.
    """
    base = out / "entries" / file_name(name)
    try:
        entry = contested(name, source, base, rules)
    except (EntryError, ValueError) as error:
        entry = Entry(name, said=str(error))
    write_json(
        base.with_name(f"{base.name}.json"), {"key": key_of(source, rules), "entry": asdict(entry)}
    )
    return entry


def contested(name: str, source: str, base: Path, rules: Rules) -> Entry:
    """Width, updates, the search for a rate, then the trainings that count."""
    record = record_of(rules.task, rules.records)
    file = base.with_name(f"{base.name}.py")
    file.write_text(source, "utf-8", "replace")
    with Session(rules.sandbox, rules.limits, SET_UP) as session:
        remote = Remote(session, source, rules.name)
        place = f"{file}:{rules.name}"
        plan = prepare(place, record, rules.task, layer=remote, count=count_with_sandbox)
    plan = replace(plan, steps=round(rules.length * plan.steps))
    ledger = Ledger(base.with_name(f"{base.name}.jsonl"), plan, source)

    def trained(rate: float, seed: int, part: str) -> dict:
        run = f"{part} {rate:g} {seed} of {rules.first}"
        if run not in ledger.known:
            with Session(rules.sandbox, rules.limits, SET_UP) as session:
                remote = Remote(session, source, rules.name)
                ledger.add(run, train_layer(remote, plan, rate, seed, part, record, rules.first))
        return ledger.known[run]

    def loss_at(rate: float) -> float:
        trials = record.settings["trial_seeds"]
        seeds = range(rules.first + 1000, rules.first + 1000 + trials)
        return sum(trained(rate, seed, "validation")["loss"] for seed in seeds) / trials

    rate, at_edge = search_rate(record.choice, loss_at)
    seeds = range(rules.first + 100, rules.first + 100 + rules.seeds)
    updates = [trained(rate, seed, "test")["half"] or plan.steps for seed in seeds]
    times = [each / plan.steps for each in updates]
    return Entry(name, times, plan.width, plan.parameters, plan.steps, rate, at_edge)
