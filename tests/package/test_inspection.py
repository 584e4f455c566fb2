"""L = 3, B = 2, h = 4, a grid of 2 x 3 patches and one class token: no two sizes alike."""

import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from vitbook.inspection import (
    attention_hits,
    attention_maps,
    attention_rollout,
    class_token_attention,
    mean_attention_distance,
    query_distance,
    record_attention,
    region_attention,
)
from vitbook.layers.attention import MultiHeadCrossAttention, MultiHeadSelfAttention, causal_mask
from vitbook.layers.positions import POSITIONS
from vitbook.models.vit import POOLS, VisionTransformer

L, B, H, GRID, N = 3, 2, 4, (2, 3), 7


def tiny_vit(**options):
    options = {"embed_dim": 16, "depth": L, "num_heads": H, "num_classes": 5} | options
    model = VisionTransformer(image_size=(8, 12), patch_size=4, in_channels=1, **options)
    for parameter in model.parameters():  # far from the small first weights: maps with structure
        nn.init.normal_(parameter, std=0.4)
    return model


def images():
    return torch.randn(B, 1, 8, 12)


def random_maps(*shape):
    return torch.rand(*(shape or (L, B, H, N, N))).mul(4).softmax(dim=-1)


# --- recording ---------------------------------------------------------------------------------


def test_cross_attention_is_recorded_with_its_context():
    layer = MultiHeadCrossAttention(embed_dim=12, num_heads=3)
    with record_attention(nn.ModuleDict({"cross": layer})) as maps:
        layer(torch.randn(B, 5, 12), torch.randn(B, 7, 12))
    assert maps["cross"].shape == (B, 3, 5, 7)


def count_hooks():
    every = torch.nn.modules.module
    return len(every._global_forward_hooks) + len(every._global_forward_pre_hooks)


def test_hooks_are_gone_after_the_block_and_after_an_exception():
    model = tiny_vit()
    with record_attention(model):
        assert count_hooks() == 2
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
        model(images())
    assert count_hooks() == 0

    with pytest.raises(KeyError, match="mine"), record_attention(model):
        raise KeyError("mine")  # and "nothing was recorded" does not hide it
    assert count_hooks() == 0

    with pytest.raises(ValueError), record_attention(model):
        model(torch.randn(B, 1, 5, 5))
    assert count_hooks() == 0
    assert not torch.nn.modules.module._has_any_global_hook(), "compiled modules would warn"
    assert not torch.overrides.has_torch_function((torch.zeros(1),)), "a mode is still on"


def in_another_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


class Beside(nn.Module):
    """While it runs, the same model answers somebody else in another thread."""

    def __init__(self, model):
        super().__init__()
        self.model, self.answers = model, []

    def forward(self, x):
        self.answers.append(in_another_thread(lambda: self.model[1:](x.flip(0))))
        return x


@pytest.mark.parametrize("verify", [True, False])
def test_another_thread_gets_its_own_answers_and_leaves_the_maps_as_they_are(verify):
    layers = (MultiHeadSelfAttention(embed_dim=12, num_heads=3) for _ in range(2))
    model = nn.Sequential(nn.Identity(), *layers).eval()
    x = torch.randn(B, 5, 12)
    expected, right = attention_maps(model, x), model[1:](x.flip(0))
    model[0] = Beside(model)
    object.__setattr__(model[0], "model", model[0]._modules.pop("model"))
    assert_close(attention_maps(model, x, verify=verify), expected)
    first = model[0].answers[0]
    assert first.equal(right)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_is_stopped_by_hand_leaves_no_trace(stop):
    def stops(*_):
        raise stop

    model = nn.Sequential(MultiHeadSelfAttention(embed_dim=12, num_heads=3), nn.Linear(12, 12))
    x = torch.randn(B, 5, 12)
    handle = model[1].register_forward_pre_hook(stops)
    with pytest.raises(stop):
        attention_maps(model, x, verify=False)
    handle.remove()
    assert count_hooks() == 0
    assert torch._C._is_torch_function_enabled()
    assert attention_maps(model, x, verify=False).shape == (1, B, 3, 5, 5)


