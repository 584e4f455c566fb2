"""``python -m vitbook evaluate``."""

import argparse

from vitbook import training
from vitbook.book.intervals import wilson_interval
from vitbook.command.runs import asked_part


def evaluate(options: argparse.Namespace) -> None:
    """Print loss and accuracy of a run's model on one part of its data."""
    settings, model, (images, labels), _, _ = asked_part(options)
    loss, accuracy, n = training.evaluate(model, images, labels)
    _, low, high = wilson_interval(round(n * accuracy), n)
    print(
        f"{settings['data']}, {options.part}: {round(n * accuracy):,} of {n:,} right, "
        f"accuracy {100 * accuracy:.2f} % (95 % interval {100 * low:.2f} to {100 * high:.2f} %), "
        f"loss {loss:.4f} nats"
    )
