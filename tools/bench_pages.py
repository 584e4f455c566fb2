"""Measure what a reader of a page waits for, in Chromium slowed down to a quarter of its speed.

    python -m tools.bench_pages                    every page of _build/html
    python -m tools.bench_pages vit attention      pages whose name begins so

The **last long task** is when the page answers for good: until then a tap may wait for 50 ms or
more. The **layout shift** is Chromium's, of all that moved while the page came, on a screen of 1280
by 900. **On arrival** is what came unasked, **whole** is with the pictures further down, those of
the light theme, both as ``python -m http.server`` sends them, without compression. Medians of five.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import TYPE_CHECKING, Any

from tools.browser import find_chromium
from tools.moved import old_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
SLOWER, TIMES = 4, 5
LIMITS = {"last long task": 3.0, "layout shift": 0.02, "whole": 1_000_000}
WATCH = """
window.seen = {task: 0, shift: 0};
new PerformanceObserver(list => list.getEntries().forEach(one => {
    seen.task = Math.max(seen.task, one.startTime + one.duration);
})).observe({type: "longtask", buffered: true});
new PerformanceObserver(list => list.getEntries().forEach(one => {
    seen.shift += one.hadRecentInput ? 0 : one.value;
})).observe({type: "layout-shift", buffered: true});
"""
QUIET = "() => performance.now() - seen.task > 2000"  # milliseconds without a long task
ALL_PICTURES = """() => Promise.all([...document.images].map(one => {
    if (getComputedStyle(one).display === "none") return null;  // of the other theme
    one.loading = "eager";
    return one.decode().catch(() => {});
}))"""


@dataclass
class Measured:
    """One page: seconds, a share of the screen, bytes, bytes, a number."""

    last_long_task: float
    layout_shift: float
    on_arrival: float
    whole: float
    requests: float


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def visit(browser: Browser, url: str, slower: float = SLOWER) -> Measured:
    """Open a page once, with nothing remembered from before."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        cdp = context.new_cdp_session(page)
        sent: set[str] = set()
        sizes: list[float] = []
        cdp.send("Network.enable")
        cdp.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        cdp.on("Network.responseReceived", lambda one: note(one, sent))
        cdp.on("Network.loadingFinished", lambda one: add(one, sent, sizes))
        page.goto(url, wait_until="load", timeout=120_000)
        page.wait_for_function(QUIET, timeout=120_000)
        seen, arrived = page.evaluate("seen"), sum(sizes)
        cdp.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        page.evaluate(ALL_PICTURES)
        page.wait_for_timeout(300)  # until the last of them is counted
        return Measured(seen["task"] / 1e3, seen["shift"], arrived, sum(sizes), len(sizes))
    finally:
        context.close()


def note(event: dict[str, Any], sent: set[str]) -> None:
    """Remember an answer of the server; a picture that stands in the page is none."""
    if event["response"]["url"].startswith("http"):
        sent.add(event["requestId"])


def add(event: dict[str, Any], sent: set[str], sizes: list[float]) -> None:
    if event["requestId"] in sent:
        sizes.append(event["encodedDataLength"])


def measure(
    browser: Browser, html: Path, names: list[str], times: int = TIMES
) -> dict[str, Measured]:
    """Page -> the median of each number over several visits."""
    found = {}
    with served(html) as address:
        for name in names:
            visits = [astuple(visit(browser, f"{address}/{name}")) for _ in range(times)]
            found[name] = Measured(*map(median, zip(*visits, strict=True)))
    return found


def table(found: dict[str, Measured]) -> str:
    """Rows of Markdown, the slowest page first."""
    rows = ["| page | last long task | layout shift | on arrival | whole | requests |"]
    rows.append("|---|---|---|---|---|---|")
    for name, page in sorted(found.items(), key=lambda item: -item[1].last_long_task):
        rows.append(
            f"| {name} | {page.last_long_task:.1f} s | {page.layout_shift:.3f} "
            f"| {page.on_arrival / 1e3:.0f} kB | {page.whole / 1e3:.0f} kB | {page.requests:.0f} |"
        )
    rows.append(
        f"| budget | {LIMITS['last long task']} s | {LIMITS['layout shift']} | "
        f"| {LIMITS['whole'] / 1e3:.0f} kB | |"
    )
    return "\n".join(rows)


def pages(html: Path, beginnings: list[str]) -> list[str]:
    """The names of a site's pages, or of those whose name begins so."""
    names = (path.relative_to(html) for path in sorted(html.rglob("*.html")))
    old = {f"{page}.html" for page in old_pages(ROOT)}
    wanted = [name.as_posix() for name in names if name.parts[0] != "_static"]
    wanted = [name for name in wanted if name not in old]
    return [name for name in wanted if name.startswith(tuple(beginnings or [""]))]


def site_table(html: Path, beginnings: list[str] | None = None) -> str:
    """The table of a whole site, or of the pages whose name begins so."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        found = measure(browser, html, pages(html, beginnings or []))
        browser.close()
    return table(found)


def main() -> int:
    print(site_table(HTML, sys.argv[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
