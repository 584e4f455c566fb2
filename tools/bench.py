"""The budgets, measured; one table each, and nothing asserts a time (``make bench``).

    python -m tools.bench                  all five
    python -m tools.bench speed pages      those that are named

**Builds**: cold (nothing cached), again after no change, and after a word more in the longest
chapter. The working tree is left as it was, and the site built.

**Speed**: same sizes as the peers, random weights, one thread, processor time. All libraries take
turns in every round. The ratio is the peer's time over ours in the same round (above 1 the peer is
slower): its median and the range of the middle two thirds. Memory: how far the peak of a fresh
process rises above the imports (the same in each) and the model.

**Maps**: processor time of ``attention_maps`` of timm's ViT-Ti/16 beside that model, unfused, with
forward hooks that keep and stack its maps, in turns. The ratio is ours over theirs (above 1 we are
slower). Checked maps run the model some twenty times more.

**Engine**: milliseconds that the model of "Train one here" takes for an update with 32 digits, in
Chromium and in PyTorch, one thread each, in turns. The ratio is PyTorch's time over Chromium's.

**Pages**: what a reader of a chapter waits for in Chromium, at a quarter of this machine's speed.
The weight is compressed (website/build/site_checks/weight.py). The last long task is when the page
answers for good: until then a tap may wait for 50 ms or more. The shift is Chromium's, of all that
moved.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from tools.browser import FLAGS, HELP, find_chromium
from tools.run_notebooks import served
from website.build.site import Site
from website.build.site_checks.weight import weights
from website.pages.contents import places_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"

# image, patch, classes, width, depth, heads; three channels, the only number torchvision takes
SIZES = {"tiny": (32, 4, 10, 64, 4, 4), "Ti/16": (224, 16, 1000, 192, 12, 3)}
BATCH = {"tiny": 64, "Ti/16": 4}
MODES = ("forward", "training step")
ROUNDS = 15
# where each library keeps its model, its words for the sizes above, and what else it wants to know
PEERS = {
    "vitbook": (
        "vitbook.models.vit.VisionTransformer",
        ("image_size", "patch_size", "num_classes", "embed_dim", "depth", "num_heads"),
        lambda width, heads: {"in_channels": 3},
    ),
    "timm": (
        "timm.models.VisionTransformer",
        ("img_size", "patch_size", "num_classes", "embed_dim", "depth", "num_heads"),
        lambda width, heads: {},
    ),
    "torchvision": (
        "torchvision.models.VisionTransformer",
        ("image_size", "patch_size", "num_classes", "hidden_dim", "num_layers", "num_heads"),
        lambda width, heads: {"mlp_dim": 4 * width},
    ),
    "vit_pytorch": (
        "vit_pytorch.ViT",
        ("image_size", "patch_size", "num_classes", "dim", "depth", "heads"),
        lambda width, heads: {"mlp_dim": 4 * width, "dim_head": width // heads},
    ),
}

UPDATES = 10
SLOWER = 4
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


def builds() -> Iterator[str]:
    """Seconds that ``make book`` takes once the environment stands."""
    yield "| build | measured | budget |\n|---|---|---|"
    for path in (BUILD / "html", BUILD / ".jupyter_cache", BUILD / "site.json"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    yield f"| cold | {build():.0f} s | 300 s |"
    yield f"| nothing changed | {build():.1f} s | 3 s |"
    pages = [ROOT / "book" / f"{page}.md" for page in places_of(ROOT)]
    chapter = max(pages, key=lambda page: page.stat().st_size)
    before = chapter.read_bytes()
    try:
        chapter.write_bytes(before + b"\n<!-- a word more -->\n")
        yield f"| one chapter's prose changed | {build():.1f} s | 30 s |"
    finally:
        chapter.write_bytes(before)
    build()


def build() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "website.build"], cwd=ROOT, check=True)
    return time.perf_counter() - started


def speed() -> Iterator[str]:
    """Our model beside its peers."""
    yield "| model | mode | library | ms | ratio | two thirds | MiB |"
    yield "|---|---|---|---|---|---|---|"
    cases = [(size, mode) for size in SIZES for mode in MODES]
    # all of them before torch is imported here: a child begins with the peak of its parent
    memory = {case: {name: peak_memory(name, *case) for name in installed()} for case in cases}
    for size, mode in cases:
        times = take_turns(size, mode)
        for library, taken in times.items():
            ratios = [theirs / ours for theirs, ours in zip(taken, times["vitbook"], strict=True)]
            low, _, middle, _, high = quantiles(ratios, n=6)
            yield (
                f"| {size} | {mode} | {library} | {median(taken):.2f} | {middle:.3f} "
                f"| {low:.2f} to {high:.2f} | {memory[size, mode][library]:.1f} |"
            )


def installed() -> list[str]:
    return [library for library in PEERS if find_spec(library)]


def prepare(library: str, size: str, mode: str) -> Callable[[], Any]:
    """A function without arguments that runs one forward pass or one training step."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    side, _, classes, width, _, heads = SIZES[size]
    path, words, more = PEERS[library]
    module, _, name = path.rpartition(".")
    arguments = dict(zip(words, SIZES[size], strict=True)) | more(width, heads)
    model = getattr(importlib.import_module(module), name)(**arguments)
    images = torch.randn(BATCH[size], 3, side, side)
    labels = torch.arange(BATCH[size]) % classes
    if mode == "forward":
        model.eval()
        return torch.inference_mode()(lambda: model(images))
    return training_step(model, images, labels)


