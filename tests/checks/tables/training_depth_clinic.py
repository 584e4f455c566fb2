"""The clinic."""

import torch
from case import Case, stub

from vitbook.book.faults import model_with
from vitbook.data import pointer
from vitcheck.exercises.training_depth_clinic import check_patient

LABELS, SCHEDULE = "labels shuffled in a quarter of batches", "schedule stepped once per epoch"


IMAGES = torch.cat([pointer(200, seed=3).images, torch.full((1, 1, 24, 24), 0.17)])
NOISE = torch.rand(2, 1, 24, 24, generator=torch.Generator().manual_seed(0))


def unlike(patient, rank=-1):
    """The image that separates most; or, by rank, least."""
    with torch.no_grad():
        apart = (patient.logits(IMAGES) - model_with(patient.weights)(IMAGES)).abs().amax(dim=1)
    return IMAGES[apart.argsort()[rank]][None]


def found(fault):
    """A name with an image that was looked for."""
    return lambda patient: (fault, unlike(patient))


def said(fault, image="none"):
    return lambda patient: (fault, image)


CASES = [
    Case(
        check_patient,
        also={
            "an image that was looked for": (1, found("positions missing")),
            "noise will do": (4, said("heads split by view alone", NOISE[:1])),
            "random answers": (2, lambda p: [*found("never in evaluation mode")(p)]),
            "the least unlike": (12, found("scores not divided by sqrt(d)")),
            "the labels": (3, said(LABELS)),
        },
        stubs=((4, stub), (4, said(..., ...))),
        wrong={
            "another layer": (
                (4, found("softmax over the queries")),
                "your own image speaks against it",
            ),
            "no image": ((4, said("heads split by view alone")), "there is one"),
            "an image where none can be": ((3, said(LABELS, NOISE[:1])), "Where"),
            "a layer without image": ((3, said("positions missing")), "would change the logits"),
            "the schedule for labels": ((3, said(SCHEDULE)), "a loss that stays high"),
            "labels for the schedule": ((9, said(LABELS)), "how high is the rate"),
            "an unknown name": ((4, said("a cold")), "is not one of FAULTS"),
            "a word": ((4, said("heads split by view alone", "noise")), 'or "none"'),
            "bytes": ((4, said("heads split by view alone", 9 * NOISE[:1])), "0"),
            "two images": ((4, said("heads split by view alone", NOISE)), "(1"),
            "an image that tells little": (
                (11, lambda patient: ("last token read as class token", unlike(patient, 0))),
                "only; find an image",
            ),
        },
    )
]
