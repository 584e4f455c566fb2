"""Does what the pages say hold on every processor? `make anywhere`

python -m tools.anywhere                                   what changed since it was last seen
python -m tools.anywhere book/vit/looking.md            one page
python -m tools.anywhere book/... --runs avx2 draw-1       only these runs
python -m tools.anywhere book/... --seeds 50               with other seeds and other rounding; it
                                                  is not kept
python -m tools.anywhere --report                          what was seen, nothing is run
"""

import argparse
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filelock import FileLock
from tqdm import tqdm

from tools.anywhere.report import report
from tools.anywhere.results import FILE, Results, digest_of
from tools.anywhere.runs import DIED, ROOT, RUNS, make_runs, missing_here, processes_of
from website.build.chapters import find_chapters
from website.build.dependencies import Sources

TRAINS = re.compile(r"\btrain\(|\bfit\(|optim\.(Adam|SGD)")


def name_of(page: Path) -> str:
    name = page.resolve().relative_to(ROOT).with_suffix("").as_posix()
    return name.removeprefix("book/")


def everything() -> list[Path]:
    """The pages with code, the assignments, and the files of tests that train something."""
    pages = [chapter.path for chapter in find_chapters(ROOT, [])]
    tests = sorted((ROOT / "tests" / "package").glob("test_*.py"))
    tests = [path for path in tests if TRAINS.search(path.read_text("utf8"))]
    return [*pages, *sorted((ROOT / "assignments").glob("a*.md")), *tests]


def make(pages: list[Path], runs: list[str], results: Results, fresh: bool, jobs: int) -> None:
    """Make the runs that are missing; each is kept as it ends."""
    sources, lock = Sources(ROOT), threading.Lock()
    work = []
    for page in pages:
        digest = digest_of(page, sources)
        known = results.known(name_of(page), digest)
        todo = [run for run in runs if fresh or run not in known or died(known[run])]
        work += [(page, digest, together) for together in processes_of(todo)]
    with tqdm(total=sum(len(some) for *_, some in work), unit="run") as bar:

        def one(page: Path, digest: str, together: list[str]) -> None:
            for found in make_runs(page, together):
                with lock:
                    results.keep(name_of(page), digest, found)
                    results.write()
                    bar.set_description(f"{name_of(page)} {found['run']}", refresh=False)
                    bar.update()

        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(one, *some) for some in work]:
                done.result()


def died(found: dict[str, Any]) -> bool:
    """Did its process end without a word? Then it says nothing of the page."""
    return found.get("error") == DIED


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "pages", nargs="*", type=Path, help="pages, assignments, files of tests; default: all"
    )
    parser.add_argument("--runs", nargs="+", default=RUNS, metavar="RUN", help=", ".join(RUNS))
    parser.add_argument("--fresh", action="store_true", help="also what was seen already")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--seeds", type=int, help="runs with other seeds and other rounding")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if missing := [str(page) for page in options.pages if not page.is_file()]:
        raise SystemExit(f"No such file: {', '.join(missing)}")
    pages, runs, well = options.pages or everything(), options.runs, True
    if options.seeds:
        runs = [f"seeds-{k}" for k in range(1, options.seeds + 1)]
        for page in pages:
            found = {one["run"]: one for one in tqdm(make_runs(page, runs), total=len(runs))}
            words, good = report(page, name_of(page), found, whole=True)
            print(words)
            well = well and good
        return int(not well)
    results = Results()
    absent = missing_here(runs)
    for run, reason in absent.items():
        print(f"{run}: not run here: {reason}")
    if not options.report:
        here = [run for run in runs if run not in absent]
        with FileLock(f"{FILE}.lock"):  # a second one waits: each writes the whole file
            results = Results()
            make(pages, here, results, options.fresh, options.jobs)
    sources = Sources(ROOT)
    for page in pages:
        known = results.pages.get(name_of(page), {})
        words, good = report(page, name_of(page), known, whole=bool(options.pages))
        stale = results.digests.get(name_of(page)) != digest_of(page, sources)
        print(words + ("\n   SEEN BEFORE ITS LAST CHANGE" if stale else ""))
        well = well and good and not stale
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
