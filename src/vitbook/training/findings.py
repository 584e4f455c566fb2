"""One finding of an examination."""

from dataclasses import dataclass

VERDICTS = ("fine", "look", "wrong")


@dataclass(frozen=True)
class Finding:
    """What one trial found.

    Args:
        trial: What was tried.
        verdict: "fine", "look" (it may be meant so) or "wrong" (it would spoil a training).
        seen: The numbers, in a sentence.
        advice: What to try; empty where all is fine.
    """

    trial: str
    verdict: str
    seen: str
    advice: str = ""
