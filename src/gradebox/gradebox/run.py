"""The run: check everything, mark what is not marked yet, write what follows from it.

Marking has phases, and the whole class goes through each before anybody begins the next: what a
process in a later one knows must reach nobody in an earlier one (``gradebox.marking``). What a
phase gives is stored at once; grades, pages and sheets are made from the stored results at the end.
So a run may be killed at any time and started again, a class may be marked in shards, and a new
roster, another late policy or marks given by hand cost no second. The order holds within one run:
shards want a machine each.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from gradebox.collect import Found
from gradebox.finish import finish, some
from gradebox.grades import Attempt
from gradebox.plan import Plan, read_inputs
from gradebox.reading import NotReadableError
from gradebox.result import Result
from gradebox.sandbox import forget
from gradebox.sources import InputError
from gradebox.store import Store, package_key

Questions = Sequence[str] | None  # some, or all
TRACES = (
    "notebooks that were marked here before may have left word on this machine; rows that were "
    "marked after them say so. In bubblewrap root has it forgotten, and so has a restart"
)
LATE = "marked after others on a machine where these may have left word: compare with them"


@dataclass(frozen=True)
class Marker:
    """What marks: a notebook, questions, and what its phases gave so far -> the result, or what the
    next of them has to know (its number is "phase")."""

    go_on: Callable[[Path, Questions, dict | None], Result | dict]
    phases: int = 1
    sandbox: str = ""


def run(plan: Plan, marker: Callable[[], Marker], say: Callable[[str], None] = print) -> int:
    """Mark and write; 0 when all is done, 1 when the machine failed for some.

    Args:
        plan: What to do.
        marker: Called once, when all inputs are found good: gives what marks.
        say: Where sentences about the run go.

    Raises:
        InputError: An input cannot be used, or there is no sandbox; nothing was written.
    """
    inputs = read_inputs(plan, say)
    marks = marker()
    store = Store(plan.out, package_key(plan.package, plan.limits, plan.unsafe))
    try:
        store.make()
    except OSError as error:
        raise InputError(f"--out {plan.out} cannot be written ({error.strerror})") from error
    number, of = plan.shard
    attempts, failures = mark_all(inputs.found[number - 1 :: of], plan, store, marks, say)
    if plan.shard == (1, 1):
        finish(plan, inputs, store, attempts, say)
    else:
        say(f"shard {number} of {of} is done; when all are, run the same without --shard")
    for failure in failures[:5]:
        say(f"not marked: {failure}")
    if failures:
        say(
            f"{some(len(failures), 'notebook')} not marked, by this machine's fault: start it again"
        )
    return 1 if failures else 0


def mark_all(
    found: Sequence[Found], plan: Plan, store: Store, marker: Marker, say: Callable[[str], None]
) -> tuple[list[Attempt], list[str]]:
    """A result for each attempt, and what the machine could not do."""
    keys: list[str] = []
    problems: list[str] = []
    for one in found:
        try:
            keys.append(store.keep(one.read()))
            problems.append("")
        except NotReadableError as error:
            keys.append("")
            problems.append(str(error))
    unique = list(dict.fromkeys(filter(None, keys)))
    todo = [key for key in unique if plan.again or store.load(key) is None]
    if len(todo) < len(unique):
        say(f"marked already: {len(unique) - len(todo)} of {some(len(unique), 'notebook')}")
    late = bool(todo) and traces(store, marker.sandbox)
    if late:
        say(TRACES)
    failures = []
    total = len(todo) * marker.phases
    if plan.again:
        for key in todo:
            store.begin_anew(key)
    with (
        ThreadPoolExecutor(plan.jobs) as pool,
        tqdm(total=total, unit="run", mininterval=_interval(), disable=not todo) as bar,
    ):
        for phase in range(marker.phases):  # all of the class, before anybody begins the next
            waiting = {pool.submit(_go_on, key, phase, plan, store, marker, late) for key in todo}
            todo = []
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for key, words in (one.result() for one in done):
                        failures += [words] if words else []
                        todo += [key] if key else []
                        bar.update(1 if key else marker.phases - phase)
            except BaseException:  # Ctrl-C: what has begun ends, nothing else begins
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    attempts = []
    for one, key, problem in zip(found, keys, problems, strict=True):
        attempts.append(Attempt(one, key, store.load(key) if key else None, problem))
    return attempts, failures


def traces(store: Store, sandbox: str) -> bool:
    """May what the later phases of an earlier run looked at still be seen in our first? It is
    forgotten here if that can be. Behind Landlock, files keep the time when they were read."""
    used, here = store.used(), store.used_since_start()
    if sandbox == "unsafe":  # which hides nothing from anybody
        return False
    forgotten = here and forget()
    return used if sandbox == "landlock" else here and not forgotten


def _interval() -> float:
    return 0.2 if sys.stderr.isatty() else 20.0


def _go_on(
    key: str, phase: int, plan: Plan, store: Store, marker: Marker, late: bool
) -> tuple[str, str]:
    """Mark a notebook in one phase, and store what came of it; its key if it has to go on, and what
    the machine could not do. It is ``late`` if that was so in its first phase."""
    earlier = store.earlier(key) if plan.questions else None
    if earlier and earlier.status != "ok":
        earlier = None  # nothing in it to keep
    asked = list(plan.questions) if earlier else None
    told = store.so_far(key)
    so_far = told["so_far"] if told and told.get("asked") == asked else None
    late = bool(told and told.get("late")) if so_far else late
    if so_far and so_far["phase"] > phase:
        return key, ""
    try:
        result = marker.go_on(store.notebook(key), asked, so_far)
    except Exception as error:  # one submission must not end the marking of all others
        return "", f"{key}.ipynb: {type(error).__name__}: {error}"
    if isinstance(result, dict):
        store.keep_so_far(key, {"asked": asked, "late": late, "so_far": result})
        return key, ""
    if result.status == "crashed":
        return "", f"{key}.ipynb: {result.detail}"
    if late:
        result = replace(result, notes=[*result.notes, LATE])
    store.save(key, merged(earlier, result, plan.questions) if earlier else result)
    return "", ""


def merged(earlier: Result, result: Result, only: Sequence[str]) -> Result:
    """The earlier result with some questions marked anew."""
    if result.status != "ok":
        return result
    kept = {one.id: one for one in earlier.questions if one.id not in only}
    questions = [kept.get(one.id, one) for one in result.questions]
    return replace(
        result,
        questions=questions,
        points=sum(one.points or 0.0 for one in questions if not one.manual),
        notes=[*result.notes, f"marked anew: {', '.join(only)}"],
    )
