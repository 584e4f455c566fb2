"""Checks of the clinic: a fault is named, and an image tells its model from all others."""

import torch

from vitbook.book.clinic import PATIENTS, load_patient
from vitbook.book.faults import FAULTS, LABELS, LAYERS, model_with
from vitcheck.trial import Trial, staged

APART = 0.3  # least difference of a logit between the patient and the healthy model
UNLIKE = 0.1  # and between the patient and a model with another fault
DRAWS = 8  # of a patient whose answers are random: one draw may hide what others show


def _logits(weights, fault, images, seed=0):
    """Logits with a fault; what is random in it goes by the seed."""
    model = model_with(weights, fault)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        return model(images)


@staged("my_diagnosis", ok="the name fits, and what you found out speaks for this fault alone.")
def check_patient(trial: Trial, number, my_diagnosis):
    """my_diagnosis(patient) -> the name of its fault, and an image that separates, or "none".

    The image (1, 1, 24, 24) has pixels from 0 to 1. On it the patient's logits have to be unlike
    those of the healthy model, and of every other fault, with the same weights. A fault of the
    training has no such image: "none".
    """
    patient = load_patient(number)
    fault, image = trial.pair(my_diagnosis(patient))
    trial.stage("the name")
    trial.ask(fault in FAULTS, f"{fault!r} is not one of FAULTS; copy the name from there")

    trial.stage("an image")
    weights, true = patient.weights, PATIENTS[number]
    pixels = torch.rand(16, 1, 24, 24, generator=trial.generator)
    usual = (_logits(weights, true, pixels) - _logits(weights, None, pixels)).abs().max()
    if isinstance(image, str):
        trial.ask(image == "none", 'hand in an image, or "none"')
        trial.ask(
            true not in LAYERS,
            f"there is one: on random pixels patient and healthy model differ by {usual:.2f}",
        )
        _ask_training(trial, fault, true)
        return
    image = trial.tensor(image, (1, 1, 24, 24), name="the image")
    trial.ask(image.min() >= 0 and image.max() <= 1, "pixels lie between 0 and 1")
    trial.ask(
        true in LAYERS,
        "patient and healthy model give the same logits, on yours as on any other. Where else "
        "than in a layer can a fault be?",
    )
    _ask_image(trial, weights, true, image)
    trial.stage("the name")
    got, said = _logits(weights, true, image), _logits(weights, fault, image)
    trial.ask(
        fault == true,
        f"your own image speaks against it: with {fault!r} these weights give the logits "
        f"{_in_words(said)}, the patient gives {_in_words(got)}",
    )


def _ask_image(trial, weights, true, image):
    """Does the image tell the patient from the healthy model, and from the other faults?"""
    got, healthy = _logits(weights, true, image), _logits(weights, None, image)
    draws = torch.stack([_logits(weights, true, image, seed) for seed in range(DRAWS)])
    apart = (draws - healthy).abs().max()
    trial.ask(
        apart >= APART,
        f"the patient's logits differ from the healthy model's by {apart:.2f} only; find an image "
        f"where it is {APART:g} or more",
    )
    for other in LAYERS:
        unlike = (got - _logits(weights, other, image)).abs().max()
        trial.ask(
            other == true or unlike >= UNLIKE,
            f"a model with another fault differs from the patient by {unlike:.2f} only on your "
            "image; would it not pass for the patient?",
        )


def _ask_training(trial, fault, true):
    """No layer is sick: the name is one of the two faults that the curves can show."""
    trial.stage("the name")
    trial.ask(
        fault not in LAYERS, f"{fault!r} would change the logits, and you say that nothing does"
    )
    trial.ask(
        fault == true,
        "a loss that stays high while the answers are right: what would the schedule do to it?"
        if true == LABELS
        else "how high is the rate at the end of the first epoch, and how fast does it learn then?",
    )


def _in_words(logits):
    return "(" + ", ".join(f"{x:.1f}" for x in logits[0].tolist()) + ")"
