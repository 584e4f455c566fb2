"""Build the site: execute what changed, render the pages, export the notebooks, check the result.

    python -m website.build         the whole book, into _build/html

When nothing changed since the last good build it says so and stops. What is used again from the
last build, and when: `render` (trees of pages) and `site` (facts of pages).

A check that does not hold and a cell that breaks never cost the site: all pages are built, and say
so. The command ends with these failures and with status 1, and so does the next one.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from website.build import check_site, export_notebooks
from website.build.execute import cell_timeout, execute
from website.build.inputs import digest
from website.build.render import render, watched
from website.build.site import Memory, Site
from website.pages.failures import Failure, summary
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]


def say_where(build: Path) -> None:
    page = build / "html" / "index.html"
    print(f"The site is in {page.parent}\nOpen {page.as_uri()} or run: make serve")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="also when nothing has changed")
    parser.add_argument("--verbose", action="store_true", help="a line for each cell that was run")
    options = parser.parse_args()
    build = ROOT / "_build"
    stamp = build / "site.json"
    started = time.monotonic()
    inputs = digest(watched(ROOT))  # before: an edit made meanwhile counts as new
    good = json.loads(stamp.read_text()) if stamp.is_file() else {}
    if not options.force and good == {"inputs": inputs} and (build / "html/index.html").is_file():
        print("Nothing has changed since the last build.")
        say_where(build)
        return 0
    stamp.unlink(missing_ok=True)
    jobs = min(2, os.cpu_count() or 1)
    failures = execute(ROOT, build, [], jobs, cell_timeout(ROOT), options.verbose)
    complaint = finish(build)
    if complaint is None:
        print(f"Built in {time.monotonic() - started:.0f} s.")
        say_where(build)
    if not failures and complaint is None:
        stamp.write_text(json.dumps({"inputs": inputs}))
        return 0
    sys.stdout.flush()
    print(last_words(complaint, failures), file=sys.stderr)
    return 1


def finish(build: Path) -> str | None:
    """Render, export and check. Returns a complaint where the site is not finished."""
    print("Rendering the pages", flush=True)
    if not render(ROOT, build):
        return "warnings or errors (above)"
    (build / "html" / ".nojekyll").touch()  # so that GitHub Pages serves _static as well
    memory = Memory(build / "site-facts.json")
    site = Site(build / "html", ROOT, memory)  # read once, for the notebooks and for the check
    try:
        export_notebooks.write(read_settings(ROOT), site)
    except ValueError as error:
        return str(error)
    defects = check_site.report(site)
    memory.save()
    return "the site has defects (above)" if defects else None


def last_words(complaint: str | None, failures: list[Failure]) -> str:
    """What the command ends with when not all is well."""
    said = [f"make book: {complaint}; the site is not finished."] if complaint else []
    if failures:
        whole = "" if complaint else "All pages are built, and say what did not hold. "
        said.append(f"{whole}{summary(failures)}")
    return "\n".join(said)


if __name__ == "__main__":
    sys.exit(main())
