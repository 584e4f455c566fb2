"""What the package does with a model that is not on the processor. There need be no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from vitbook.inspection.audit import audit
from vitbook.inspection.maps import attention_rollout, class_token_attention
from vitbook.inspection.occlusion import gradient_drop, occlusion, rank_correlation
from vitbook.inspection.recording import attention_maps
from vitbook.layers.positions import POSITIONS
from vitbook.models.transfer import adapt, fold_normalization
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, evaluate, examine, train

pytestmark = pytest.mark.slow  # models are trained


def model(device, **sizes):
    given = {"image_size": 6, "patch_size": 2, "in_channels": 3, "num_classes": 3} | sizes
    return VisionTransformer(**given, embed_dim=16, depth=1, num_heads=2).to(device)


def images(n=12):
    return torch.randn(n, 3, 6, 6, generator=torch.Generator().manual_seed(n))


def data():
    return images(), torch.arange(12) % 3


def trained(device):
    recipe = TrainConfig(steps=3, batch_size=4, warmup_steps=1)
    train(model(device), *data(), recipe, evaluate_on=data(), micro_batch=3, progress=False)


def evaluated(device):
    evaluate(model(device), *data())


def examined(device):
    with mock.patch("vitbook.require.whole", lambda name, value, **_: value):  # 10 are few
        found = examine(model(device), *data(), batch_size=4, updates=10, progress=False)
    assert "same device" not in str(found)  # what a model refuses is a finding


def looked_at(device):
    for positions in POSITIONS:
        maps = attention_maps(model(device, positions=positions), images(2).to(device))
        attention_rollout(maps)
        class_token_attention(maps, (3, 3))


def occluded(device):
    net, seen = model(device).eval(), images(2).to(device)
    lost, foretold = occlusion(net, seen, 2), gradient_drop(net, seen, 2, target=1)
    rank_correlation(lost.flatten(1), foretold.flatten(1))


def audited(device):
    def first(net, image):
        return attention_maps(net, image)[-1, 0].mean(0)[0, 1:].view(3, 3)

    seen = images(3).to(device)
    audit(first, model(device).eval(), seen[:1], seen[1:])


def adapted(device):
    weights = fold_normalization(model(device).state_dict(), [0.5] * 3, [0.2] * 3)
    adapt(model(device, num_classes=5, image_size=8), weights)


PROBES = {
    probe.__name__: probe
    for probe in (trained, evaluated, examined, looked_at, occluded, audited, adapted)
}


@pytest.fixture(scope="module")
def errors():
    code = "import other_device, test_devices; other_device.errors_of(test_devices.PROBES)"
    where = {"cwd": Path(__file__).parent, "env": os.environ | {"PYTHONPATH": ":".join(sys.path)}}
    done = subprocess.run([sys.executable, "-c", code], **where, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", PROBES)
def test_a_model_need_not_be_on_the_processor(name, errors):
    assert errors[name] == ""
