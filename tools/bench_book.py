"""Measure what building and reading the book costs; print one table (``make bench``).

    python -m tools.bench_book

Cold build (nothing cached), build after no change, build after one word of one chapter changed
and back; the size of the environment; the rhythm of the pages (tools/rhythm.py) and what their
readers wait for (tools/bench_pages.py). The working tree is left as it was, and the site built.
Nothing here asserts a time.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools import bench_pages, rhythm
from tools.contents import places_of
from tools.settings import read_settings

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
BUDGETS = {"cold build": 300, "nothing changed": 10, "one chapter's prose changed": 30}


def build() -> float:
    """Seconds that one ``make book`` takes once the environment stands."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tools.build"], cwd=ROOT, check=True)
    return time.perf_counter() - started


def longest_chapter() -> Path:
    """The chapter with the most text: the worst case for one edit."""
    pages = [ROOT / "book" / f"{page}.md" for page in places_of(ROOT)]
    return max(pages, key=lambda page: page.stat().st_size)


def build_times() -> dict[str, float]:
    for path in (BUILD / "html", BUILD / ".jupyter_cache", BUILD / "site.json"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    times = {"cold build": build(), "nothing changed": build()}
    chapter = longest_chapter()
    before = chapter.read_bytes()
    try:
        chapter.write_bytes(before + b"\n<!-- a word more -->\n")
        times["one chapter's prose changed"] = build()
    finally:
        chapter.write_bytes(before)
    build()
    return times


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> int:
    times = build_times()
    print("\n| what | measured | budget |\n|---|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {seconds:.1f} s | {BUDGETS[name]} s |")
    print(f"| the whole site | {folder_size(BUILD / 'html') / 1e6:.1f} MB | |")
    print(f"| the environment | {folder_size(ROOT / '.venv') / 1e9:.1f} GB | |")
    print(f"\n{rhythm.table(BUILD / 'html', read_settings(ROOT).documents)}")
    print(f"\n{bench_pages.site_table(BUILD / 'html')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
