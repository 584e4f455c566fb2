"""Data sets as tensors: real ones, generated ones, and those that torchvision downloads."""

from vitbook.data.canvas import PlacedObjects, place_on_canvas
from vitbook.data.digits import load_digits
from vitbook.data.folder import FolderImages, load_folder
from vitbook.data.matching_pairs import MatchingPairs, matching_pairs
from vitbook.data.pointer import Pointer, pointer
from vitbook.data.recall import Recall, recall
from vitbook.data.splits import ImageSet, stratified_split
from vitbook.data.torchvision_sets import DataError, load_torchvision
from vitbook.data.transforms import (
    STATISTICS,
    augmentation,
    normalize,
    random_flip,
    random_shift,
)

__all__ = [
    "STATISTICS",
    "DataError",
    "FolderImages",
    "ImageSet",
    "MatchingPairs",
    "PlacedObjects",
    "Pointer",
    "Recall",
    "augmentation",
    "load_digits",
    "load_folder",
    "load_torchvision",
    "matching_pairs",
    "normalize",
    "place_on_canvas",
    "pointer",
    "random_flip",
    "random_shift",
    "recall",
    "stratified_split",
]
