"""Pictures in the wrong folder: are they the mistakes that a model is surest of?

Two photographs are cut into squares, a folder for each; some squares of each go into the other's
folder, and the command that a reader types learns what is there. The weights to start from are of
the record `five_classes`.
"""

import tempfile
from pathlib import Path

import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from experiments.few_images.by_command import WEIGHTS, learned_by_command
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from vitbook.data.folder import load_folder

PAIR = (("china", "flower"), ("flower", "china"))
SIZE, WRONG = 32, 20  # pixels of a square; so many of each photograph in the other's folder
EPOCHS, HEAD_EPOCHS, BATCH = 4, 1, 32


def photograph(name: str) -> torch.Tensor:
    return torch.tensor(load_sample_image(f"{name}.jpg"))


def write_folder(folder: Path, seed: int) -> set[str]:
    """Squares of both photographs; returns the places of those that lie wrongly."""
    draw, wrong = torch.Generator().manual_seed(seed), set()
    for name, _ in PAIR:
        (folder / name).mkdir(parents=True)
    for name, other in PAIR:
        pixels = photograph(name).numpy()
        height, width = pixels.shape[:2]
        corners = [
            (r, c)
            for r in range(0, height - SIZE + 1, SIZE)
            for c in range(0, width - SIZE + 1, SIZE)
        ]
        moved = set(torch.randperm(len(corners), generator=draw)[:WRONG].tolist())
        for i, (r, c) in enumerate(corners):
            file = folder / (other if i in moved else name) / f"{name}_{r}_{c}.png"
            Image.fromarray(pixels[r : r + SIZE, c : c + SIZE]).save(file)
            if i in moved:
                wrong.add(file.relative_to(folder).as_posix())
    return wrong


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Learn from one folder; sort the wrong answers to its test pictures, the surest first."""
    with tempfile.TemporaryDirectory() as photos:
        wrong = write_folder(Path(photos), seed)
        words = ["--weights", WEIGHTS, "--model", "tiny", "--image-size", SIZE]
        words += ["--epochs", scaled(EPOCHS, scale), "--head-epochs", HEAD_EPOCHS]
        words += ["--batch-size", BATCH]
        logits, labels = learned_by_command(Path(photos), words, seed, log)
        files = load_folder(photos, "test", size=SIZE).files
    sure, answers = logits.softmax(dim=-1).max(dim=-1)
    misplaced = torch.tensor([file in wrong for file in files])
    mistaken = (answers != labels).nonzero().flatten()
    surest = mistaken[sure[mistaken].argsort(descending=True)]
    count, right = int(misplaced.sum()), (answers == labels).double()
    return Outcome(
        {
            "tested": len(labels),
            "misplaced": count,
            "first": int(misplaced[surest[:count]].sum()),
            "mistakes": len(mistaken),
            "mistaken_misplaced": int(misplaced[mistaken].sum()),
            "right_by_folder": right.mean().item(),
            "right_of_the_rest": right[~misplaced].mean().item(),
        }
    )


EXPERIMENT = Experiment(
    what="Two photographs in squares, 40 of 494 in the other's folder, learned by `python -m "
    "vitbook train --data folder` from weights; are the surest wrong answers to the test pictures "
    "those that lie in the wrong folder?",
    chosen_on="nothing: all settings are those of the command",
    metrics={
        "tested": "test pictures",
        "misplaced": "of these, how many lie in the wrong folder",
        "first": "of as many wrong answers, those that the model is surest of: how many are to "
        "misplaced pictures",
        "mistakes": "wrong answers",
        "mistaken_misplaced": "of these, how many are to misplaced pictures",
        "right_by_folder": "share of the test pictures answered as their folder says",
        "right_of_the_rest": "the same, of those that lie in the right folder",
    },
    conditions=[{"folder": "two photographs"}],
    seeds=range(20),
    run=run,
    data=lambda: {f"{name}.jpg of scikit-learn": checksum(photograph(name)) for name, _ in PAIR},
    settings={"wrong": WRONG, "epochs": EPOCHS, "head_epochs": HEAD_EPOCHS, "batch": BATCH},
    replay=({"folder": "two photographs"}, 0),
)
