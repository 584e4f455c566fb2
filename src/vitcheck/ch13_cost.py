"""Checks of chapter 13: what it costs."""

import math

import torch

from vitcheck.trial import staged

# Made-up times in milliseconds, for reading: A is 1 ms and 1 ms for each 128 tokens.
TIMES = {
    "tokens": (128, 256, 512, 1024),
    "A": (2.0, 3.0, 5.0, 9.0),
    "B": (0.4, 1.4, 5.2, 20.0),
}
QUESTIONS = (
    "exponent of A between 512 and 1024 tokens",
    "exponent of B between 512 and 1024 tokens",
    "B takes longer than A from between 128, 256 or 512 tokens and the next length",
    "milliseconds that A takes however few tokens there are",
    "C: exponent 1.12, interval 0.95 to 1.29. Is its time linear: yes, no, or open?",
)


@staged("the bill", ok="every product of the model, for its tokens and no others.")
def check_bill(trial, bill):
    """bill(image_size, patch_size, D, L, classes): products in a ViT, for one image."""
    for D in (6, 10):
        P, side, L = trial.integer(2, 4), trial.integer(3, 5), trial.integer(2, 4)
        classes = trial.integer(11, 17)
        patches = side * side
        inside, ends = 3 * P * P * D, D * classes

        def whole(n, inside=inside, ends=ends, patches=patches, L=L, D=D):
            return L * (12 * n * D * D + 2 * n * n * D) + patches * inside + ends

        n = patches + 1
        want = whole(n)
        block = 12 * n * D * D + 2 * n * n * D
        trial.stage("the number")
        trial.match(
            bill(P * side, P, D, L, classes),
            want,
            {
                "which token is not a patch?": whole(patches),
                "those are FLOPs; how many multiplications are two of them?": 2 * want,
                "how many blocks are there?": want - (L - 1) * block,
                "the blocks alone; what happens before them, and after?": L * block,
                "what turns the class token into logits?": want - ends,
                "how do pixels become tokens?": want - patches * inside,
                "an image has three colours": want - 2 * patches * P * P * D,
                "the class token is no patch: does the embedding make it?": want + inside,
                "does the head read every token?": want + (n - 1) * ends,
                "where do two tokens meet? How often?": [
                    want - L * n * n * D,
                    want - 2 * L * n * n * D,
                ],
                "how wide is the MLP between its layers?": want - L * 6 * n * D * D,
                "which four products of D x D has attention?": [
                    want - L * n * D * D,
                    want - 4 * L * n * D * D,
                ],
            },
            otherwise=f"{P * side} pixels, patches of {P}, D = {D}, L = {L}: it is {want}; count "
            "the tokens first",
            tolerance=0,
            name="the number of multiplications",
        )


@staged("reading curves", ok="slopes, a crossing, a fixed cost, and what an interval leaves open.")
def check_reading(trial, my_reading):
    """my_reading() -> {question: answer} for QUESTIONS about TIMES."""
    given = trial.answers(my_reading(), QUESTIONS)
    a, b, crossing, fixed, linear = (given[question] for question in QUESTIONS)
    times = TIMES["A"], TIMES["B"]
    for name, answer, (*_, before, after) in zip("AB", (a, b), times, strict=True):
        trial.stage(f"exponent of {name}")
        trial.match(
            answer,
            math.log2(after / before),
            {
                "that is how many times as long it takes; to what power is 2 raised for that?": (
                    after / before
                ),
                "which logarithm turns a doubling into 1?": [
                    math.log(after / before),
                    math.log10(after / before),
                ],
                "that is a slope in ms per token; what are the axes of a log-log plot?": (
                    (after - before) / 512
                ),
                "is the longer time above or below the line?": math.log2(before / after),
            },
            otherwise=f"twice the tokens, {after} ms for {before}: 2 to which power is that?",
            tolerance=0.02,
        )
    trial.stage("the crossing")
    trial.ask(
        trial.number(crossing) == 256,
        "give the length before the crossing: where is B still below A, and at the next no more?",
    )
    trial.stage("the fixed cost")
    trial.match(
        fixed,
        1.0,
        {
            "at 128 tokens the tokens themselves cost something already": 2.0,
            "from 128 to 256 tokens A grows by 1 ms; what is left at no tokens?": 0.0,
        },
        otherwise="A lies on a line over n (not over log n); where does it start?",
        tolerance=0.01,
    )
    trial.stage("the interval")
    said = str(linear).strip().lower()
    trial.ask(said != "yes", "1 lies in the interval, and so does 1.2; is 1.2 linear?")
    trial.ask(said != "no", "does the interval leave out 1?")
    trial.ask(said == "open", 'answer "yes", "no" or "open"')


