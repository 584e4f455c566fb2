"""What a reader scrolls through: how much of a built page is code, and where nothing happens.

    python -m tools.rhythm                    every page with code
    python -m tools.rhythm hybrids         only pages whose name holds these words

For each page, at 1280 x 900: its height in screens, the share of it that is visible code and what
the code prints, visible lines that only assert or glue, and the three longest stretches without a
figure, table, widget, prediction or exercise, each with the heading above it. Its author looks at
them and can say why they are so long. Needs Chromium (tools/browser.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.browser import FLAGS, HELP, find_chromium
from tools.settings import read_settings

ROOT = Path(__file__).resolve().parents[1]
WIDTH, SCREEN = 1280, 900
MEASURE = """() => {
  const article = document.querySelector("article.bd-article");
  const seen = (node) => node.checkVisibility() && node.getBoundingClientRect().height > 1;
  const all = (selector) => [...article.querySelectorAll(selector)].filter(seen);
  const box = (node) => node.getBoundingClientRect();
  const top = box(article).top, height = box(article).height;
  const code = all("div.highlight");
  const proof = /^\\s*(assert\\b|assert_\\w+\\(|glue\\()/;
  const lines = code.flatMap((node) => node.innerText.split("\\n"));
  const events = all("figure, table.vitbook-table, .vitbook-explorer, .live, .predict, .exercise")
    .map((node) => [box(node).top - top, box(node).bottom - top]);
  const heads = all("h1, h2, h3").map((node) => [box(node).top - top, node.innerText]);
  return {
    height, events, heads,
    code: code.reduce((sum, node) => sum + box(node).height, 0),
    plumbing: lines.filter((line) => proof.test(line)).length,
  };
}"""


def stretches(measured: dict, most: int = 3) -> list[tuple[float, str]]:
    """The longest gaps between events, in screens, each with the heading that it lies under."""
    at, gaps = 0.0, []
    for top, bottom in sorted([*measured["events"], [measured["height"]] * 2]):
        heads = [words for y, words in measured["heads"] if y <= at + 1]
        first = measured["heads"][0][1] if measured["heads"] else ""
        words = heads[-1] if heads else first
        gaps.append(((top - at) / SCREEN, " ".join(words.replace("#", "").split())))
        at = max(at, bottom)
    return sorted(gaps, reverse=True)[:most]


def row(name: str, measured: dict) -> str:
    """One page as a line of the table."""
    longest = "; ".join(f"{screens:.1f} {words}" for screens, words in stretches(measured))
    screens, share = measured["height"] / SCREEN, measured["code"] / measured["height"]
    return f"| {name} | {screens:.1f} | {share:.0%} | {measured['plumbing']} | {longest} |"


def measure(html: Path, documents: Iterable[str]) -> Iterator[tuple[str, dict]]:
    """(page, what Chromium sees of it) for pages with code.

    Raises:
        SystemExit: there is no Chromium.
    """
    from playwright.sync_api import sync_playwright

    program = find_chromium()
    if program is None:
        raise SystemExit(HELP)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": SCREEN}, reduced_motion="reduce"
        )
        for document in documents:
            page.goto((html / f"{document}.html").resolve().as_uri())
            page.evaluate("document.fonts.ready.then(() => true)")
            found = page.evaluate(MEASURE)
            if found["code"]:
                yield document, found
        browser.close()


def table(html: Path, documents: Iterable[str]) -> str:
    """The pages with code, a line for each."""
    head = "| page | screens | code | asserts, glue | longest stretches, in screens |"
    rows = [row(name, found) for name, found in measure(html, documents)]
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="pages, by a part of their name; default: all")
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html", help="the site")
    options = parser.parse_args(arguments)
    known = read_settings(ROOT).documents
    chosen = [one for one in known if not options.words or any(w in one for w in options.words)]
    print(table(options.html, [one for one in chosen if (options.html / f"{one}.html").is_file()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
