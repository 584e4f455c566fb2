"""One training loop for every model. It knows no model class: images in, logits out.

Everything random in a run is a pure function of (seed, step): the order of the images, the
augmentation, the dropout. That is why a run that was killed ends in the same weights, bit for bit,
as one that was not, and why several processes make the same updates as one.
"""

from vitbook.training.config import TrainConfig
from vitbook.training.evaluation import Evaluation, evaluate
from vitbook.training.examination import Examination, examine
from vitbook.training.loop import train, update
from vitbook.training.randomness import epoch_order
from vitbook.training.run_folder import RunFolder
from vitbook.training.schedule import parameter_groups, warmup_cosine

__all__ = [
    "Evaluation",
    "Examination",
    "RunFolder",
    "TrainConfig",
    "epoch_order",
    "evaluate",
    "examine",
    "parameter_groups",
    "train",
    "update",
    "warmup_cosine",
]