def training_step(model: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    from torch.nn.functional import cross_entropy
    from torch.optim import AdamW

    optimizer = AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def take_turns(size: str, mode: str) -> dict[str, list[float]]:
    """Milliseconds of every round for each library."""
    runs = {library: prepare(library, size, mode) for library in installed()}
    repeats = 5 if size == "tiny" else 1
    times: dict[str, list[float]] = {library: [] for library in runs}
    for turn in range(-2, ROUNDS):  # two rounds to warm up
        first = turn % len(runs)
        for library in list(runs)[first:] + list(runs)[:first]:
            start = time.process_time()
            for _ in range(repeats):
                runs[library]()
            if turn >= 0:
                times[library].append((time.process_time() - start) / repeats * 1e3)
    return times


def peak_memory(library: str, size: str, mode: str) -> float:
    """MiB, in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(rise_of_the_peak, (library, size, mode))


def rise_of_the_peak(library: str, size: str, mode: str) -> float:
    for other in installed():
        importlib.import_module(PEERS[other][0].rpartition(".")[0])
    run = prepare(library, size, mode)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        run()
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux KiB
    return (getrusage(RUSAGE_SELF).ru_maxrss - before) / unit


def maps() -> Iterator[str]:
    """Our maps beside those of hooks."""
    import torch
    from timm.models import create_model

    from vitbook.inspection import attention_maps

    torch.set_num_threads(1)
    fused, unfused = (create_model("vit_tiny_patch16_224").eval() for _ in range(2))
    layers: list[Any] = [block.attn for block in unfused.get_submodule("blocks").children()]
    for layer in layers:
        layer.fused_attn = False

    def hooked(images: Tensor) -> Tensor:
        kept: list[Tensor] = []
        keep = lambda _, args, out: kept.append(out)  # noqa: E731
        hooks = [layer.attn_drop.register_forward_hook(keep) for layer in layers]
        with torch.no_grad():
            unfused(images)
        for hook in hooks:
            hook.remove()
        return torch.stack(kept)

    runs: dict[str, Callable[[Tensor], Tensor]] = {
        "timm unfused, hooks": hooked,
        "ours, verify=False": lambda images: attention_maps(fused, images, verify=False),
        "ours": lambda images: attention_maps(fused, images),
    }
    yield "| maps | images | ms | ratio | two thirds |\n|---|---|---|---|---|"
    for count in (1, 8):
        times: dict[str, list[float]] = {name: [] for name in runs}
        images = torch.randn(count, 3, 224, 224)
        for turn in range(-2, ROUNDS):
            first = turn % len(runs)
            for name in list(runs)[first:] + list(runs)[:first]:
                start = time.process_time()
                runs[name](images)
                if turn >= 0:
                    times[name].append((time.process_time() - start) * 1e3)
        for name, taken in times.items():
            pairs = zip(taken, times["timm unfused, hooks"], strict=True)
            low, _, middle, _, high = quantiles([ours / theirs for ours, theirs in pairs], n=6)
            cells = [
                name,
                count,
                f"{median(taken):.1f}",
                f"{middle:.2f}",
                f"{low:.2f} to {high:.2f}",
            ]
            yield f"| {' | '.join(map(str, cells))} |"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser.

    Raises:
        SystemExit: there is no Chromium.
    """
    from playwright.sync_api import sync_playwright

    program = find_chromium()
    if program is None:
        raise SystemExit(HELP)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


def engine() -> Iterator[str]:
    """The model that learns in the page beside the same one in PyTorch."""
    import torch

    from vitbook.models.vit import VisionTransformer
    from website.live import train

    torch.set_num_threads(1)
    model = VisionTransformer(
        image_size=8,
        patch_size=2,
        in_channels=1,
        num_classes=10,
        embed_dim=32,
        depth=2,
        num_heads=4,
        mlp_ratio=2,
        pool="mean",
    )
    step = training_step(model, torch.randn(32, 1, 8, 8), torch.arange(32) % 10)
    times: dict[str, list[float]] = {}
    with chromium() as browser:
        page = browser.new_page()
        train.prepare(page)
        throttle = page.context.new_cdp_session(page)
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(UPDATES):
                step()
            times.setdefault("PyTorch", []).append((time.perf_counter() - start) / UPDATES * 1e3)
            for way, rate in product(("kernel", "plain"), (1, SLOWER)):
                throttle.send("Emulation.setCPUThrottlingRate", {"rate": rate})
                taken = page.evaluate("given => update(given)", [way, UPDATES])
                times.setdefault(f"Chromium, {way}, 1/{rate} of the speed", []).append(taken)
    yield "| an update | ms | ratio | two thirds |\n|---|---|---|---|"
    for name, taken in times.items():
        ratios = [theirs / ours for theirs, ours in zip(times["PyTorch"], taken, strict=True)]
        low, _, middle, _, high = quantiles(ratios, n=6)
        yield f"| {name} | {median(taken):.2f} | {middle:.2f} | {low:.2f} to {high:.2f} |"


def pages() -> Iterator[str]:
    """Weight, last long task and shift of each chapter; medians of three visits."""
    html = BUILD / "html"
    bytes_ = weights(Site(html, ROOT))
    yield "| page | weight | last long task | shift |\n|---|---|---|---|"
    with chromium() as browser, served(html) as address:
        for name in [f"{page}.html" for page, place in places_of(ROOT).items() if not place.deeper]:
            visits = [visit(browser, f"{address}/{name}") for _ in range(3)]
            task, shift = map(median, zip(*visits, strict=True))
            yield f"| {name} | {bytes_[name] / 1e3:.0f} kB | {task:.1f} s | {shift:.3f} |"
    yield "| budget | 1000 kB | 3 s | 0.02 |"


def visit(browser: Browser, url: str) -> tuple[float, float]:
    """Open a page once, slowed down, with nothing remembered from before.

    Returns:
        When its last long task ended, in seconds, and its layout shift, a share of the screen.
    """
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        page.goto(url, timeout=120_000)
        page.wait_for_function(QUIET, timeout=120_000)
        seen = page.evaluate("seen")
        return seen["task"] / 1e3, seen["shift"]


# memory is measured before this process grows: parsing the site comes last
PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "builds": builds,
    "speed": speed,
    "maps": maps,
    "engine": engine,
    "pages": pages,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; default: all")
    chosen = parser.parse_args().parts
    if wrong := set(chosen) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(wrong))}; there are {', '.join(PARTS)}")
    for name, rows in PARTS.items():
        if name in chosen or not chosen:
            for row in rows():
                print(row, flush=True)
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
