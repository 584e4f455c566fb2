"""``python -m vitbook compare``: a layer of one's own beside those of the book, as a page."""

import argparse
import html
import json
from pathlib import Path

from vitbook.book.intervals import Interval
from vitbook.book.records import load_record
from vitbook.comparison.contest import compare
from vitbook.comparison.tasks import TASKS
from vitbook.comparison.verdict import Verdict, as_json, in_short
from vitbook.explorer.page import document
from vitbook.files import write_atomically


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
        report=_say,
    )
    write_atomically(out / "verdict.json", (json.dumps(as_json(verdict), indent=1) + "\n").encode())
    title = f"{verdict.contest.name} beside attention"
    write_atomically(out / "index.html", document(title, _body(verdict)).encode())
    _say(f"{verdict.sentence} Written into {out / 'index.html'}")


def _say(line: str) -> None:
    print(line, flush=True)  # into a file, too, before the first training is done


def _body(verdict: Verdict) -> str:
    contest, task = verdict.contest, TASKS[verdict.contest.task]
    record = load_record(task.record)
    batch, length = record.settings["training"]["batch_size"], record.choice["length"]
    after = f" after {length:.0%} of the updates" * (length < 1)
    edge = " It lies at the edge of what was tried: a better one may be outside." * verdict.at_edge
    rows = "".join(
        f'<tr><th scope="row">{html.escape(other)}</th><td>{_share(share)}</td>'
        f"<td>{_points(difference)}</td><td>{in_short(difference)}</td></tr>"
        for other, share, difference in verdict.rows
    )
    n = len(verdict.accuracies)
    return (
        f'<p class="lead">{html.escape(verdict.sentence)}</p>'
        f'{_figure(verdict)}<div class="scroll" tabindex="0"><table class="compared">'
        f"<caption>The task, {contest.task}: {task.words} The best guess is right in "
        f"{_percent(task.guess)}. Mean of {n} seeds with its 95 % interval, which is cut where "
        f"no share can be, below 0 and above 100; differences are "
        f"paired by seed, and where their interval holds zero, it is a tie: no difference is "
        f"shown.</caption><thead><tr>"
        '<th scope="col">token mixer</th><th scope="col">right answers</th>'
        '<th scope="col">this layer minus it, points</th>'
        '<th scope="col">so it is</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f"<h2>What was equal</h2><p>The block of the ViT (two of them, pre-norm, a learned table "
        f"of positions), width D = {contest.width} for {contest.parameters:,} parameters, "
        f"{contest.steps} updates of {batch} images for the multiplications of the ViT's "
        f"{contest.whole}: {contest.multiplies:,} for one image. Only matrix products and "
        f"convolutions are counted; a sort or a Fourier transform counts nothing.</p>"
        f"<p>The learning rate, {verdict.rate:g}, was searched like the others': by validation "
        f"loss{after}, the mean of as many seeds for each value.{edge} The others come from the "
        f"record {task.record}, and were not trained again. On another kind of processor than "
        f"theirs ({html.escape(record.device)}) the same seed rounds otherwise and "
        f"can end points away, so a pair shares the images and their order, and no more.</p>"
        "<p>One task, one size, one budget. On another task (<code>--task</code>), or with a "
        "longer training, the order may be another.</p>"
    )


def _figure(verdict: Verdict) -> str:
    """The shares with their intervals, the new layer last."""
    guess = TASKS[verdict.contest.task].guess
    rows = ""
    for name, share, difference in verdict.rows:
        mean, low, high = (f"{100 * x:.1f}%" for x in _cut(share))
        new = ' class="new"' * (difference is None)
        rows += f"<span>{html.escape(name)}</span><i{new} "
        rows += f'style="--mean:{mean};--low:{low};--high:{high};--guess:{100 * guess:.1f}%"></i>'
    said = "; ".join(f"{name} {_percent(share.mean)}" for name, share, _ in verdict.rows)
    return (
        f'<div class="shares" role="img" aria-label="Right answers: {html.escape(said)}; a guess '
        f'{_percent(guess)}.">{rows}<span></span><small><span>0</span>'
        f'<span style="left:max({100 * guess:.1f}%, 2.2rem)">guess</span>'
        "<span>100&nbsp;%</span></small></div>"
    )


def _cut(share: Interval) -> Interval:
    """Where a share can be."""
    return Interval(share.mean, max(0.0, share.low), min(1.0, share.high))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _share(share: Interval) -> str:
    _, low, high = _cut(share)
    return f"{_percent(share.mean)} {_between(f'{100 * low:.1f}', f'{100 * high:.1f}')}"


def _points(difference: Interval | None) -> str:
    if difference is None:
        return ""
    mean, low, high = (f"{100 * x:+.1f}".replace("-", "\N{MINUS SIGN}") for x in difference)
    return f"{mean} {_between(low, high)}"


def _between(low: str, high: str) -> str:
    """An interval that no line breaks."""
    return f"({low} to {high})".replace(" ", "\N{NO-BREAK SPACE}")
