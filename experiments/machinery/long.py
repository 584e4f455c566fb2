"""An experiment that takes hours, perhaps on several machines one after another."""

from dataclasses import dataclass

from experiments.machinery.experiment import Experiment


@dataclass(frozen=True)
class LongExperiment(Experiment):
    """An experiment whose finished trials and runs are committed until its record is written.

    They lie in `experiments/unfinished` (see `runner.runs_folder`), so that another machine goes
    on where this one ended. It is a class of its own, in a module of its own, because all records
    carry a hash of `experiment.py`: a change there would make those that measure time stale.
    """
