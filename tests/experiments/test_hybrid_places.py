"""The stacks of `hybrid_places`: layers as their letters say, and equally many parameters."""

from experiments import hybrid_places
from vitbook.models.cost import count_parameters


def test_letters_name_the_layers_from_the_image_to_the_answer():
    assert hybrid_places.layers_of("AMC") == ["attention", "mixer", "conv"]
    blocks = hybrid_places.build("MMMA", seed=0).encoder.blocks
    kinds = [type(block.attn).__name__ for block in blocks]
    assert kinds == ["TokenMixing"] * 3 + ["MultiHeadSelfAttention"]


def test_all_stacks_have_as_many_parameters_within_five_percent():
    counts = [count_parameters(hybrid_places.build(arm, seed=0)) for arm in hybrid_places.ARMS]
    assert max(counts) < 1.05 * min(counts)
