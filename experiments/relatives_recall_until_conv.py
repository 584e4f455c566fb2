"""`relatives_recall_until` for the ConvMixer whose kernel reaches from corner to corner."""

from experiments.relatives_recall import WIDE
from experiments.relatives_recall_until import experiment

LONGEST = 12  # times the compute of `relatives_recall`

EXPERIMENT = experiment(
    [{"model": WIDE, "longest": LONGEST}],
    "Recall until it is learned, as in `relatives_recall_until`, or for "
    f"{LONGEST} times the compute of `relatives_recall`: the ConvMixer with the wide kernel.",
)
