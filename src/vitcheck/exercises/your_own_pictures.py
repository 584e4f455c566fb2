"""Checks of a folder of one's own pictures: scenes kept together, a large batch, a reading."""

import hashlib

from torch import Tensor

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged

MOVED = "a picture was added, and others changed their part: on what may a part depend?"


def _parts(places, *, by_scene=True, fewest=False):
    """Test or train for each file of "scene/file"; by files instead of scenes for a mistake."""
    keys = [place.split("/")[0] if by_scene else place for place in places]
    kept = []
    for key in keys:
        digest = int(hashlib.sha256(key.encode()).hexdigest(), 16)
        kept.append("test" if (digest % 5 == 0) != fewest else "train")
    return kept


def _as_they_come(places):
    return ["test" if i % 5 == 4 else "train" for i in range(len(places))]


def _scenes_as_they_come(places):
    scenes = list(dict.fromkeys(place.split("/")[0] for place in places))
    return ["test" if scenes.index(p.split("/")[0]) % 5 == 4 else "train" for p in places]


@staged(
    "my_parts",
    ok="a scene is never torn, and a new picture moves no old one",
    right=_parts,
    mistakes={
        "two pictures of one scene lie in different parts: what do they share?": [
            lambda places: _parts(places, by_scene=False),
            _as_they_come,
        ],
        MOVED: _scenes_as_they_come,
        "the test is the fifth, not the rest": lambda places: _parts(places, fewest=True),
    },
)
def check_parts(trial: Trial, my_parts):
    """my_parts(places): "scene/file" each -> "train" or "test" for each, whole scenes."""
    scenes = [f"scene{trial.integer(1000, 9999)}" for _ in range(100)]
    places = [f"{scene}/{k}.jpg" for scene in scenes for k in range(4)]
    trial.stage("400 pictures of 100 scenes")
    given = trial.several(my_parts(places), len(places), "the parts")
    trial.ask(set(given) <= {"train", "test"}, 'each word is "train" or "test"')
    of_scene: dict[str, set[str]] = {}
    for place, part in zip(places, given, strict=True):
        of_scene.setdefault(place.split("/")[0], set()).add(part)
    torn = any(len(parts) > 1 for parts in of_scene.values())
    trial.ask(not torn, "two pictures of one scene lie in different parts: what do they share?")
    share = given.count("test") / len(given)
    trial.ask(share < 0.5, "the test is the fifth, not the rest")
    trial.ask(share > 0.05, "about a fifth of the scenes is for the test")
    trial.stage("another picture is added, in front")
    more = my_parts([f"scene{trial.integer(10000, 99999)}/0.jpg", *places])
    trial.ask(tuple(more)[1:] == given, MOVED)


def _together(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes)


@staged(
    "my_loss",
    ok="the parts add up to the loss of the whole batch, also when the last one is small",
    right=_together,
    mistakes={
        "is the last part as large as the others?": lambda losses, sizes: sum(losses) / len(losses),
        "each part's loss is a mean already: the sum grows with the number of parts": (
            lambda losses, sizes: sum(losses)
        ),
        "a mean over images divides by all images of the batch": lambda losses, sizes: sum(
            loss * size for loss, size in zip(losses, sizes, strict=True)
        ),
        "gradients of every part count, not of the last one alone": (
            lambda losses, sizes: losses[-1]
        ),
    },
)
def check_loss(trial: Trial, my_loss):
    """my_loss(losses, sizes): mean losses of the parts of a batch, images in each -> one loss."""
    for when, sizes in (("equal parts", (4, 4, 4)), ("the last part is small", (8, 8, 8, 3))):
        losses: list[Tensor] = [trial.randn(1)[0] ** 2 + 0.1 for _ in sizes]
        trial.stage(when)
        otherwise = "weigh each part by its share of the images"
        trial.compare(my_loss, losses, list(sizes), otherwise=otherwise, name="the loss")


_STATEMENTS = {
    "from 64 to 1,024 the linear rule's rate is too large": (
        YES,
        "compare the accuracy at its rate with that at the best one",
    ),
    "from 64 to 1,024 the root rule loses nothing": (
        NO,
        "read the row of 1,024, at the rate of the root rule",
    ),
    "after as many images, 1,024 is worse than 16": (
        YES,
        "each at its own best rate, which is the fair comparison",
    ),
    "1,024 is worse because large batches find worse minima": (
        OPEN,
        "how many updates did each make? What would have to be equal to tell the two apart?",
    ),
    "with SGD the linear rule fails, too": (
        OPEN,
        "was SGD tried?",
    ),
}


check_rates = reading("what the record allows one to say", _STATEMENTS)
