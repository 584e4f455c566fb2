"""`block_ablation` takes out what it says, and nothing else."""

import pytest
import torch
from torch import nn

from experiments import block_ablation as ablation
from experiments import block_ablation_longer as longer
from experiments import block_ablation_pointer as again
from vitbook.book.records import load_record
from vitbook.models.cost import count_parameters
from vitbook.models.vit import VisionTransformer

D, L = ablation.MODEL["embed_dim"], ablation.MODEL["depth"]


def vit(model: str, seed: int = 0) -> VisionTransformer:
    return ablation.build("pointer", model, seed)


def pictures(count: int = 6) -> torch.Tensor:
    return torch.rand(count, 1, 32, 32, generator=torch.Generator().manual_seed(5))


def tokens() -> torch.Tensor:
    return torch.randn(2, 5, D, generator=torch.Generator().manual_seed(6))


def test_nothing_left_out_is_the_model_itself():
    torch.manual_seed(3)
    whole = VisionTransformer(**ablation.TASKS["pointer"], **ablation.MODEL)
    assert torch.equal(vit(ablation.WHOLE, seed=3)(pictures()), whole(pictures()))


@pytest.mark.parametrize("model", ablation.LEFT_OUT)
def test_what_stays_starts_with_the_same_weights_and_the_answers_are_others(model):
    whole, part = vit(ablation.WHOLE, seed=3), vit(model, seed=3)
    here = [value for value in whole.parameters() if value.ndim > 1]
    shrunk = (2 * L) ** 0.5 if model == "no norms" else 1.0
    for value in part.parameters():
        if value.ndim > 1:
            rows = value.shape[0]
            assert any(
                torch.allclose(times * value, other[-rows:], atol=1e-6)
                for other in here
                if other.shape[-1] == value.shape[-1] and len(other) >= rows
                for times in (1.0, shrunk)
            )
    assert (part(pictures()) - whole(pictures())).abs().max() > 1e-3


def test_each_part_takes_its_own_numbers_with_it():
    whole = count_parameters(vit(ablation.WHOLE))
    norm, attention, mlp = 2 * D, 4 * D**2 + 4 * D, 4 * D**2 + 3 * D
    missing = {
        "no attention": L * (attention + norm),
        "uniform": L * (2 * D**2 + 2 * D),
        "no MLP": L * (mlp + norm),
        "no GELU": 0,
        "no additions": 0,
        "no norms": L * 2 * norm + norm,
    }
    assert missing.keys() == ablation.LEFT_OUT.keys()
    for model, count in missing.items():
        assert whole - count_parameters(vit(model)) == count


def test_without_attention_no_token_sees_another():
    x = tokens()
    changed = x.clone()
    changed[:, 2] += 1
    for model, others_move in (("no attention", False), (ablation.WHOLE, True)):
        blocks = vit(model).encoder
        moved = (blocks(x) - blocks(changed)).abs().amax(dim=(0, 2)) > 0
        assert moved[2]
        assert bool(moved[[0, 1, 3, 4]].any()) is others_move


def test_uniform_attention_is_the_mean_of_the_same_values():
    whole, part = (vit(model).encoder.blocks[0].branches[0] for model in ("whole", "uniform"))
    norm, attn = whole
    values = attn.qkv(norm(tokens()))[..., 2 * D :].mean(dim=1, keepdim=True)
    torch.testing.assert_close(part(tokens()), attn.proj(values).expand(2, 5, D))


def test_without_the_gelu_the_mlp_is_one_linear_map():
    for model, straight in (("no GELU", True), (ablation.WHOLE, False)):
        mlp = vit(model).encoder.blocks[0].branches[1][1]
        a, b = tokens().unbind(0)
        bend = mlp(a + b) - mlp(a) - mlp(b) + mlp(torch.zeros_like(a))
        assert bool(bend.abs().max() < 1e-5) is straight


def test_without_additions_a_block_that_answers_zero_forgets_its_input():
    for model, kept in (("no additions", False), (ablation.WHOLE, True)):
        block = vit(model).encoder.blocks[0]
        for parameter in block.parameters():
            nn.init.zeros_(parameter)
        assert torch.equal(block(tokens()), tokens()) is kept
        assert bool((block(tokens()) == 0).all()) is not kept


def test_without_norms_the_stack_keeps_its_tokens_at_their_size():
    model = vit("no norms")
    assert not any(isinstance(layer, nn.LayerNorm) for layer in model.modules())
    x = tokens()
    assert model.encoder(x).std() < 2 * x.std()


def test_garments_stand_anywhere_and_the_rest_is_dark(small_image_files):
    images, labels = ablation.images_of("garments", "test", 0.0005)
    assert images.shape[1:] == (1, 42, 42)
    assert len(images) == len(labels)
    lit = (images > images.min()).flatten(2).any(dim=1).float().mean(dim=1)
    assert (lit <= 28**2 / 42**2 + 1e-6).all()


def test_the_longer_runs_are_those_of_the_garments_with_three_times_the_steps():
    for condition in longer.EXPERIMENT.conditions:
        assert condition["task"] == "garments"
        assert longer.EXPERIMENT.steps(condition) == 3 * ablation.steps(condition)
        assert longer.CLASSIFIER.build is ablation.build
    assert longer.EXPERIMENT.settings["model"] == ablation.MODEL


def test_the_longer_record_shows_what_the_mlp_is_worth_and_a_control_of_equal_size():
    record = load_record("block_ablation_longer")

    def against_the_whole(model):
        pair = [{"task": "garments", "model": name} for name in (model, ablation.WHOLE)]
        return record.difference("test_accuracy", *pair)

    for model in ("no MLP", "no GELU", "uniform", ablation.LINEAR):
        assert against_the_whole(model).high < 0
    without_attention = against_the_whole("no attention")
    assert without_attention.low < 0 < without_attention.high


def test_twenty_seeds_take_the_rates_that_the_search_chose():
    winners = load_record("block_ablation").choice["winners"]
    chosen = {
        w["condition"]["model"]: w["value"] for w in winners if w["condition"]["task"] == again.TASK
    }
    assert {model: chosen[model] for model in again.RATES} == again.RATES
