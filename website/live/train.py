"""What "train one here" reads: scikit-learn's digits, the glyphs of the matching pairs, and the
experiments with what was found in twenty seeds. The record is made in Chromium, by the figure:

python -m website.live.train              seeds 20 to 39, what train-record.json lacks
python -m website.live.train --choose     seeds 0 to 19, on other held-out images; nothing is kept
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sklearn.datasets import load_digits
from tqdm import tqdm

from vitbook.data.glyphs import glyphs
from website.live.pack import packed, script
from website.live.train_experiments import EXPERIMENTS, Experiment

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = Path(__file__).parent
RECORD = FOLDER / "train-record.json"
COMPUTES = ("train-kernel", "train-engine", "train-tasks", "train-settings", "train-runs")
SMALL = ("train-chart", "train-experiments")  # for train-one
PLAIN = "plain path"  # in the record, beside the experiments
SCRIPTS = (*SMALL, "pen", "pad")
CHOOSING, SEEDS = range(20), range(20, 40)
PAGE = """<!doctype html><meta charset="utf-8"><body><div class="live" id="live-train"
data-live="train" data-source="train" data-scripts='%s'><div class="live-still"></div></div>
<script src="%s"></script><script>const begin = vitbook.live.figure;
vitbook.live.figure = (name, start) => begin(name, (...given) => (globalThis.train =
start(...given)));</script>"""
# Of the first model, in milliseconds an update: with the kernel, and in plain JavaScript.
UPDATES = """async () => {
    const { settings, recipe, START } = vitbook.trainSettings;
    const images = Uint8Array.from({length: 1797 * 64}, (_, i) => i % 17);
    const labels = images.subarray(0, 1797).map((i) => i % 10), runs = {};
    for (const [way, kernel] of [["kernel", vitbook.kernel], ["plain", ""]]) {
        const loaded = await vitbook.engine.load(400, kernel);
        const task = vitbook.training.TASKS.digits({images, labels});
        runs[way] = vitbook.training.run(task, settings(START), loaded, recipe(START));
    }
    globalThis.update = ([way, updates]) => {
        const start = performance.now();
        for (let i = 0; i < updates; i++) runs[way].step();
        return (performance.now() - start) / updates;
    };
}"""


def data() -> dict:
    """1,797 digits of 8 x 8 pixels, 0 ... 16, their labels; sixteen glyphs of 5 x 5; the scripts
    that learn from them; experiments.

    Raises:
        ValueError: The record is of another engine, or of other experiments.
    """
    record = read_record()
    experiments = [told(one, record[one.id]) for one in EXPERIMENTS]
    return {**material(), "experiments": experiments, "slower": slower()}


def material() -> dict:
    digits = load_digits()
    learns = (FOLDER / f"{name}.js" for name in (*COMPUTES, "train-work"))
    return {
        "images": packed(digits.data, "u8"),
        "labels": packed(digits.target, "u8"),
        "glyphs": packed(glyphs().numpy(), "u8"),
        "scripts": "\n".join(file.read_text("utf8") for file in learns),
    }


def told(one: Experiment, runs: list[list[int]]) -> dict:
    """What the figure is given of an experiment whose ``runs`` gave these percentages."""
    ranges = [[min(values), max(values)] for values in zip(*runs, strict=True)]
    held = sum(map(one.held, runs))
    seeds = [SEEDS[0], SEEDS[-1]]
    return {**asdict(one), "ranges": ranges, "held": held, "runs": len(runs), "seeds": seeds}


def engine(*more: object) -> str:
    """A digest of the scripts that compute."""
    hashed = hashlib.sha256()
    for name in COMPUTES:
        hashed.update((FOLDER / f"{name}.js").read_bytes())
    hashed.update(repr(more).encode() if more else b"")
    return hashed.hexdigest()


def digest(one: Experiment) -> str:
    """Of all that decides what the experiment's runs give."""
    return engine(one.starts, one.cuts, one.until, one.reads)


def read_record() -> dict[str, list[list[int]]]:
    """For each experiment the percentages of each seed.

    Raises:
        ValueError: As in ``data``.
    """
    record = json.loads(RECORD.read_text("utf8"))
    for one in EXPERIMENTS:
        if record.get(one.id, {}).get("digest") != digest(one):
            raise ValueError(
                f"{RECORD.name} holds no runs of {one.id!r} by this engine: "
                "python -m website.live.train makes them"
            )
    return {one.id: record[one.id]["percent"] for one in EXPERIMENTS}


