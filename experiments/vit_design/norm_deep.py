"""What `norm_placement` left open: larger rates for 12 and 24 blocks, and twice the steps."""

from __future__ import annotations

from experiments.machinery.experiment import Experiment
from experiments.vit_design import norm_placement
from experiments.vit_design.norm_placement import CLASSIFIER, LONG, SHORT

# With these no best rate is the largest that was tried.
LARGER = {12: (8e-3,), 24: (4e-3, 8e-3, 16e-3)}
LONGER = {  # of 24 blocks, in twice as many steps
    ("pre", True): (5e-4, 1e-3, 2e-3, 4e-3),
    ("post", True): (1e-3, 2e-3),
    ("post", False): (1e-3,),
}


def conditions() -> list[dict]:
    short = [
        {"norm": "pre", "depth": depth, "warmup": warmup, "learning_rate": rate, "steps": SHORT}
        for depth, rates in LARGER.items()
        for warmup in (True, False)
        for rate in rates
    ]
    post: dict = {"norm": "post", "depth": 12, "warmup": True, "steps": SHORT}
    short += [{**post, "learning_rate": rate} for rate in LARGER[12]]
    deep = {"depth": max(LARGER), "steps": LONG}
    long = [
        {"norm": norm, **deep, "warmup": warmup, "learning_rate": rate}
        for (norm, warmup), rates in LONGER.items()
        for rate in rates
    ]
    return short + long


EXPERIMENT = Experiment(
    what="`norm_placement` at larger rates: pre-norm with 12 and 24 blocks, post-norm with 12 and "
    "a warm-up; and 24 blocks of both kinds in twice as many steps.",
    chosen_on="nothing: every rate is shown; which one a reader should take, the validation images "
    "say, that no run learns from",
    metrics={
        name: words
        for name, words in norm_placement.EXPERIMENT.metrics.items()
        if name != "learning_rate"  # of the opponents, which are not here
    },
    conditions=conditions(),
    seeds=range(3),
    run=norm_placement.run,
    data=norm_placement.EXPERIMENT.data,
    settings=norm_placement.EXPERIMENT.settings,
    replay=(
        {"norm": "post", "depth": 12, "warmup": True, "steps": SHORT, "learning_rate": 8e-3},
        0,
    ),
    steps=CLASSIFIER.steps,
)
