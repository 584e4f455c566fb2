"""What checks a learner's answer: the engine, and one module for each page, named like the page.

It ships in the same wheel as ``vitbook`` and imports it; ``vitbook`` knows nothing of it. The
assignments' checks are data: ``cases`` and ``values`` read and compare them, ``checker`` speaks.
"""

from vitcheck.checker import Checker
from vitcheck.trial import CheckFailed

__all__ = ["CheckFailed", "Checker"]
