"""``python -m vitbook evaluate``."""

import argparse

from vitbook import training
from vitbook.book.intervals import wilson_interval
from vitbook.command.recipes import titled_part
from vitbook.command.runs import trained_model


def evaluate(options: argparse.Namespace) -> None:
    """Print loss and accuracy of a run's model on one part of its data."""
    settings, root, model = trained_model(options)
    (images, labels), _, notes = titled_part(settings, options.part, root)
    if notes:
        print(*notes, sep="\n")
    loss, accuracy, n = training.evaluate(model, images, labels)
    _, low, high = wilson_interval(round(n * accuracy), n)
    print(
        f"{settings['data']}, {options.part}: {round(n * accuracy):,} of {n:,} right, "
        f"accuracy {100 * accuracy:.2f} % (95 % interval {100 * low:.2f} to {100 * high:.2f} %), "
        f"loss {loss:.4f} nats"
    )
