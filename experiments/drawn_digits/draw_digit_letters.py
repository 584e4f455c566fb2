"""Of which letters is the digit model unsure? Letters of a pen that it did not learn from."""

from experiments.drawn_digits.draw_digit import NO_DIGIT, stored
from experiments.drawn_digits.pen import pen_letters
from experiments.drawn_digits.pen_shapes import LETTERS, LIKE_DIGITS
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.measures import probabilities
from vitbook.data import STATISTICS, normalize

SHAPES = {**LETTERS["validation"], **LIKE_DIGITS}
COUNT = 200  # drawings of each letter with each seed


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    model, threshold = stored()
    images = pen_letters(SHAPES[condition["letter"]], scaled(COUNT, scale), seed)
    sure, answers = probabilities(model, normalize(images, *STATISTICS["mnist"])).max(dim=-1)
    answers[sure < threshold] = NO_DIGIT
    counts = answers.bincount(minlength=NO_DIGIT + 1) / len(answers)
    return Outcome({"unsure": counts[NO_DIGIT].item(), "said": counts.tolist()})


EXPERIMENT = Experiment(
    what="The kept model of `draw_digit` on letters of a pen, none of which it learned from: of "
    "which it is unsure, and as what it reads the others.",
    chosen_on="nothing: all letters are shown",
    metrics={
        "unsure": 'share of the drawings of this letter that get "not sure"',
        "said": f'share of each answer; the last, {NO_DIGIT}, is "not sure"',
    },
    conditions=[{"letter": letter} for letter in SHAPES],
    seeds=range(3),
    run=run,
    data=lambda: {"letters": checksum(*(pen_letters(one, 2, 0) for one in SHAPES.values()))},
    settings={"drawings": COUNT, "like digits": list(LIKE_DIGITS)},
    workers=1,
)
