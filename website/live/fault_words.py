"""Name the fault: the twelve faults, and the fourteen tests, in the words of the page."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from website.live import fault_tests as measure
from website.live.fault_tests import Training, large, small, unlike

# Fault -> the line that is wrong, as the reader finds it in the list; what it does; and the test
# that shows it.
FAULTS = {
    "softmax over the queries": (
        "scores.softmax(dim=-2)",
        "The columns of a map sum to 1, its rows do not.",
        "sums",
    ),
    "heads split by view alone": (
        "q.view(B, h, N, d), without a transpose",
        "Each head holds half of the tokens, so one of them cannot see the last patch.",
        "heads",
    ),
    "scores not divided by sqrt(d)": (
        "(q @ k.mT).softmax(dim=-1)",
        "Its map is another one, although rows sum to 1 and both heads see the last patch.",
        "map",
    ),
    "positions missing": (
        "the table is made, and never added",
        "A patch is the same wherever it stands.",
        "table",
    ),
    "positions added twice": (
        "x + table + table",
        "The tokens hold the table twice.",
        "table",
    ),
    "no residual around the MLP": (
        "x = mlp(norm2(x))",
        "What the last MLP does not pass on is lost.",
        "mlp",
    ),
    "patches cut by reshape alone": (
        "images.reshape(B, N, P * P)",
        "A patch of the image lies in three tokens.",
        "cell",
    ),
    "last token read as class token": (
        "features[:, -1]",
        "The last patch answers, even where attention brings it nothing.",
        "mix",
    ),
    "never in evaluation mode": (
        "dropout of a tenth, also in tests",
        "Dropout is drawn anew at each call.",
        "twice",
    ),
    "normalised twice in tests": (
        "once in training",
        "In tests the pixels spread about three times as wide as in training.",
        "pixels",
    ),
    "labels shuffled in a quarter of batches": (
        "the loader mixes images and labels",
        "It knows new images better than its training loss says.",
        "new",
    ),
    "schedule stepped once per epoch": (
        "the warm-up of 40 updates lasts 40 epochs",
        "The training ends long before its warm-up.",
        "rate",
    ),
}


@dataclass(frozen=True)
class Test:
    """``name`` begins what the number ends; ``digits`` stand behind its point."""

    group: str
    name: str
    means: str
    measure: Callable[[Training], float]
    sign: Callable[[float], int]
    digits: int = 2


LEARN, ASK, LOOK = "The training", "Ask the model", "Look inside"
TESTS = {
    "first": Test(
        LEARN,
        f"First loss (a guess: ln 4 = {math.log(4):.2f})",
        "Before the first update. A guess among four classes costs ln 4.",
        measure.first_loss,
        unlike(math.log(4)),
    ),
    "new": Test(
        LEARN,
        "Late training loss minus loss on new images",
        "The mean loss of the last 100 updates, minus the loss on 200 images it has not seen.",
        measure.lost,
        unlike(0),
    ),
    "rate": Test(
        LEARN,
        "Highest rate, as a share of the one set",
        "How high the schedule took the learning rate. It should reach the rate that was set: 1.",
        measure.highest_rate,
        unlike(1),
    ),
    "code": Test(
        ASK,
        "Its weights in healthy code, change of the logits",
        "The same weights in a model without a fault. 0: look for the fault in the training.",
        measure.healthy_code,
        large,
    ),
    "twice": Test(
        ASK,
        "The same images twice, change of the logits",
        "The same 200 images again. The second answers should be the first ones: 0.",
        measure.twice,
        large,
    ),
    "rows": Test(
        ASK,
        "Rows of patches swapped, change of the logits (0 or not)",
        "The top and the bottom row of patches change places. 0: places make no difference.",
        measure.rows_swapped,
        small,
    ),
    "pixels": Test(
        LOOK,
        "Standard deviation of pixels that arrive",
        "How wide the pixels spread after the normalisation. It should be about 1.",
        measure.pixels,
        unlike(1),
    ),
    "cell": Test(
        LOOK,
        "One patch repainted, tokens that change",
        "Black and white change places in one patch. One token should change.",
        measure.tokens_changed,
        unlike(1),
        0,
    ),
    "table": Test(
        LOOK,
        "Times that the table of positions is added",
        "How often the tokens hold the table. It should be once.",
        measure.tables_added,
        unlike(1),
    ),
    "map": Test(
        LOOK,
        "First map, distance to one written out",
        "The first layer's map beside softmax(q @ k.mT / sqrt(d)) of the same q and k: the largest "
        "difference.",
        measure.written_out,
        large,
    ),
    "sums": Test(
        LOOK,
        "Sum of a row of a map, farthest from 1",
        "What a patch takes from all patches should sum to 1. This is the row that misses it most.",
        measure.row_sum,
        unlike(1),
    ),
    "heads": Test(
        LOOK,
        "Last patch repainted, maps that change (of 2)",
        "Of the two heads of the first layer: how many see that the last patch has changed?",
        measure.maps_changed,
        unlike(2),
        0,
    ),
    "mlp": Test(
        LOOK,
        "Last MLP silenced, gap between images' answers (0 or not)",
        "The last MLP puts out zeros. 0: all 200 images get one and the same answer.",
        measure.answers_differ("1.mlp.fc2"),
        small,
    ),
    "mix": Test(
        LOOK,
        "Attention silenced, gap between images' answers",
        "Attention puts out zeros. No patch reaches the class token then, so all 200 images should "
        "get one and the same answer: 0.",
        measure.answers_differ("attn.proj"),
        large,
    ),
}
