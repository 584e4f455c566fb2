"""The clinic's faults of training do what their names say, and all faults start alike."""

import sys

import torch

from experiments.machinery.experiment import load_experiment
from vitbook.book.faults import FAULTS
from vitbook.training import warmup_cosine

EXPERIMENT = load_experiment("clinic")
clinic = sys.modules["experiment_clinic"]


def test_every_fault_starts_with_the_healthy_weights():
    healthy = clinic.build(clinic.HEALTHY, seed=3).state_dict()
    for fault in FAULTS:
        sick = clinic.build(fault, seed=3).state_dict()
        assert all(torch.equal(sick[name], healthy[name]) for name in healthy), fault


def test_a_quarter_of_the_batches_has_its_images_in_another_order():
    images = torch.arange(64.0)
    shown = [
        clinic.shuffle_some(images, torch.Generator().manual_seed(seed)) for seed in range(400)
    ]
    assert all(torch.equal(batch.sort().values, images) for batch in shown)
    assert 60 < sum(not torch.equal(batch, images) for batch in shown) < 140


def test_a_schedule_that_counts_epochs_never_leaves_its_warmup():
    per_epoch, steps = 8_000 // 64, EXPERIMENT.settings["training"]["steps"]
    rates = [clinic.stepped_per_epoch(step, steps, 40) for step in range(steps)]
    assert rates[0] == rates[per_epoch - 1] == warmup_cosine(0, steps, 40) == 1 / 40
    assert rates[per_epoch] == 2 / 40
    assert max(rates) == rates[-1] < 1 / 4


def test_all_faults_take_the_rate_of_the_healthy_model():
    assert [arm["fault"] for arm in EXPERIMENT.plan["arms"]] == ["none", "uniform attention"]