@staged("window mask", ok="own window, the class token from and to everywhere, on any grid.")
def check_window_mask(trial, window_mask):
    """window_mask(rows, columns, w): boolean (N, N) with N = 1 + rows * columns, True = may."""
    for rows, columns, w in ((4, 6, 2), (3, 6, 3)):
        N = 1 + rows * columns
        place = torch.arange(rows * columns)
        row, column = place // columns, place % columns

        def framed(inner, first_row=True, first_column=True, N=N):
            mask = torch.zeros(N, N, dtype=torch.bool)
            mask[1:, 1:] = inner
            mask[0, 0] = True
            mask[0, 1:], mask[1:, 0] = first_row, first_column
            return mask

        def same(*labels):
            equal = [label[:, None] == label for label in labels]
            return torch.stack(equal).all(dim=0)

        right = same(row // w, column // w)
        trial.stage("the mask")
        trial.match(
            trial.tensor(window_mask(rows, columns, w), (N, N), dtype=torch.bool),
            framed(right),
            {
                "True means may attend; is this the other way round?": ~framed(right),
                "whom may the class token ask?": framed(right, first_row=False),
                "who may ask the class token?": framed(right, first_column=False),
                "the class token is alone; how would the image reach it?": framed(
                    right, first_row=False, first_column=False
                ),
                "only neighbours in one row of patches; a window is a square": [
                    framed(same(place // w)),
                    framed(same(row, column // w)),
                ],
                "w * w patches that follow each other in the sequence; are they a square?": framed(
                    same(place // (w * w))
                ),
                "a whole band of the image is one window": [
                    framed(same(row // w)),
                    framed(same(column // w)),
                ],
                "rows or columns: by which do you divide to find a patch's row?": framed(
                    same(place // rows // w, place % rows // w)
                ),
                "that is a window around each patch; here windows do not slide": framed(
                    ((row[:, None] - row).abs() < w) & ((column[:, None] - column).abs() < w)
                ),
            },
            otherwise=f"{rows} x {columns} patches, windows of {w} x {w}: with whom may patch 0 "
            "speak? And the last one?",
        )


@staged("attention over merged tokens", ok="a token of two patches counts twice, as if unmerged.")
def check_sizes(trial, attention):
    """attention(q, k, v, size): (B, h, N, d) three times and sizes (B, N) -> (B, h, N, d)."""
    B, h, N, d = 2, 3, 5, 4
    q, k, v = (trial.randn(B, h, N, d) for _ in range(3))
    size = torch.tensor([[1.0, 2, 1, 3, 1], [4.0, 1, 1, 1, 2]])
    trial.stage("shape")
    got = trial.tensor(attention(q, k, v, size), (B, h, N, d))
    scores, each = q @ k.mT / d**0.5, size[:, None, None]  # (B, h, N, N), (B, 1, 1, N)
    trial.stage("which tokens count, and how often")
    trial.match(
        got,
        (scores + each.log()).softmax(-1) @ v,
        {
            "the sizes change nothing; are they missing, or the same along a row? What counts is "
            "how large the token is that is looked at": scores.softmax(-1) @ v,
            "the size itself is added to the score; the softmax raises e to it: is that once more "
            "for each patch?": (scores + each).softmax(-1) @ v,
            "the scores are multiplied: then a negative score counts less the larger the token": (
                (scores * each).softmax(-1) @ v
            ),
            "weights times sizes: do the rows still sum to one?": scores.softmax(-1) * each @ v,
            "what divides the scores?": (q @ k.mT + each.log()).softmax(-1) @ v,
            "a large token counts less": (scores - each.log()).softmax(-1) @ v,
        },
        otherwise="write a token of size 2 out as two equal tokens: what comes out then?",
        tolerance=1e-4,
    )
