"""What is changed in small models of digits after their training, and what it leaves alone."""

import pytest
import torch

from experiments import conv_mixer_frame, hybrid_used, mixer_gates
from vitbook.data import load_digits
from vitbook.inspection import record_attention
from vitbook.training import evaluate


def test_a_frame_with_edge_and_mean_undone_is_no_frame():
    model = conv_mixer_frame.build(seed=0).eval()
    before = evaluate(model, *load_digits("test")).accuracy
    both = conv_mixer_frame.on_larger(model, old_edge=True, old_mean=True)
    assert both == pytest.approx(before, abs=0.01)


def test_gates_that_ask_no_image_mix_all_images_in_the_same_way():
    model, images = mixer_gates.build(seed=0).eval(), load_digits("test").images[:5]
    always = mixer_gates.effective(model, images, torch.ones_like)
    assert [mixer_gates.same(maps) for maps in always] == pytest.approx([1, 1])
    own = mixer_gates.effective(model, images, mixer_gates.gelu_slope)
    assert max(mixer_gates.same(maps) for maps in own) < 1


def test_with_its_own_map_attention_is_the_same():
    model, image = hybrid_used.build("AMM", seed=0).eval(), load_digits("test").images[:1]
    block = model.encoder.blocks[0]
    with record_attention(model) as maps, torch.no_grad():
        model(image)
    (weights,) = maps.values()  # (1, h, N, N)
    with torch.no_grad():
        normed = block.norm1(model.embed(image))
        before = block.attn(normed)
        after = hybrid_used.with_map(weights[0])(block.attn, normed)
    torch.testing.assert_close(after, before)


def test_silence_is_lifted_again():
    model = hybrid_used.build("NNN", seed=0).eval()
    before = evaluate(model, *load_digits("test")).accuracy
    hybrid_used.right_with(model, 0, hybrid_used.nothing)
    assert evaluate(model, *load_digits("test")).accuracy == before
