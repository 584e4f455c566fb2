"""Is the readable model slower than its peers? ``make bench`` prints a table; nothing asserts it.

Same sizes, random weights, one thread, processor time. All libraries take turns in every round, so
that a slow moment hits all of them. The ratio is the peer's time over ours in the same round (above
1 the peer is slower): its median and the range of the middle two thirds of the rounds. Memory: how
far the peak of a fresh process rises above the imports (the same in each) and the model.
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median, quantiles
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

# image, patch, classes, width, depth, heads; three channels, the only number torchvision takes
SIZES = {"tiny": (32, 4, 10, 64, 4, 4), "Ti/16": (224, 16, 1000, 192, 12, 3)}
BATCH = {"tiny": 64, "Ti/16": 4}
MODES = ("forward", "training step")

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


def installed() -> list[str]:
    return [library for library in PEERS if importlib.util.find_spec(library)]


def build(library: str, size: str) -> Any:
    path, words, more = PEERS[library]
    module, _, name = path.rpartition(".")
    arguments = dict(zip(words, SIZES[size], strict=True)) | more(*SIZES[size][3::2])
    return getattr(importlib.import_module(module), name)(**arguments)


def prepare(library: str, size: str, mode: str) -> Callable[[], Any]:
    """A function without arguments that runs one forward pass or one training step."""
    import torch
    from torch.nn.functional import cross_entropy

    torch.set_num_threads(1)
    torch.manual_seed(0)
    side, _, classes = SIZES[size][:3]
    model = build(library, size)
    images = torch.randn(BATCH[size], 3, side, side)
    labels = torch.arange(BATCH[size]) % classes
    if mode == "forward":
        model.eval()
        return torch.inference_mode()(lambda: model(images))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def rise_of_the_peak(library: str, size: str, mode: str) -> float:
    for other in installed():
        importlib.import_module(PEERS[other][0].rpartition(".")[0])
    run = prepare(library, size, mode)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        run()
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux KiB
    return (getrusage(RUSAGE_SELF).ru_maxrss - before) / unit


def peak_memory(library: str, size: str, mode: str) -> float:
    command = [sys.executable, __file__, "--memory-of", library, size, mode]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def take_turns(size: str, mode: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every round for each library."""
    runs = {library: prepare(library, size, mode) for library in installed()}
    repeats = 5 if size == "tiny" else 1
    times: dict[str, list[float]] = {library: [] for library in runs}
    for turn in range(-2, rounds):  # two rounds to warm up
        first = turn % len(runs)
        for library in list(runs)[first:] + list(runs)[:first]:
            start = time.process_time()
            for _ in range(repeats):
                runs[library]()
            if turn >= 0:
                times[library].append((time.process_time() - start) / repeats * 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="rounds of taking turns (15)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers to a file too")
    parser.add_argument("--memory-of", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(rise_of_the_peak(*options.memory_of))
        return
    options.rounds = max(options.rounds, 3)
    cases = [(size, mode) for size in SIZES for mode in MODES]
    # all of them before torch is imported here: a child begins with the peak of its parent
    memory = {case: {name: peak_memory(name, *case) for name in installed()} for case in cases}
    rows: list[list[Any]] = []
    print(f"{'model':7}{'':14}{'library':13}{'ms':>9}{'ratio':>8}   {'two thirds':12}{'+MiB':>9}")
    for size, mode in cases:
        times = take_turns(size, mode, options.rounds)
        for library, taken in times.items():
            ratios = [theirs / ours for theirs, ours in zip(taken, times["vitbook"], strict=True)]
            low, _, middle, _, high = quantiles(ratios, n=6)
            numbers = median(taken), middle, low, high, memory[size, mode][library]
            rows.append([size, mode, library, *numbers])
            print("{:7}{:14}{:13}{:9.2f}{:8.3f}   {:.2f} to {:.2f}{:9.1f}".format(*rows[-1]))
    if options.json:
        names = ["model", "mode", "library", "ms", "ratio", "ratio_low", "ratio_high", "MiB"]
        found = {"platform": platform.platform(), "torch": version("torch"), "threads": 1}
        found["rows"] = [dict(zip(names, row, strict=True)) for row in rows]
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
