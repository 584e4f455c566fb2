"""Checks that a learner calls on an own answer: one module a chapter, all built on `stages`."""

from vitbook.checks.stages import CheckFailed

__all__ = ["CheckFailed"]
