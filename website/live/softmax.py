"""What "sixteen keys" reads: the draws and the pairs of the chapter's own drawing code."""

from importlib import import_module

from .pack import packed

DRAWS = 8


def data() -> dict:
    """The scores of sixteen keys at each width, for each draw; how those of many pairs spread."""
    import torch

    drawing = import_module("vitbook.figures.scaled_dot_product")  # beside the page, so untyped
    scores = torch.stack(
        [drawing.meeting(seed)[:, [d - 1 for d in drawing.WIDTHS]] for seed in range(DRAWS)]
    )
    spreads = [drawing.spread_of(drawing.random_pairs(d), d) for d in drawing.WIDTHS]
    heights = [[255 * one / max(counts) for one in counts] for counts, _ in spreads]
    arrays = {
        "scores": packed(scores.numpy(), "f32"),
        "counts": packed(heights, "u8"),
        "typical": packed([typical for _, typical in spreads], "f32"),
    }
    return {"widths": drawing.WIDTHS, "arrays": arrays}
