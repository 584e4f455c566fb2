"""``python -m vitbook compare``: a layer of one's own beside those of the book, as a page."""

import argparse
import base64
import html
import json
from pathlib import Path

from matplotlib.figure import Figure

from vitbook.book.intervals import Interval
from vitbook.book.records import load_record
from vitbook.comparison.contest import compare
from vitbook.comparison.tasks import TASKS
from vitbook.comparison.verdict import Verdict, as_json, in_short
from vitbook.explorer.page import document
from vitbook.files import write_atomically
from vitbook.plotting import figure_png


def compare_layer(options: argparse.Namespace) -> None:
    """Train the layer, or go on with it, and write the page and its numbers."""
    out = Path(options.out)
    verdict = compare(
        options.layer,
        out,
        task=options.task,
        workers=options.workers,
        progress=options.progress,
        root=None if options.root is None else Path(options.root),
        download=options.download,
    )
    contest = verdict.contest
    name = contest.place.rpartition(":")[2]
    write_atomically(out / "verdict.json", (json.dumps(as_json(verdict), indent=1) + "\n").encode())
    write_atomically(
        out / "index.html", document(f"{name} beside attention", _body(verdict)).encode()
    )
    print(
        f"{name}: D = {contest.width}, {contest.parameters:,} parameters, {contest.steps} updates. "
        f"{verdict.sentence} Written into {out / 'index.html'}"
    )


def _body(verdict: Verdict) -> str:
    contest, task = verdict.contest, TASKS[verdict.contest.task]
    record = load_record(task.record)
    batch, length = record.settings["training"]["batch_size"], record.choice["length"]
    after = f" after {length:.0%} of the updates" * (length < 1)
    picture = base64.b64encode(figure_png(_figure(verdict))).decode()
    edge = " It lies at the edge of what was tried: a better one may be outside." * verdict.at_edge
    rows = "".join(
        f'<tr><th scope="row">{html.escape(other)}</th><td>{_share(share)}</td>'
        f"<td>{_points(difference)}</td><td>{in_short(difference)}</td></tr>"
        for other, share, difference in verdict.rows
    )
    n = len(verdict.accuracies)
    return (
        f'<p class="lead">{html.escape(verdict.sentence)}</p>'
        f'<p><img alt="{html.escape(_spoken(verdict))}" style="max-width:100%" '
        f'src="data:image/png;base64,{picture}"></p>'
        f"<table><caption>The task, {contest.task}: {task.words} The best guess is right in "
        f"{100 * task.guess:.1f} %. Mean of {n} seeds with its 95 % interval; differences are "
        f"paired by seed, and where their interval holds zero, it is a tie: no difference is "
        f"shown.</caption><thead><tr>"
        '<th scope="col">token mixer</th><th scope="col">right answers</th>'
        '<th scope="col">this layer minus it, points</th>'
        '<th scope="col">so it is</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f"<h2>What was equal</h2><p>The block of the ViT (two of them, pre-norm, a learned table "
        f"of positions), width D = {contest.width} for {contest.parameters:,} parameters, "
        f"{contest.steps} updates of {batch} images for the multiplications of the ViT's "
        f"{contest.whole}: {contest.multiplies:,} for one image. Only matrix products and "
        f"convolutions are counted; a sort or a Fourier transform counts nothing.</p>"
        f"<p>The learning rate, {verdict.rate:g}, was searched like the others': by validation "
        f"loss{after}, the mean of as many seeds for each value.{edge} The others come from the "
        f"record {task.record}, and were not trained again.</p>"
        "<p>One task, one size, one budget. On another task (<code>--task</code>), or with a "
        "longer training, the order may be another.</p>"
    )


def _figure(verdict: Verdict) -> Figure:
    """The shares with their intervals, the new layer last."""
    figure = Figure(figsize=(7, 0.5 * len(verdict.rows) + 1))
    ax = figure.add_subplot()
    for i, (_, share, difference) in enumerate(verdict.rows):
        colour = "#c3500a" if difference is None else "#2f77b5"
        low, high = max(0.0, share.low), min(1.0, share.high)
        ax.plot([100 * low, 100 * high], [i, i], color=colour, lw=3, solid_capstyle="butt")
        ax.plot([100 * share.mean], [i], "o", color=colour, ms=8)
    guess = 100 * TASKS[verdict.contest.task].guess
    ax.axvline(guess, color="#4a5568", ls="--", lw=1)
    ax.text(guess, -0.7, " guessing", va="center", fontsize=9, color="#4a5568")
    ax.set_yticks(range(len(verdict.rows)), [name for name, _, _ in verdict.rows])
    ax.set(ylim=(len(verdict.rows) - 0.5, -1), xlim=(0, 102), xlabel="right answers, %")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    figure.tight_layout()
    return figure


def _spoken(verdict: Verdict) -> str:
    return "Right answers: " + "; ".join(
        f"{name} {100 * share.mean:.1f} %" for name, share, _ in verdict.rows
    )


def _share(share: Interval) -> str:
    return f"{100 * share.mean:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f})"


def _points(difference: Interval | None) -> str:
    if difference is None:
        return ""
    numbers = [f"{100 * x:+.1f}".replace("-", "\N{MINUS SIGN}") for x in difference]
    return f"{numbers[0]} ({numbers[1]} to {numbers[2]})"
