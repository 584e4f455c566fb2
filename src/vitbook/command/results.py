"""``python -m vitbook results``: what a run gets right, and its worst mistakes, on one page."""

import argparse
import html
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from vitbook.book.intervals import wilson_interval
from vitbook.command.attention_page import given_to_patches, opens_with
from vitbook.command.recipes import class_names, pixels_of
from vitbook.command.runs import asked_part
from vitbook.explorer.page import document
from vitbook.explorer.still import embedded, painted
from vitbook.files import write_atomically
from vitbook.inspection import attention_maps, find_num_prefix

MISTAKES = 12  # shown, the most certain ones first
WIDEST = 12  # classes up to which all confusions stand in one table
PAIRS = 10  # of the others the commonest


@torch.no_grad()
def results(options: argparse.Namespace) -> None:
    """Write the page: accuracy by class, who is taken for whom, the worst mistakes."""
    out = Path(options.out)
    if out.suffix != ".html":
        raise ValueError(f"--out must end in .html, got {out}")
    settings, model, (images, labels), titles, notes = asked_part(options)
    names = class_names(settings)
    device = next(model.parameters()).device
    places = torch.arange(len(labels)).split(100)
    parts = [model(images[some].to(device)).softmax(dim=-1).cpu() for some in places]
    probabilities = torch.cat(parts)  # (n, K)
    answers = probabilities.argmax(dim=-1)
    counts = torch.zeros(len(names), len(names), dtype=torch.int64)
    counts.index_put_((labels, answers), torch.ones(len(labels), dtype=torch.int64), True)
    wrong = (answers != labels).nonzero().flatten()
    certain = probabilities[wrong, answers[wrong]]
    worst = wrong[certain.argsort(descending=True)][:MISTAKES]
    body = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    body += _accuracy(counts, names) + _confusion(counts, names)
    shown = images[worst].to("cpu")
    body += _mistakes(model.cpu(), settings, shown, labels, probabilities, worst, names, titles)
    name = Path(options.run).resolve().name
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, document(f"What {name} answers ({options.part})", body).encode())
    right = len(labels) - len(wrong)
    print(f"{settings['data']}, {options.part}: {right} of {len(labels)} right; written into {out}")


def _accuracy(counts: Tensor, names: list[str]) -> str:
    rows, right, of = [], counts.diag().tolist(), counts.sum(dim=1).tolist()
    for name, k, n in zip([*names, "all"], [*right, sum(right)], [*of, sum(of)], strict=True):
        share, low, high = wilson_interval(k, n) if n else (0.0, 0.0, 1.0)
        interval = f"{100 * low:.0f} to {100 * high:.0f} %"
        rows.append([name, f"{k} of {n}", f"{100 * share:.1f} %", interval])
    header = ["class", "right", "share", "95 % interval (images)"]
    return f"<h2>Accuracy</h2>{_table('Right answers by class.', header, rows)}"


def _confusion(counts: Tensor, names: list[str]) -> str:
    if len(names) <= WIDEST:
        rows = [[name, *map(str, row)] for name, row in zip(names, counts.tolist(), strict=True)]
        table = _table("Rows: what it is. Columns: what was answered.", ["class", *names], rows)
        return f"<h2>Who is taken for whom</h2>{table}"
    off = counts - counts.diag().diag()
    best = off.flatten().topk(PAIRS)
    rows = [
        [names[int(at) // len(names)], names[int(at) % len(names)], str(int(number))]
        for number, at in zip(best.values, best.indices, strict=True)
        if number
    ]
    table = _table("The commonest confusions.", ["it is", "answered", "images"], rows)
    return f"<h2>Who is taken for whom</h2>{table}"


def _mistakes(
    model: nn.Module,
    settings: dict,
    images: Tensor,
    labels: Tensor,
    probabilities: Tensor,
    worst: Tensor,
    names: list[str],
    titles: list[str],
) -> str:
    if not len(worst):
        return "<h2>The worst mistakes</h2><p>There is none in this part.</p>"
    from PIL import Image

    maps, told = _maps(model, images)
    pixels = pixels_of(images, settings).expand(-1, 3, -1, -1)  # (n, 3, S, S)
    photos = (pixels.permute(0, 2, 3, 1) * 255).round().byte().numpy()
    items = []
    for i, at in enumerate(worst.tolist()):
        shown = np.ones((1, 1)) if maps is None else maps[i]
        own = painted(photos[i], shown, 224)
        whole = Image.fromarray(photos[i]).resize(own.size, Image.Resampling.NEAREST)
        answer = int(probabilities[at].argmax())
        truth, p, q = int(labels[at]), probabilities[at, answer], probabilities[at, labels[at]]
        said = f"Answer {names[answer]} ({_percent(p)}), truth {names[truth]} ({_percent(q)})"
        pictures = f'<img src="{embedded(whole)}" alt="{html.escape(titles[at])}">'
        if maps is not None:
            pictures += f'<img src="{embedded(own)}" alt="Where its last layer looks, in orange.">'
        text = f"<p><b>{html.escape(said)}</b><br>{html.escape(titles[at])}</p>"
        items.append(f"<li>{pictures}{text}</li>")
    return (
        "<h2>The worst mistakes</h2><p>The wrong answers that the model was surest of. "
        f"{html.escape(told)}</p><ul class='mistakes'>{''.join(items)}</ul>"
    )


def _percent(share: Tensor) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _maps(model: nn.Module, images: Tensor) -> tuple[np.ndarray | None, str]:
    """What the last layer looks at (n, rows, columns), in even shares, and what to say of it."""
    try:
        last = attention_maps(model, images)[-1].mean(dim=1)  # (n, N, N)
        prefix = find_num_prefix(model)
    except (ValueError, TypeError) as error:
        return None, f"No maps are drawn: {error}."
    token, who = opens_with(model, prefix)
    patches = given_to_patches(last, token, prefix)  # (n, P)
    side = round(patches.shape[1] ** 0.5)
    if side**2 != patches.shape[1]:
        return None, "No maps are drawn: the patches are no square."
    told = f"Beside each, where {who} looks in the last layer, mean of the heads: a picture of the "
    told += "model's arithmetic, no reason for its answer (python -m vitbook attention audits one)."
    return (patches * patches.shape[1]).view(-1, side, side).numpy(), told


def _table(caption: str, header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in header)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
