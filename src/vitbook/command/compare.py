"""``python -m vitbook compare``: a layer of one's own beside those of the book, as a page."""

import argparse
import html
import json
import re
from pathlib import Path

from vitbook.comparison.contest import compare as train_and_compare
from vitbook.comparison.tasks import BUDGET, TASKS, record_of
from vitbook.comparison.times import RATE, on_axis
from vitbook.comparison.verdict import Verdict, as_json
from vitbook.explorer.page import document
from vitbook.files import write_atomically


def compare(options: argparse.Namespace) -> None:
    """Train the layer, or go on with it, and write the page and its numbers."""
    out = Path(options.out)
    verdict = train_and_compare(
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
    record, n = record_of(contest.task), len(verdict.found)
    batch, length = record.settings["training"]["batch_size"], record.choice["length"]
    edge = " It lies at the edge of what was tried: a better one may be outside." * verdict.at_edge
    rows = "".join(
        f'<tr><th scope="row">{html.escape(row.name)}</th>'
        + "".join(f"<td>{_unbroken(cell)}</td>" for cell in row.cells)
        for row in verdict.rows
    )
    if task.timed:
        columns: tuple[str, ...] = (
            "half right after, billion multiplications",
            "this layer, times as many",
            "until 95&nbsp;%, times as many",
        )
        caption = (
            "Medians; in brackets how many of the seeds had half of their answers right within the "
            "budget of their training; ratios of medians with their 95&nbsp;% bootstrap intervals. "
            f"Tie: the interval reaches into {1 / RATE:.2g} to {RATE:g}, as far as another "
            "learning rate takes one layer; open: the budget ends before."
        )
        updates = (
            f"at most {contest.steps:,} updates of {batch} images for the multiplications of the "
            f"ViT's {contest.whole:,}, {BUDGET} times what it needs (median) until half of its "
            f"answers are right; {contest.multiplies:,} for one image, forwards"
        )
        how = (
            "by the mean validation loss over the whole way, three seeds for each value. After the "
            "warm-up the rate stays the same. A model is asked each time after a twentieth more "
            "updates."
        )
    else:
        columns = ("right answers", "this layer minus it, points")
        caption = (
            f"Mean of {n} seeds with its 95&nbsp;% interval, which is cut where no share can be, "
            "below 0 and above 100; differences are paired by seed, and where their interval holds "
            "zero, it is a tie: no difference is shown."
        )
        updates = (
            f"{contest.steps:,} updates of {batch} images for the multiplications of the ViT's "
            f"{contest.whole:,}: {contest.multiplies:,} for one image"
        )
        how = (
            f"by validation loss after {length:.0%} of the updates, the mean of as many seeds for "
            "each value. On another kind of processor than the record's "
            f"({html.escape(record.device)}) the same seed rounds otherwise and can end points "
            "away, so a pair shares the images and their order, and no more."
        )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("token mixer", *columns))
    return (
        f'<p class="lead">{html.escape(verdict.sentence)}</p>'
        f'{_figure(verdict)}<div class="scroll" tabindex="0"><table class="compared">'
        f"<caption>The task, {contest.task}: {task.words} The best guess is right in "
        f"{_unbroken(f'{100 * task.guess:.1f} %')}. {caption}</caption>"
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
        f"<h2>What was equal</h2><p>The block of the ViT (two of them, pre-norm, a learned table "
        f"of positions), width D = {contest.width} for {contest.parameters:,} parameters, "
        f"{updates}. Only matrix products and convolutions are counted; a sort or a Fourier "
        f"transform counts nothing.</p><p>The learning rate, {verdict.rate:g}, was searched like "
        f"the others': {how}{edge} The others come from the record {task.record}, and were not "
        "trained again.</p><p>One task, one size, one recipe. On another task "
        "(<code>--task</code>) the order may be another.</p>"
    )


def _figure(verdict: Verdict) -> str:
    """The layers on one axis, the new one last."""
    task, rows = TASKS[verdict.contest.task], ""
    if task.timed:
        at, marks = on_axis(1), ("0.1", "1, attention", "not learned")
        what = "Until half of the answers are right"
    else:
        at, marks, what = task.guess, ("0", "guess", "100&nbsp;%"), "Right answers"
    for row in verdict.rows:
        low, middle, high = (f"{100 * x:.1f}%" for x in row.bar)
        new = ' class="new"' * (row is verdict.rows[-1])
        rows += f"<span>{html.escape(row.name)}</span><i{new} "
        rows += f'style="--mean:{middle};--low:{low};--high:{high};--guess:{100 * at:.1f}%"></i>'
    said = "; ".join(f"{row.name} {row.cells[0]}" for row in verdict.rows)
    return (
        f'<div class="shares" role="img" aria-label="{what}: {html.escape(said)}.">{rows}'
        f"<span></span><small><span>{marks[0]}</span>"
        f'<span style="left:max({100 * at:.1f}%, 2.2rem)">{marks[1]}</span>'
        f"<span>{marks[2]}</span></small></div>"
    )


def _unbroken(cell: str) -> str:
    """No line breaks before a percent sign or in brackets."""
    cell = html.escape(cell).replace(" %", "\N{NO-BREAK SPACE}%")
    return re.sub(r"\([^)]*\)", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), cell)
