"""Execute and render one page on its own, quickly, into its own folder.

    python -m website.build.preview book/attention/weighted_average.md

The page lands in ``_build/preview/<stem>/html``. What ``make book`` has run is not run again, nor
the other way round. Several previews can run at the same time, and none touches the real site.
Warnings are shown and do not stop the preview; references to other pages cannot be resolved here.
What fails in a cell stands on the page, and the command fails.
"""

import argparse
import sys
from pathlib import Path

import yaml

from website.build.execute import cell_timeout, execute
from website.build.render import sphinx
from website.pages.failures import summary

ROOT = Path(__file__).resolve().parents[2]
COMPANIONS = ["appendix/bibliography"]  # so that citations resolve


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page.resolve()
    book = ROOT / "book"
    if not page.is_file() or book not in page.parents:
        raise SystemExit(f"No such page under book/: {page}")
    name = page.relative_to(book).with_suffix("").as_posix()
    build = ROOT / "_build" / "preview" / page.stem
    build.mkdir(parents=True, exist_ok=True)
    runs = ROOT / "_build"
    failures = execute(ROOT, runs, [page], jobs=1, timeout=cell_timeout(ROOT), verbose=True)
    others = [other for other in COMPANIONS if other != name and (book / f"{other}.md").is_file()]
    toc = {"format": "jb-book", "root": name}
    if others:
        toc["chapters"] = [{"file": other} for other in others]
    (build / "_toc.yml").write_text(yaml.safe_dump(toc))
    status = sphinx(ROOT, build, build / "_toc.yml", strict=False, runs=runs)
    print(f"Open {(build / 'html' / f'{name}.html').as_uri()}", flush=True)
    if failures:
        print(summary(failures), file=sys.stderr)
    return status or int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
