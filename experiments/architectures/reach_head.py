"""`reach` with a hidden layer in the head: is the cliff the field's, or the linear head's?"""

from dataclasses import replace
from typing import Any

from torch import nn

from experiments.architectures import reach
from experiments.machinery.choose import Choice

ARM = "no mixing"  # no token hears another, so under the linear head of `reach` it guesses
TIMES = 2  # as many updates as in `reach`
HIDDEN = 128  # units of the head


class HiddenHead(nn.Sequential):
    """The mean over the patches goes through one hidden layer.

    Args:
        embed_dim: width of a token.
        num_classes: how many logits come out.
    """

    def __init__(self, embed_dim: int, num_classes: int) -> None:
        super().__init__(nn.Linear(embed_dim, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, num_classes))
        self.in_features = embed_dim


def build(times: int) -> nn.Module:
    """The model of `reach` without mixing, with another head."""
    model: Any = reach.build(ARM)
    model.head = HiddenHead(reach.MODEL["embed_dim"], reach.MODEL["num_classes"])
    return model


CLASSIFIER = replace(
    reach.CLASSIFIER,
    build=build,
    settings=lambda condition: {"steps": condition["times"] * reach.RECIPE["steps"]},
)

EXPERIMENT = replace(
    reach.EXPERIMENT,
    what="The strips of `reach` with a hidden layer in the head, which reads the mean of all "
    f"patches, and no mixing before it; {TIMES} times the updates.",
    chosen_on="validation images: the learning rate, with one seed, after as many updates as in "
    "`reach`, where the three lowest were as good. One run made afterwards with half of the chosen "
    "rate did much better, so what is measured here is a lower bound",
    conditions=[{"times": TIMES}],
    run=CLASSIFIER.run,
    settings={
        "model": reach.MODEL,
        "hidden": HIDDEN,
        "training": reach.RECIPE,
        "arm": reach.ARMS[ARM],
        "times": TIMES,
    },
    replay=({"times": TIMES}, 0),
    steps=CLASSIFIER.steps,
    workers=1,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=CLASSIFIER.trial,
        length=1 / TIMES,
        finalists=0,
        limit=6,
    ),
)