def slower() -> int:
    """How many times as long an update takes without the kernel: the record's median.

    Raises:
        ValueError: The record is of another engine.
    """
    plain = json.loads(RECORD.read_text("utf8")).get(PLAIN, {})
    if plain.get("digest") != engine():
        raise ValueError(
            f"{RECORD.name} does not say how slow this engine's plain path is: "
            "python -m website.live.train measures it"
        )
    return round(median(plain["ratios"]))


def kernel() -> str:
    """The text of train-kernel.js, assembled from train-kernel.wat."""
    from wasmtime import wat2wasm

    source = (FOLDER / "train-kernel.wat").read_text("utf8")
    text = base64.b64encode(wat2wasm(source)).decode()
    return (
        "// train-kernel.wat, assembled: python -m website.live.train --kernel\n"
        f'vitbook.kernel =\n  "{text}";\n'
    )


def run(one: Experiment, seeds: Sequence[int], choosing: bool = False) -> list[list[int]]:
    """The experiment in Chromium, with each seed: its percentages."""
    from playwright.sync_api import sync_playwright

    from tools.browser import FLAGS, find_chromium

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        needed = [(FOLDER / f"{name}.js").as_uri() for name in (*SCRIPTS, "train")]
        page = Path(folder) / "page.html"
        page.write_text(PAGE % (json.dumps([*needed, "data.js"]), (FOLDER / "kit.js").as_uri()))
        data = {**material(), "experiments": [told(one, [[0] * len(one.reads)])], "slower": 0}
        (Path(folder) / "data.js").write_text(script("train", data), "utf8")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.locator(".live-running").wait_for()
        tab.evaluate("train.ready")
        found = [
            tab.evaluate("given => train.trial(...given)", [one.id, seed, choosing])
            for seed in seeds
        ]
        browser.close()
    return found


def prepare(page: Page) -> None:
    """Then ``update(["kernel" or "plain", count])`` there takes so many milliseconds an update."""
    page.evaluate("globalThis.vitbook = {}")
    for name in COMPUTES:
        page.add_script_tag(path=FOLDER / f"{name}.js")
    page.evaluate(UPDATES)


def ratios(rounds: int = 15, updates: int = 20) -> list[float]:
    """Times of the plain path over those of the kernel, one after the other, in Chromium."""
    from playwright.sync_api import sync_playwright

    from tools.browser import FLAGS, find_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        page = browser.new_page()
        prepare(page)
        times = [
            [page.evaluate("given => update(given)", [way, updates]) for way in ("plain", "kernel")]
            for _ in range(rounds)
        ]
        browser.close()
    return [round(plain / fast, 1) for plain, fast in times[1:]]  # the first compiles


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true", help="seeds 0 to 19; nothing is kept")
    parser.add_argument("--only", choices=[one.id for one in EXPERIMENTS], action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kernel", action="store_true", help="only write train-kernel.js")
    given = parser.parse_args(arguments)
    if given.kernel:
        (FOLDER / "train-kernel.js").write_text(kernel(), "utf8")
        return
    kept = json.loads(RECORD.read_text("utf8")) if RECORD.is_file() else {}
    record = {
        name: kept[name] for name in (PLAIN, *(one.id for one in EXPERIMENTS)) if name in kept
    }
    todo = [
        one
        for one in EXPERIMENTS
        if (one.id in given.only if given.only else given.choose)
        or record.get(one.id, {}).get("digest") != digest(one)
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        seeds = CHOOSING if given.choose else SEEDS
        waiting = {one.id: pool.submit(run, one, seeds, given.choose) for one in todo}
        for one in tqdm(todo, unit="experiment"):
            percent = waiting[one.id].result()
            found = told(one, percent)
            tqdm.write(f"{one.id}: {found['held']} of {found['runs']}, {found['ranges']}")
            if not given.choose:
                record[one.id] = {"digest": digest(one), "percent": percent}
                keep(record)
    if not given.choose and record.get(PLAIN, {}).get("digest") != engine():
        keep({**record, PLAIN: {"digest": engine(), "ratios": ratios()}})


def keep(record: dict) -> None:
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf8")


if __name__ == "__main__":
    main()
