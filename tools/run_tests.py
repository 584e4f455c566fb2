"""Run the tests in parts, so that one red thing cannot hide another.

    python -m tools.run_tests                    all but the long ones, two at a time
    python -m tools.run_tests --deep             the long ones too, one after the other
    python -m tools.run_tests -k word tests/book what else is said goes to pytest

What needs no book is tested first and in any case. Then the book is built, and what looks at the
site is tested; with --deep, and nothing else said, `make anywhere` follows. Each part runs whatever
became of those before it; the last line names what failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMED = 5  # failed tests of a part, in the last line
NONE_CHOSEN = 5  # pytest's exit status where its options leave no test
SIDE_BY_SIDE = ["-n", "2", "--dist", "worksteal", "-m", "not deep"]


@dataclass(frozen=True)
class Part:
    """A command whose failure the others outlive.

    Args:
        name: What the last lines call it.
        words: The module and its arguments, as they stand behind ``python -m``.
        needs: A file without which there is nothing to run.
    """

    name: str
    words: tuple[str, ...]
    needs: Path | None = None

    @property
    def tests(self) -> bool:
        return self.words[0] == "pytest"


def parts_of(arguments: list[str], deep: bool) -> list[Part]:
    """The parts in their order; ``arguments`` are for pytest, and win over what is set here."""
    pytest = ["pytest", *([] if deep else SIDE_BY_SIDE)]
    elsewhere = [Part("other processors", ("tools.anywhere",))] if deep and not arguments else []
    site = ROOT / "_build" / "html" / "index.html"
    return [
        Part("the browser", ("tools.browser", "--install")),
        Part("the sandbox", ("tools.sandbox", "--install")),
        Part("tests without the book", (*pytest, "--part", "without-book", *arguments)),
        Part("the book", ("website.build",)),
        Part("tests of the site", (*pytest, "--part", "site", *arguments), site),
        *elsewhere,
    ]


def run(words: tuple[str, ...]) -> int:
    required = {"VITBOOK_REQUIRE_BROWSER": "1", "VITBOOK_REQUIRE_SANDBOX": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **required}).returncode


def failed_tests(report: Path) -> list[str]:
    """The tests that failed, by pytest's report in XML."""
    if not report.is_file():
        return []
    cases = ET.parse(report).iter("testcase")
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    return [f"{case.get('classname')}::{case.get('name')}" for case in bad]


def run_parts(parts: list[Part], run: Callable[[tuple[str, ...]], int]) -> int:
    """Run all of them, say last what became of each; 1 when one failed or nothing was tested."""
    said, failed, tested = [], [], False
    report = Path(tempfile.mkdtemp()) / "tests.xml"
    for part in parts:
        print(f"\n--- {part.name}", flush=True)
        started = time.monotonic()
        if part.needs is not None and not part.needs.is_file():
            became = f"FAILED: there is no {part.needs.name} in {part.needs.parent}"
        else:
            report.unlink(missing_ok=True)
            status = run((*part.words, f"--junitxml={report}") if part.tests else part.words)
            none_chosen = part.tests and status == NONE_CHOSEN
            tested |= part.tests and not none_chosen
            became = "no test chosen" if none_chosen else f"FAILED ({status})" if status else "ok"
        if became.startswith("FAILED"):
            failed.append(" ".join([part.name, *failed_tests(report)[:NAMED]]))
        said.append(f"{part.name:<24}{time.monotonic() - started:5.0f} s  {became}")
    if not tested:
        failed.append("no test was chosen")
    print("\n" + "\n".join(said) + f"\nFAILED: {', '.join(failed)}" * bool(failed), flush=True)
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--deep", action="store_true", help="the long tests too")
    options, others = parser.parse_known_args(arguments)
    try:
        return run_parts(parts_of(others, options.deep), run)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
