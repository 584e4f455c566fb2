"""The run of an experiment on garments anywhere: an opponent, or a model and what it costs."""

from collections.abc import Callable
from typing import Any

from experiments.machinery.baseline_rows import PLAIN, plain
from experiments.machinery.classifier import Classifier, costs
from experiments.machinery.experiment import Log, Outcome
from experiments.vit_design.canvas import garments


def run_on_canvas(classifier: Classifier, steps: int) -> Callable[..., Outcome]:
    """The `run` of an experiment whose conditions are models of the classifier, or {"model": name}.

    Args:
        classifier: Of `garments`.
        steps: Of each training of an opponent, one of `PLAIN`.
    """

    def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
        if condition.get("model") in PLAIN:
            given: dict = {"steps": steps, "log": log, "scale": scale}
            return plain(condition["model"], lambda part: garments(part, scale), **given)
        model, losses = classifier.fit(condition, seed, log, scale, **chosen)
        images, _ = garments("test", scale)
        return Outcome({**classifier.measure(model, losses, scale), **costs(model, images)})

    return run