class Drops(MultiHeadSelfAttention):
    def attention_weights(self, x):
        return F.dropout(super().attention_weights(x), 0.5, self.training)


def test_a_layer_says_its_weights_without_dropout_and_draws_nothing():
    model, x = Drops(embed_dim=12, num_heads=3), torch.randn(B, 5, 12)
    torch.manual_seed(1)
    with record_attention(model) as maps:
        model(x)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    model(x)
    assert torch.rand(1).equal(drawn)
    assert model.training
    assert_close(maps[""].sum(dim=-1), torch.ones(B, 3, 5))


def test_a_number_has_no_axes():
    class Looks(MultiHeadSelfAttention):
        def forward(self, x):
            out = super().forward(x)
            assert out.mean().shape == ()
            return out

    model = Looks(embed_dim=12, num_heads=3)
    assert attention_maps(model, torch.randn(B, 5, 12)).shape == (1, B, 3, 5, 5)


def test_a_block_without_a_forward_pass_raises():
    with pytest.raises(RuntimeError, match="nothing was recorded"), record_attention(tiny_vit()):
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using `torch.compile:UserWarning")
def test_a_compiled_model_runs_uncompiled_while_it_is_recorded():
    model = tiny_vit().eval()
    compiled = torch.compile(model, backend="eager")
    x = images()
    expected = attention_maps(model, x)
    with torch.no_grad():
        compiled(x)
    for watched in (model, compiled):
        with torch.no_grad(), record_attention(watched) as maps:
            compiled(x)
        assert list(maps) == [f"encoder.blocks.{i}.attn" for i in range(L)]
        assert torch.equal(torch.stack(list(maps.values())), expected)
    assert torch.equal(attention_maps(compiled, x), expected)


# --- stacked maps ------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_maps_of_a_vit_are_stacked_and_their_rows_sum_to_one(pool, positions):
    model = tiny_vit(pool=pool, positions=positions)
    maps = attention_maps(model, images())
    tokens = 6 + (pool == "cls")
    assert maps.shape == (L, B, H, tokens, tokens)
    assert_close(maps.sum(dim=-1), torch.ones(L, B, H, tokens))
    assert maps.std() > 0.01, "maps without structure would pass any test"


class Merging(nn.Identity):
    """As layers of loralib: what ``eval`` has merged stays merged until ``train`` is called."""

    merged = False

    def train(self, mode=True):
        self.merged = not mode
        return super().train(mode)


def test_maps_of_one_image_of_197_tokens_take_the_runs_that_are_documented():
    options = {"embed_dim": 8, "depth": 1, "num_heads": 2, "num_classes": 2}
    model = VisionTransformer(image_size=56, patch_size=4, in_channels=1, **options)
    runs = []
    model.register_forward_pre_hook(lambda *_: runs.append(1))
    attention_maps(model, torch.randn(1, 1, 56, 56))
    assert f"({len(runs)} runs in all for one image of 197 tokens)" in attention_maps.__doc__


def test_taking_maps_leaves_modes_gradients_and_random_numbers_alone():
    model = tiny_vit(dropout=0.5).train()
    model.merging = Merging()
    model.frozen = nn.Sequential(model.merging)
    model.frozen.training = False
    model.head.eval()
    modes = [module.training for module in model.modules()]
    x = images().requires_grad_()
    state = torch.random.get_rng_state()
    maps = attention_maps(model, x)
    assert [module.training for module in model.modules()] == modes
    assert not model.merging.merged
    assert not maps.requires_grad
    assert x.grad is None
    assert torch.equal(torch.random.get_rng_state(), state), "dropout was on"
    with pytest.raises(ValueError):
        attention_maps(model, torch.randn(B, 1, 5, 5))
    assert [module.training for module in model.modules()] == modes


# --- rollout -----------------------------------------------------------------------------------


def test_rollout_of_two_tokens_is_what_the_hand_computes():
    # Layer 1, head mean [[.5, .5], [0, 1]], plus identity, halved: [[.75, .25], [0, 1]].
    # Layer 2, head mean [[1, 0], [1, 0]], plus identity, halved: [[1, 0], [.5, .5]].
    # Layer 2 times layer 1: [[.75, .25], [.375, .625]]. The other order gives [.875, .125] first.
    first = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])  # two heads
    second = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])
    maps = torch.stack([first, second])[:, None]  # (2, 1, 2, 2, 2)
    assert_close(attention_rollout(maps), torch.tensor([[[0.75, 0.25], [0.375, 0.625]]]))
    assert_close(attention_rollout(maps[:1]), torch.tensor([[[0.75, 0.25], [0.0, 1.0]]]))
    assert_close(attention_rollout(0 * maps), torch.eye(2)[None])  # a mask has emptied the rows


# --- distance and the class token's view ---------------------------------------------------------


def test_distance_agrees_with_a_loop_over_pixels_centres():
    maps = random_maps()
    patches = maps[..., 1:, 1:] / maps[..., 1:, 1:].sum(dim=-1, keepdim=True)
    expected = torch.zeros(L, B, H)
    for q in range(6):
        for k in range(6):
            down, right = 5 * (q // 3 - k // 3), 7 * (q % 3 - k % 3)
            expected += patches[..., q, k] * (down**2 + right**2) ** 0.5 / 6
    assert_close(mean_attention_distance(maps, GRID, (5, 7)), expected)


def test_distance_leaves_out_queries_that_look_at_no_patch():
    maps = torch.zeros(1, 1, 2, N, N)
    maps[..., 0] = 1  # everybody looks at the class token ...
    maps[0, 0, 0, 1] = F.one_hot(torch.tensor(2), N)  # ... but the first patch of head 0
    near, none = mean_attention_distance(maps, GRID, 4)[0, 0]
    assert near.item() == pytest.approx(4)
    assert none.isnan()


def test_the_mean_over_the_queries_is_the_mean_attention_distance():
    maps = random_maps()
    got = query_distance(maps, GRID, (5, 7))
    assert got.shape == (L, B, H, 6)
    assert_close(got.mean(dim=-1), mean_attention_distance(maps, GRID, (5, 7)))


def test_the_share_of_a_region_is_what_a_loop_finds():
    maps = random_maps()
    queries = torch.cat([patches(0, 4), patches(5)])
    keys = torch.cat([patches(1, 2, 4), patches(0)])
    got = region_attention(maps, queries, keys)
    for layer in range(L):
        for b in range(B):
            for head in range(H):
                shares = []
                for q in queries[b].nonzero()[:, 0].tolist():
                    row = maps[layer, b, head, 1 + q, 1:]
                    shares.append(row[keys[b]].sum() / row.sum())
                assert_close(got[layer, b, head], torch.stack(shares).mean())


def test_the_class_token_map_lies_as_the_image_does():
    maps = random_maps()
    view = class_token_attention(maps, GRID)
    assert view.shape == (L, B, H, *GRID)
    assert torch.equal(view[1, 0, 2, 1, 0], maps[1, 0, 2, 0, 1 + 3])  # row 1, column 0: patch 3
    two = class_token_attention(random_maps(L, B, H, 8, 8), GRID, num_prefix=2)
    assert two.shape == (L, B, H, *GRID)


# --- hits --------------------------------------------------------------------------------------


def patches(*indices, n=6):
    return torch.zeros(n, dtype=torch.bool).index_fill(0, torch.tensor(indices), True)[None]


def looking(*pairs, n=6):
    """One layer, image and head; (query, key) pairs take 0.5 each, the rest is nothing."""
    maps = torch.zeros(1, 1, 1, n, n)
    for query, key in pairs:
        maps[..., query, key] = 0.5
    return maps


def test_a_hit_is_when_the_strongest_other_patch_is_a_target():
    maps = looking((1, 1), (1, 4))
    maps[..., 1, 1] = 0.9  # itself: left out
    assert attention_hits(maps, patches(1), patches(4, 5), num_prefix=0).item() == 1
    assert attention_hits(maps, patches(1), patches(2, 3), num_prefix=0).item() == 0


# --- bad input ---------------------------------------------------------------------------------


def record(model):
    with record_attention(model):
        pass


class TwoSizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = MultiHeadSelfAttention(embed_dim=8, num_heads=2)
        self.second = MultiHeadSelfAttention(embed_dim=8, num_heads=4)

    def forward(self, x):
        return self.second(self.first(x))


MAPS = torch.full((L, B, H, N, N), 1 / N)
ONE, OTHER = patches(0).expand(B, 6), patches(1).expand(B, 6)


def test_a_mask_given_by_keyword_is_recorded_as_the_layer_saw_it():
    layer = MultiHeadSelfAttention(embed_dim=12, num_heads=3)
    with record_attention(layer) as maps:
        layer(torch.randn(B, 5, 12), mask=causal_mask(5))
    assert (maps[""].triu(diagonal=1) == 0).all()
    assert_close(maps[""].sum(dim=-1), torch.ones(B, 3, 5))


def test_several_source_patches_are_averaged_and_do_not_count_as_found():
    maps = looking((0, 1), (1, 0), (0, 5), (1, 4))
    maps[..., 1, 4] = 0.3
    assert attention_hits(maps, patches(0, 1), patches(5), num_prefix=0).item() == 1
    maps[..., 1, 4] = 0.8
    assert attention_hits(maps, patches(0, 1), patches(5), num_prefix=0).item() == 0


def nested(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([*x])


BAD_INPUT = [
    (lambda: record(torch.relu), TypeError, "model must be"),
    (
        lambda: attention_maps(nn.Linear(2, 2), torch.ones(3, 2)),
        ValueError,
        "model (Linear) ran, and none of its layers showed attention",
    ),
    (lambda: attention_maps(tiny_vit(), [1.0]), TypeError, "images must be"),
    (
        lambda: attention_maps(TwoSizes(), torch.randn(2, 5, 8)),
        ValueError,
        "different shapes: (2, 2, 5, 5) of 'first'; (2, 4, 5, 5) of 'second'",
    ),
    (lambda: attention_rollout(MAPS[0]), ValueError, "(L, B, h, N, N)"),
    (lambda: attention_rollout(MAPS.numpy()), TypeError, "maps must be"),
    (lambda: attention_rollout(MAPS[:0]), ValueError, "at least one layer"),
    (lambda: attention_rollout(MAPS * float("nan")), ValueError, "between 0 and 1"),
    (lambda: attention_rollout(MAPS * 99), ValueError, "between 0 and 1"),
    (lambda: attention_rollout(MAPS.to_sparse()), TypeError, "maps must be a dense tensor"),
    (lambda: attention_rollout(nested(MAPS)), TypeError, "maps must be a dense tensor (L, B, h, N"),
    (lambda: mean_attention_distance(MAPS, 3, 4), ValueError, "N = 7"),
    (lambda: mean_attention_distance(MAPS, GRID, 0), ValueError, "patch_size"),
    (lambda: mean_attention_distance(MAPS, 1, 4, num_prefix=-1), ValueError, "num_prefix must be"),
    (lambda: class_token_attention(MAPS, 7, num_prefix=0), ValueError, "must be at least 1"),
    (lambda: query_distance(MAPS, 3, 4), ValueError, "N = 7"),
    (lambda: query_distance(MAPS, GRID, 0), ValueError, "patch_size"),
    (lambda: region_attention(MAPS[0], ONE, ONE), ValueError, "(L, B, h, N, N)"),
    (lambda: region_attention(MAPS, ONE.long(), ONE), TypeError, "queries must be"),
    (lambda: region_attention(MAPS, ONE, ONE[:1]), ValueError, "keys must have"),
    (lambda: region_attention(MAPS, ONE, ONE, -1), ValueError, "num_prefix must be at least 0"),
    (lambda: region_attention(MAPS, ONE, ONE, 7), ValueError, "num_prefix must be at most 6"),
    (lambda: region_attention(MAPS, ONE, ONE, "1"), TypeError, "num_prefix must be a whole number"),
    (lambda: attention_hits(MAPS, ONE.long(), OTHER), TypeError, "sources must be"),
    (lambda: attention_hits(MAPS, ONE, OTHER[:1]), ValueError, "targets must have"),
    (lambda: attention_hits(MAPS, ONE & OTHER, OTHER), ValueError, "sources must"),
    (lambda: attention_hits(MAPS, ONE, ONE | OTHER), ValueError, "share a patch"),
]
