"""Handwritten digits that come with scikit-learn: real data without a download."""

import torch

from vitbook import require
from vitbook.data.splits import PARTS, ImageSet, part_of_training, stratified_split


def load_digits(part: str = "trainval") -> ImageSet:
    """1,797 handwritten digits of 8 x 8 pixels, always divided in the same way.

    The division is stratified and fixed: 1,438 images to train, 359 to test. Settings are chosen
    on a division of the training side ("train" and "validation"), never on the test part. The
    original list of who wrote which digit is lost, so one writer's digits are on both sides.

    Args:
        part: "trainval" (1,438), one side of it, "train" (1,151) or "validation" (287), or "test".

    Returns:
        Images (n, 1, 8, 8) in [0, 1] and labels (n,) in 0 ... 9.

    Source: Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits (its test set).
    """
    from sklearn import datasets  # here, because importing it takes seconds

    require.one_of("part", part, PARTS)
    raw = datasets.load_digits()
    images = torch.tensor(raw.images, dtype=torch.float32)[:, None] / 16  # (1797, 1, 8, 8)
    labels = torch.tensor(raw.target, dtype=torch.int64)
    trainval, test = stratified_split(labels, 0.2, seed=0)
    if part == "test":
        return ImageSet(images[test], labels[test])
    return part_of_training(ImageSet(images[trainval], labels[trainval]), part, 0.2, seed=1)
