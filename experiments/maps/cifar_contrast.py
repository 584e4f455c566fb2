"""The control that never saw a model: does a patch's contrast foretell what hiding it does?"""

import torch

from experiments.machinery.experiment import Experiment, Log, Outcome, scaled
from experiments.machinery.image_sets import whole_checksums
from experiments.maps import cifar_maps
from experiments.maps.cifar_maps import SET, TESTED, P, build, fall, images_of
from vitbook.book.records import load_record
from vitbook.inspection.occlusion import occlusion, rank_correlation

ARMS: dict = {name: condition for name, (condition, _) in cifar_maps.EXPERIMENT.keep.items()}


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Ask one trained model about each patch, and hold the answers against the patches alone."""
    model = build(**ARMS[condition["weights"]])
    model.load_state_dict(load_record("cifar_maps").weights(condition["weights"]))
    model.eval()
    images, _ = images_of("test", scale)
    images = images[: scaled(TESTED, scale)]
    apart = (images - images.mean(dim=(2, 3), keepdim=True)).square().mean(dim=1, keepdim=True)
    contrast = torch.nn.functional.avg_pool2d(apart, P).flatten(1)  # (n, N_patches)
    agree = rank_correlation(contrast, occlusion(model, images, P).flatten(1).abs())
    dropped, changed = fall(model, images, contrast)
    return Outcome({"agreement": float(agree.mean()), "fall": dropped, "changed": changed})


EXPERIMENT = Experiment(
    what="Small ViTs on CIFAR-10: does the distance of a patch from the image's mean colour, which "
    "sees no model, foretell what the answer loses when the patch takes that colour?",
    chosen_on="nothing was chosen; the models are those of the record `cifar_maps`, seed 0",
    metrics={
        "agreement": "rank correlation of the mean squared distance from the mean colour and the "
        f"change of the answer's log-probability; mean over {TESTED} test images",
        "fall": "by how many nats that falls when the patches farthest from the mean colour take "
        "it together, as in `cifar_maps`",
        "changed": "share of the answers that are others then",
    },
    conditions=[{"weights": name} for name in ARMS],
    seeds=[0],
    run=run,
    data=lambda: whole_checksums(SET),
    settings={"weights": "of the record cifar_maps"},
    workers=1,
)
