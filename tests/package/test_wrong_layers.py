"""Layers whose maps would be false or a part: each is refused by name, or its map is right.

They stand between two layers of plain attention, so that a map that is missed makes the result a
part. What the maps have to be is seen from the product itself.
"""

import copy
import math
import re
import subprocess
import sys
import warnings

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_lower_right
from torch.testing import assert_close

from tests.package.random_models import all_random
from vitbook.inspection import attention_maps, find_num_prefix, record_attention
from vitbook.inspection.mixing import all_ways
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.models.published import rebuild

pytestmark = pytest.mark.usefixtures("no_grad")
B, N, D, H, P, SIZE = 2, 12, 32, 4, 8, (24, 32)


class Open(nn.Module):
    """Attention that is not fused; ``between`` stands between its softmax and the product."""

    def __init__(self, between=lambda layer, weights: weights, after=lambda out, v: out):
        super().__init__()
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.between, self.after, self.used = between, after, []

    def heads(self, x):
        return self.qkv(x).unflatten(-1, (3, H, D // H)).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        q, k, v = self.heads(x)
        weights = self.between(self, (q @ k.mT / math.sqrt(D // H)).softmax(-1))
        self.used.append(weights.detach().clone().view(len(x), H, *weights.shape[-2:]))
        out = weights @ v.reshape(*weights.shape[:-2], *v.shape[-2:])
        return self.proj(self.after(out.view(v.shape), v).transpose(1, 2).flatten(2))


class Other(Open):
    """The same tokens and values, mixed in some way that is no seen attention."""

    def __init__(self, mix):
        super().__init__()
        self.mix = mix

    def forward(self, x):
        return self.proj(self.mix(*self.heads(x)).transpose(1, 2).flatten(2))


class SaysOther(Other):
    """Attention that says a softmax, whatever it multiplies by."""

    def attention_weights(self, x):
        q, k, _ = self.heads(x)
        return (q @ k.mT / 3).softmax(-1)


class Says(MultiHeadSelfAttention):
    """Attention whose own ``attention_weights`` are not what its ``forward`` does."""

    def __init__(self, lie):
        super().__init__(embed_dim=D, num_heads=H)
        self.lie = lie

    def attention_weights(self, x, mask=None):
        return self.lie(super().attention_weights(x, mask))


class Block(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(D), layer

    def forward(self, x):
        return x + self.layer(self.norm(x))


def stack(*layers):
    return all_random(nn.Sequential(*map(Block, layers))).eval().double()


def plain():
    return Open()


def tokens():
    return torch.randn(B, N, D).double()


def edit(change):
    """What changes the weights in place, and goes on with them."""

    def between(layer, weights):
        change(weights)
        return weights

    return between


def kept(keep):
    def between(layer, weights):
        layer.kept = keep(weights)
        return weights

    return between


def through_numpy(weights):
    weights.numpy()[:, 0] = 0


def set_data(weights):
    weights.data = weights.data * torch.tensor([0.0, 1, 1, 1]).view(1, H, 1, 1)


class Parts(nn.Module):
    """A mean over the tokens beside an MLP, in a class that says nothing."""

    def __init__(self, mix):
        super().__init__()
        self.fc, self.mix = nn.Linear(D, D), mix

    def forward(self, x):
        return self.fc(x) + self.mix(x)


def conv(x):
    kernel = torch.linspace(-1, 1, 3, dtype=x.dtype).expand(D, 1, 3)
    return F.conv1d(x.mT, kernel, padding=1, groups=D).mT


def sigmoid(q, k, v):
    return (q @ k.mT).sigmoid() / N @ v


def linear(q, k, v):
    return q.softmax(-1) @ (k.softmax(-2).mT @ v)


def exponentials(q, k, v):
    weights = (q @ k.mT / 3).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def pointwise(q, k, v):
    weights = (q @ k.mT / 3).softmax(-1)
    return (weights[..., None] * v[..., None, :, :]).sum(-2)


def scaled_einsum(q, k, v):
    weights = (q @ k.mT / 3).softmax(-1)
    return torch.einsum("bhij,bhjd,h->bhid", weights, v, torch.arange(4).to(v))


CHANGED = "it changes its softmax"
THROWN = "throws away, or replaces, rows or heads"
MOVES = "moves tokens when another one is disturbed"
NOTHING = "multiplies its map with values that are all zero"
SAID = "what it multiplies with values are not the weights that it says"
# A layer, and why it is refused.
WRONG = {
    "scaled": (lambda: Open(lambda _, w: 0.5 * w), CHANGED),
    "scaled in each head": (
        lambda: Open(lambda _, w: w * torch.arange(4.0).view(H, 1, 1)),
        CHANGED,
    ),
    "masked afterwards": (lambda: Open(lambda _, w: w.tril()), CHANGED),
    "half of the heads zeroed": (lambda: Open(edit(lambda w: w[:, ::2].zero_())), CHANGED),
    "a view in place": (lambda: Open(edit(lambda w: w.unbind(1)[0].zero_())), CHANGED),
    "the diagonal in place": (
        lambda: Open(edit(lambda w: w.diagonal(dim1=-2, dim2=-1).fill_(0))),
        CHANGED,
    ),
    "out=": (lambda: Open(edit(lambda w: torch.mul(w, 0.5, out=w))), CHANGED),
    "the memory through numpy": (lambda: Open(edit(through_numpy)), CHANGED),
    ".data": (lambda: Open(edit(set_data)), CHANGED),
    "a copy that is changed": (lambda: Open(lambda _, w: w.clone().mul_(2)), CHANGED),
    "the rows shuffled": (lambda: Open(lambda _, w: w.roll(1, dims=-2)), CHANGED),
    "the heads mixed": (lambda: Open(lambda _, w: w.flip(1)), CHANGED),
    "masked, before dropout that is off": (
        lambda: Open(lambda _, w: F.dropout(w.tril(), 0.5, False)),
        CHANGED,
    ),
    "some signs turned, before dropout of nothing": (
        lambda: Open(lambda _, w: F.dropout(w * torch.tensor([1.0, -1, 1, 1]).view(H, 1, 1), 0.0)),
        CHANGED,
    ),
    "sharpened": (lambda: Open(lambda _, w: w.square()), CHANGED),
    "a third factor": (lambda: Other(scaled_einsum), CHANGED),
    "a product by hand": (lambda: Other(pointwise), CHANGED),
    "says half of it": (lambda: Says(lambda w: w / 2), SAID),
    "says another head": (lambda: Says(lambda w: w.roll(1, dims=1)), SAID),
    "says heads that are zero": (lambda: Says(lambda w: w * torch.arange(4.0).view(H, 1, 1)), SAID),
    "says even weights": (lambda: Says(lambda w: torch.full_like(w, 1 / N)), SAID),
    "a sigmoid": (lambda: Other(sigmoid), MOVES),
    "exponentials": (lambda: Other(exponentials), MOVES),
    "linear attention": (lambda: Other(linear), "softmax over another axis"),
    "the mean of all tokens": (lambda: Parts(lambda x: x.mean(1, keepdim=True)), MOVES),
    "a convolution over tokens": (lambda: Parts(conv), MOVES),
    "the next token": (lambda: Parts(lambda x: x.roll(1, dims=1)), MOVES),
    "a running sum": (lambda: Parts(lambda x: x.cumsum(1)), MOVES),
    "a Fourier transform": (lambda: Parts(lambda x: torch.fft.fft(x, dim=1).real), MOVES),
    "only the first token": (
        lambda: Parts(lambda x: torch.cat([x.amax(1, keepdim=True), x[:, 1:]], 1)),
        MOVES,
    ),
    "attention and a mean of its values": (
        lambda: Open(after=lambda out, v: out + v.mean(-2, keepdim=True)),
        MOVES,
    ),
    "says a softmax, multiplies by sigmoids": (lambda: SaysOther(sigmoid), SAID),
    "two heads that keep their values": (
        lambda: Open(after=lambda out, v: torch.cat([v[:, :2], out[:, 2:]], 1)),
        THROWN,
    ),
    "a head that is zero behind the product": (
        lambda: Open(after=lambda out, v: out * torch.tensor([1.0, 1, 0, 1]).view(H, 1, 1).to(v)),
        THROWN,
    ),
    "a token that takes its own value": (
        lambda: Open(after=lambda out, v: torch.cat([v[:, :, :1], out[:, :, 1:]], 2)),
        THROWN,
    ),
    "half of each head that is zero": (
        lambda: Open(after=lambda out, v: torch.cat([out[..., :4], 0 * out[..., 4:]], -1)),
        THROWN,
    ),
    "a product that is not used": (lambda: Open(after=lambda out, v: v), THROWN),
    "a norm over all tokens": (lambda: nn.LayerNorm((N, D)), MOVES),
    "noise": (lambda: Parts(lambda x: torch.randn_like(x)), "draws at random"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_layer_whose_map_would_be_false_or_missing_is_refused_by_name(name):
    build, why = WRONG[name]
    model = stack(plain(), build(), plain())
    with pytest.raises(ValueError, match=why) as refusal:
        attention_maps(model, tokens())
    assert "'1.layer'" in str(refusal.value) or name == "noise"  # which shows behind it


def attend(q, k, v):
    return (q @ k.mT / 3).softmax(-1) @ v


def sorted_keys(q, k, v):
    order = k.norm(dim=-1, keepdim=True).argsort(-2).expand_as(k)
    return F.scaled_dot_product_attention(q, k.gather(2, order), v.gather(2, order))


def slots(q, k, v):
    memory = torch.linspace(-1, 1, N * D // H).view(N, D // H).to(q).sin()
    return attend(q, memory, memory.cos())


def centred(q, k, v):
    out = F.scaled_dot_product_attention(q, k, v)
    return out - out.mean(-2, keepdim=True)


def chosen_keys(q, k, v):
    """Seen as a product with weights where there is one image, and not where there are two."""
    best = (q @ k.mT).topk(4)
    rows = best.indices[..., None].expand(*best.indices.shape, D // H)
    values = v[..., None, :, :].expand(*v.shape[:-2], N, N, -1).gather(-2, rows)
    return (best.values.softmax(-1)[..., None, :] @ values)[..., 0, :]


def heads_first(q, k, v):
    return F.scaled_dot_product_attention(*(t.transpose(0, 1) for t in (q, k, v))).transpose(0, 1)


def dropped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)


class Called(Block):
    """A convolution over tokens behind attention, where the block is called in another way."""

    def __init__(self, take, give):
        super().__init__(Open())
        self.take, self.give = take, give

    def forward(self, x):
        x = self.take(x)
        x = x + self.layer.forward(self.norm(x))
        return self.give(x + conv(x))


class Grid(nn.Module):
    """Blocks that hand on what ``Called`` gives, whatever it is."""

    def __init__(self, take, give, keyword=False):
        super().__init__()
        self.blocks = nn.ModuleList([Called(take, give), Called(take, give)])
        self.take, self.give, self.keyword = take, give, keyword

    def forward(self, images):
        x = self.give(images.flatten(2).mT)
        for block in self.blocks:
            x = block(x=x) if self.keyword else block(x)
        return self.take(x)


class Turn(nn.Module):
    def forward(self, x):
        return x.mT


def by(take, give, keyword=False):
    return lambda: all_random(Grid(take, give, keyword)).eval().double()


def between(layer):
    return lambda: nn.Sequential(nn.Flatten(2), Turn(), stack(plain(), layer(), plain()))


class GridOpen(Open):
    """Attention on a grid (B, D, rows, columns), and something beside it."""

    def __init__(self, beside):
        super().__init__()
        self.beside = beside

    def forward(self, x):
        x = x.flatten(2).mT
        return (super().forward(x) + self.beside(x)).mT.unflatten(2, (3, 4))


class Rows(nn.Module):
    """One layer in a list, on a grid."""

    def __init__(self, layer):
        super().__init__()
        layer.norm = nn.Identity()
        self.layers = nn.ModuleList([layer])

    def forward(self, x):
        return self.layers[0](x)


class ByKeyword(nn.Module):
    """Two layers whose tokens come by keyword."""

    def __init__(self, last, first):
        super().__init__()
        self.norm, self.first, self.last = nn.LayerNorm(D), first, last

    def forward(self, images):
        x = images.flatten(2).mT
        for layer in (self.first, self.last):
            x = x + layer(x=self.norm(x))
        return x


def rolled(q, k, v):
    return attend(q, k, v.roll(1, -2))


DROPS = "drops weights of '2.1.layer' at random"
MIXED, STRANGE = "values that move when the tokens of others", "values that do not follow"
UNSEEN = {
    "values rolled": (between(lambda: Other(lambda q, k, v: attend(q, k, v.roll(1, -2)))), MIXED),
    "keys and values sorted": (between(lambda: Other(sorted_keys)), MIXED),
    "a mean taken off the product": (between(lambda: Other(centred)), MOVES),
    "the product rolled": (
        between(lambda: Other(lambda q, k, v: attend(q, k, v).roll(1, -2))),
        MOVES,
    ),
    "as many slots as tokens": (between(lambda: Other(slots)), STRANGE),
    "called by keyword": (by(lambda x: x, lambda x: x, keyword=True), MOVES),
    "called with a tuple": (by(lambda x: x[0], lambda x: (x, 1)), MOVES),
    "the last layer, called with a grid": (
        lambda: all_random(Rows(Block(GridOpen(conv)))).eval().double(),
        MOVES,
    ),
    "the first layer, called by keyword": (
        lambda: all_random(ByKeyword(Open(), Other(rolled))).eval().double(),
        MIXED,
    ),
    "called with a grid": (
        by(lambda x: x.flatten(2).mT, lambda x: x.mT.unflatten(2, (3, 4))),
        MOVES,
    ),
    "two tokens that are not the first": (
        between(lambda: Parts(lambda x: torch.cat([x[:, :1], x[:, 1:3].flip(1), x[:, 3:]], 1))),
        MOVES,
    ),
    "the largest token goes to all": (
        between(lambda: Parts(lambda x: x.gather(1, x[..., :1].argmax(1, True).expand(-1, 1, D)))),
        MOVES,
    ),
    "seen with one image only": (between(lambda: Other(chosen_keys)), "in one of two runs only"),
    "heads before images": (between(lambda: Other(heads_first)), "images on another axis"),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_no_module_shows_is_seen_in_the_operands_of_the_products(name):
    build, why = UNSEEN[name]
    with pytest.raises(ValueError, match=why):  # as many images as heads
        attention_maps(build(), torch.randn(H, D, 3, 4).double())


class Root(nn.Module):
    """Tokens are made, and handed to layers, in the model's own forward."""

    def __init__(self, forward, depth=2, batch_first=True):
        super().__init__()
        self.patches, self.pos = nn.Conv2d(3, D, P, P), nn.Parameter(torch.randn(1, N, D))
        self.new = nn.Parameter(torch.randn(1, 4, D))
        self.embed = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, D))
        attention = [nn.MultiheadAttention(D, H, batch_first=batch_first) for _ in range(depth)]
        self.layers = nn.ModuleList(attention)
        self.qkv = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(depth))
        self.attends = nn.ModuleList(Attend(D, D) for _ in range(depth))
        self.blocks = nn.ModuleList(Block(Open()) for _ in range(depth))
        self.run = forward

    def forward(self, images):
        return self.run(self, self.patches(images).flatten(2).mT)


def one_tensor(model, x):
    x = torch.cat([x.mean(1, keepdim=True), x], 1)
    for layer in model.layers:
        x = x + layer(x, x, x)[0]
    return x


def by_name(model, x):
    for layer in model.layers:
        x = x + layer(x, key=x, value=x)[0]
    return x


def with_positions(model, x):
    for layer in model.layers:
        x = x + layer(x + model.pos, x + model.pos, x)[0]
    return x


def first_axis(model, x):
    x = x.transpose(0, 1)
    for layer in model.layers:
        x = x + layer(x, x, x, need_weights=False)[0]
    return x.transpose(0, 1)


class Attend(nn.Linear):
    def forward(self, q, k, v):
        q, k, v = (x.unflatten(-1, (H, D // H)).transpose(1, 2) for x in (q, k, v))
        return super().forward(attend(q, k, v).transpose(1, 2).flatten(2))


def made_outside(model, x, shared=False):
    k = v = None
    for qkv, layer in zip(model.qkv, model.attends, strict=True):
        q, *other = qkv(x).chunk(3, dim=-1)
        k, v = (k, v) if shared and v is not None else other
        x = x + layer(q, k, v)
    return x


def new_prompts(model, x):
    for block in model.blocks:
        x = block(torch.cat([model.new.expand(len(x), -1, -1), x[:, -N:]], 1))
    return x


def registers(model, x):
    x = torch.cat([model.new.expand(len(x), -1, -1), x], 1)
    for block in model.blocks:
        x = block(x)
    return x[:, 4:]


def some_patches(model, x):
    for block in model.blocks:
        x = block(x[:, :8] if len(x[0]) == N else x)
    return x


def two_embeddings(model, x):
    return registers(model, torch.cat([model.embed(x + model.pos), model.embed(x)], 1))


def pooled(model, x):
    x = F.max_pool1d((x + model.pos).mT, 2).mT
    for block in model.blocks:
        x = block(x)
    return x


HONEST = {
    "some patches": Root(some_patches),
    "two embeddings": Root(two_embeddings),
    "pooled patches": Root(pooled),
    "one tensor three times": Root(one_tensor),
    "one layer alone": Root(one_tensor, depth=1),
    "by name": Root(by_name),
    "positions on queries and keys": Root(with_positions),
    "sequence first": Root(first_axis, batch_first=False),
    "queries, keys and values made outside": Root(made_outside),
    "keys and values of the first layer": Root(lambda m, x: made_outside(m, x, shared=True)),
    "new prompts in each layer": Root(new_prompts),
    "registers": Root(registers),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("count", [1, B, H])
def test_tokens_that_a_model_makes_itself_are_no_reason_to_doubt_its_maps(name, count):
    model, images = all_random(HONEST[name]).eval(), torch.randn(count, 3, *SIZE)
    maps = attention_maps(model, images)
    assert_close(maps, attention_maps(model, images, verify=False))
    assert len(maps) == len(model.layers)


@pytest.mark.filterwarnings("ignore:.*torch.ao:DeprecationWarning")
@pytest.mark.parametrize(("name", "told"), [("new prompts in each layer", 1), ("registers", 0)])
def test_tokens_that_are_new_in_a_layer_are_told_as_no_rollout_goes_through_them(name, told):
    model = all_random(HONEST[name]).eval()
    rounded = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, torch.qint8)
    for one in (model, rounded):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            attention_maps(one, torch.randn(1, 3, *SIZE))
        said = [str(warning.message) for warning in found]
        assert ["some tokens are none that the block" in x for x in said] == [True] * told
        assert all(x.startswith("'blocks.1") for x in said)


@pytest.mark.parametrize("stem", [[2], [1, 2], [3], [2, 2], [4]])
@pytest.mark.parametrize("count", [D, 20])
def test_signals_have_their_patches_on_the_last_axis(stem, count):
    class Signals(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = zip([4, *[D] * len(stem)], stem, strict=False)
            self.stem = nn.Sequential(
                *[x for c, s in sizes for x in (nn.Conv1d(c, D, 3, s, 1), nn.GELU())]
            )
            self.blocks = nn.Sequential(Block(Open()), Block(Open()))

        def forward(self, x):
            return self.blocks(self.stem(x).mT)

    model = all_random(Signals()).eval()
    x = torch.randn(B, 4, count * math.prod(stem))
    assert_close(attention_maps(model, x), attention_maps(model, x, verify=False))


@pytest.mark.parametrize("count", [7, 9, N])
def test_patches_that_are_chosen_by_their_content_are_no_patches_any_more(count):
    def best(model, x):
        chosen = (x @ model.new[0, 0]).topk(count, 1).indices
        return some_patches(model, x.gather(1, chosen[..., None].expand(-1, -1, D)))

    with pytest.raises(ValueError, match=r"Root.forward' moves tokens when another one"):
        attention_maps(all_random(Root(best)).eval(), torch.randn(B, 3, *SIZE))


class Channels(nn.Module):
    """A module of torch that takes (B, D, N), given tokens."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.mT).mT


class Temper(nn.Module):
    """A learned temperature, in a module of its own."""

    def __init__(self):
        super().__init__()
        self.heat = nn.Parameter(torch.ones(1))

    def forward(self, scores):
        return scores * self.heat


class OneHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.temper = Temper()

    def forward(self, x):
        return self.temper(self.q(x) @ self.k(x).mT / D).softmax(-1) @ self.v(x)


AS_MANY = {
    "a convolution of size one": lambda: Channels(nn.Conv1d(D, D, 1)),
    "a batch norm": lambda: Channels(nn.BatchNorm1d(D)),
    "a linear layer": lambda: nn.Linear(D, D),
}


@pytest.mark.parametrize("name", AS_MANY)
def test_as_many_channels_as_tokens_are_no_reason_to_doubt_a_map(name):
    x = torch.randn(1, D, D).double()
    layer = AS_MANY[name]
    assert attention_maps(stack(plain(), layer(), plain()), x).shape == (2, 1, H, D, D)
    with pytest.raises(ValueError, match=MOVES):
        attention_maps(stack(plain(), layer(), Parts(conv), plain()), x)
    with pytest.raises(ValueError, match=MOVES):  # its neighbours, not itself alone
        attention_maps(stack(plain(), Channels(nn.Conv1d(D, D, 3, padding=1)), plain()), x)


def test_scores_of_one_head_in_a_module_of_their_own_are_no_tokens():
    model = stack(OneHead(), OneHead())
    model[0].norm = model[1].norm = nn.Identity()
    assert attention_maps(model, tokens()).shape == (2, B, 1, N, N)
    with pytest.raises(ValueError, match=MOVES):
        attention_maps(stack(OneHead(), Parts(conv), OneHead()), tokens())


class Logarithm(nn.Module):
    def forward(self, x):
        return x.log()


class OfPositive(nn.Module):
    """Each token alone, by a module that takes positive numbers and no others."""

    def __init__(self, mix=lambda x: x):
        super().__init__()
        self.mix, self.log = mix, Logarithm()

    def forward(self, x):
        return self.mix(self.log(F.softplus(x) + 0.1))


def test_where_a_disturbed_token_gives_no_number_nothing_is_said_of_mixing():
    untold = r"cannot be asked what its maps leave out: .*numbers that are none \(nan or inf\)"
    for mix in (lambda x: x, conv):
        with pytest.raises(ValueError, match=untold) as refusal:
            attention_maps(stack(plain(), OfPositive(mix), plain()), tokens())
        assert "moves tokens" not in str(refusal.value)


def test_of_any_two_tokens_one_stays_as_it_was_while_the_other_is_disturbed():
    for count in (1, 2, 12, 50, 197):
        ways = all_ways(count)
        same = (ways[:, None] == ways).flatten(0, 1).double()  # (pairs of runs, tokens)
        told = same.T @ (1 - same)  # how many pairs of runs tell the second token from the first
        assert (told.fill_diagonal_(1) > 0).all()
        assert (ways[0] == 0).all()


def weak(strength):
    return lambda x: x + strength * torch.randn_like(x)


def all_images(x):
    return x + 0.01 * x.flip(0)


DRAWS = {
    "dropout that never stops, in the last layer": (lambda: Open(lambda _, w: F.dropout(w)), DROPS),
    "fused dropout that never stops": (lambda: Other(dropped), DROPS),
    "little noise": (lambda: Parts(weak(1e-3)), "draws at random|gives something else when"),
    "hardly any noise": (lambda: Parts(weak(1e-4)), "gives something else when it runs again"),
    "images that see each other": (lambda: Parts(all_images), "depends on the others"),
}


@pytest.mark.parametrize(  # behind the last map only what drops its weights is told
    ("name", "last"),
    [(name, last) for name in DRAWS for last in (False, True) if DROPS in DRAWS[name] or not last],
)
def test_what_is_drawn_is_said_to_be_drawn_wherever_it_stands(name, last):
    build, why = DRAWS[name]
    model = nn.Sequential(nn.Flatten(2), Turn(), stack(plain(), build(), *[plain()] * (not last)))
    dtype = torch.float32 if name == "hardly any noise" else torch.float64  # as little as rounding
    with pytest.raises(ValueError, match=why):
        attention_maps(model.to(dtype), torch.randn(B, D, 3, 4, dtype=dtype))


def next_image(q, k, v):
    return attend(q, k, v.roll(1, 0))


def mean_image(q, k, v):
    return attend(q, k, v.mean(0, keepdim=True).expand_as(v))


def middle_images(q, k, v):
    v = torch.cat([v[:1], v[1:-1].mean(0, keepdim=True).expand_as(v[1:-1]), v[-1:]])
    return attend(q, k, v)


def image_before(x):
    """As of a video: each frame has something of the one before, and the first has nothing."""
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def all_but_the_first(x):
    return torch.cat([x[:1], x[1:] + x[1:].mean(1, keepdim=True)])


MIDDLE = "those in the middle"
FROM_OTHERS = {
    "values of the next image": lambda: stack(plain(), Other(next_image)),
    "the mean image": lambda: stack(plain(), Other(mean_image)),
    "the image before": lambda: stack(plain(), Parts(image_before), plain()),
    MIDDLE: lambda: stack(plain(), Other(middle_images), plain()),
    "otherwise for the first": lambda: stack(plain(), Parts(all_but_the_first), plain()),
}


@pytest.mark.parametrize(  # of three images, one alone stands in the middle
    ("name", "count"),
    [(x, n) for x in FROM_OTHERS for n in (B + 1, B + 2, 12) if n > B + 1 or x != MIDDLE],
)
def test_what_comes_from_other_images_is_seen_in_each_layer_and_image(name, count):
    model = nn.Sequential(nn.Flatten(2), Turn(), FROM_OTHERS[name]())
    with pytest.raises(ValueError, match="what it makes of an image depends on the others"):
        attention_maps(model, torch.randn(count, D, 3, 4).double())


INSIDE = {
    "values rolled": (lambda q, k, v: attend(q, k, v.roll(1, -2)), MIXED),
    "keys and values sorted": (sorted_keys, MIXED),
    "as many slots as tokens": (slots, STRANGE),
    "the product rolled": (lambda q, k, v: attend(q, k, v).roll(1, -2), MOVES),
}


@pytest.mark.parametrize("name", INSIDE)
def test_who_names_layers_is_told_what_goes_on_inside_of_them(name):
    mix, why = INSIDE[name]
    model = stack(plain(), Other(mix), Parts(conv), plain())
    with pytest.raises(ValueError, match=f"'1.layer' .*{why}") as refusal:
        attention_maps(model, tokens(), layers="*.layer")
    assert "attention_maps(" not in str(refusal.value)
    assert attention_maps(model, tokens(), layers=["0.layer", "3.layer"]).shape[0] == 2


@pytest.mark.parametrize("name", INSIDE)
def test_layers_are_named_as_a_way_out_where_nothing_goes_on_inside_of_them(name):
    model = stack(plain(), Other(INSIDE[name][0]), plain())
    with pytest.raises(ValueError, match=INSIDE[name][1]) as refusal:
        attention_maps(model, tokens())
    assert "attention_maps(" not in str(refusal.value)


class ByEinsum(Other):
    """Attention whose maps have their axes in another order, or whose heads share values."""

    def __init__(self, scores, product, back=(0, 1, 2, 3), mean_values=False):
        super().__init__(self.turned)
        self.scores, self.product, self.back = scores, product, back
        self.mean_values = mean_values

    def turned(self, q, k, v):
        v = v.mean(1) if self.mean_values else v
        weights = torch.einsum(self.scores, q, k).softmax(-1)
        self.used.append(weights.permute(self.back))
        return torch.einsum(self.product, weights, v)


class Permuted(Other):
    """A softmax over scores (h, B, N, N) or (B, N, h, N), whose axes are put in order later."""

    def __init__(self, *order):
        super().__init__(self.turned)
        self.order = order

    def turned(self, q, k, v):
        weights = (q @ k.mT).permute(self.order).softmax(-1)
        weights = weights.permute(sorted(range(4), key=self.order.__getitem__))
        self.used.append(weights)
        return weights @ v


# Maps whose axes stand in another order than (B, h, N, N) where the softmax is taken.
TURNED = {
    "queries before heads": lambda: ByEinsum("bhid,bhjd->bihj", "bihj,bhjd->bhid", (0, 2, 1, 3)),
    "queries first": lambda: ByEinsum("bhid,bhjd->ibhj", "ibhj,bhjd->bhid", (1, 2, 0, 3)),
    "heads share values": lambda: ByEinsum("bhid,bhjd->bhij", "bhij,bjd->bhid", mean_values=True),
    "with dots": lambda: ByEinsum("...id,...jd->...ij", "...ij,...jd->...id"),
    "heads before images": lambda: Permuted(1, 0, 2, 3),
    "queries before heads, then back": lambda: Permuted(0, 2, 1, 3),
}


@pytest.mark.parametrize("name", TURNED)
def test_a_map_whose_axes_stand_in_another_order_is_the_one_that_is_multiplied(name):
    model, x = stack(plain(), TURNED[name](), plain()), tokens()
    model(x)
    expected = torch.stack([block.layer.used[0] for block in model])
    assert_close(attention_maps(model, x), expected)


# Layers that do odd things, none of which changes a map.
RIGHT = {
    "plain": {},
    "keeps a clone": {"between": kept(torch.clone)},
    "keeps a view": {"between": kept(lambda w: w.view(-1, H, N, N))},
    "keeps a reshaped copy": {"between": kept(lambda w: w.reshape(-1, N, N))},
    "keeps a detached copy": {"between": kept(lambda w: w.detach().clone())},
    "keeps the mean of its heads": {"between": kept(lambda w: w.mean(1))},
    "changes the copy that it keeps": {"between": kept(lambda w: w.clone().zero_())},
    "goes on with a copy": {"between": lambda layer, w: w.clone()},
    "by way of numpy": {"between": lambda layer, w: torch.from_numpy(w.numpy().copy())},
    "heads folded": {"between": lambda layer, w: w.flatten(0, 1)},
    "multiplied by one": {"between": lambda layer, w: w * 1},
    "in place, by nothing": {"between": edit(lambda w: w.mul_(1))},
    "a gate behind": {"after": lambda out, v: out * v.sigmoid()},
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_layer_that_keeps_its_map_gives_the_weights_that_it_multiplies(name):
    model = stack(plain(), Open(**RIGHT[name]), plain())
    x = tokens()[: 1 if name == "heads folded" else B]
    model(x)
    expected = torch.stack([block.layer.used[0] for block in model])
    assert (expected - 1 / N).abs().max() > 0.1
    assert_close(attention_maps(model, x), expected, atol=0, rtol=0)
    assert_close(attention_maps(model, x, verify=False), expected, atol=0, rtol=0)


def test_dropout_while_training_is_no_change_and_a_change_behind_it_is_one():
    model = stack(Open(lambda _, w: F.dropout(w, 0.5))).train()
    with record_attention(model) as maps:
        model(tokens())
    assert_close(maps["0.layer"].sum(-1), torch.ones(B, H, N).double())
    model = stack(plain(), Open(lambda _, w: F.dropout(w, 0.5) * 2)).train()
    with pytest.warns(UserWarning, match=CHANGED), record_attention(model) as maps:
        model(tokens())
    assert list(maps) == ["0.layer"]


def test_a_fused_function_that_gives_something_else_is_noticed_and_checks_can_be_left_out(
    monkeypatch,
):
    from vitbook.inspection import recorder

    right = recorder.sdpa_weights
    wrong = lambda *args, **kwargs: right(*args, **kwargs).roll(1, dims=1)  # noqa: E731
    monkeypatch.setattr(recorder, "sdpa_weights", wrong)
    model = timm_model("vit_tiny_patch16_224")
    with pytest.raises(ValueError, match=f"'blocks.0.attn', 'blocks.1.attn': {SAID}"):
        attention_maps(model, torch.randn(B, 3, *SIZE))
    assert attention_maps(model, torch.randn(B, 3, *SIZE), verify=False).shape[0] == 2
    with pytest.warns(UserWarning, match=SAID), record_attention(model):
        model(torch.randn(B, 3, *SIZE))
    with record_attention(model, verify=False):
        model(torch.randn(B, 3, *SIZE))


class Between(nn.Module):
    """What mixes stands in the model's own forward, between two blocks."""

    def __init__(self, mix):
        super().__init__()
        self.patches, self.mix = nn.Conv2d(3, D, P, P), mix
        self.first, self.last = Block(Open()), Block(Open())

    def forward(self, images):
        x = self.first(self.patches(images).flatten(2).mT)
        return self.last(self.mix(x))


def test_what_a_model_does_between_its_blocks_moves_no_token_unseen():
    images = torch.randn(B, 3, *SIZE)
    for mix in (conv, lambda x: x + x.mean(1, keepdim=True), lambda x: x.flip(1)):
        with pytest.raises(ValueError, match=f"'Between.forward' {MOVES}"):
            attention_maps(all_random(Between(mix)).eval(), images)
    with pytest.raises(ValueError, match=f"'1' {MOVES}"):  # what it moves comes from no residual
        attention_maps(all_random(nn.Sequential(Open(), Other(exponentials))).double(), tokens())
    alone = all_random(Between(torch.relu)).eval()
    assert attention_maps(alone, images).shape == (2, B, H, N, N)


FLEX = """
import torch
from torch.nn.attention.flex_attention import flex_attention
from vitbook.inspection import attention_maps

class Flex(torch.nn.Linear):
    def forward(self, x):
        q, k, v = super().forward(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v).transpose(1, 2).flatten(2)

try:
    attention_maps(Flex(32, 96), torch.randn(2, 128, 32))
except ValueError as error:
    assert "none of its layers showed attention" in str(error)
    print("said")
"""


@pytest.mark.slow
def test_the_first_pass_of_a_process_says_that_flex_attention_is_not_read():
    done = subprocess.run([sys.executable, "-c", FLEX], capture_output=True, text=True)
    assert done.stdout.split() == ["said"], done.stderr[-2000:]


def test_who_names_layers_asks_for_a_part_and_is_told_so():
    model = stack(plain(), Parts(conv), plain())
    with pytest.raises(
        ValueError, match=r"layers='\*.layer'\) gives the maps of '0.layer', '2.lay"
    ):
        attention_maps(model, tokens())
    assert attention_maps(model, tokens(), layers="*.layer").shape == (2, B, H, N, N)


@pytest.mark.parametrize(
    ("first", "advised"), [(nn.Identity(), True), (nn.LayerNorm((N, D)), False)]
)
@pytest.mark.parametrize("verify", [True, False])
def test_layers_are_advised_only_where_their_maps_can_be_had(first, advised, verify):
    layers = plain(), nn.Sequential(OneHead()), plain()
    for layer in layers[::2]:
        layer.qkv = nn.Sequential(copy.deepcopy(first), layer.qkv)
    model = stack(*layers)
    with pytest.raises(ValueError, match="maps of different shapes") as refusal:
        attention_maps(model, x := tokens(), verify=verify)
    assert ("layers='*.layer') asks for" in str(refusal.value)) == advised
    if advised:
        assert attention_maps(model, x, layers="*.layer").shape == (2, B, H, N, N)


class Helps(Other):
    """Its ``attention_weights`` is a part of ``forward``, with arguments of its own."""

    def __init__(self):
        super().__init__(lambda q, k, v: self.attention_weights(q, k) @ v)

    def attention_weights(self, q, k):
        return (q @ k.mT / 3).softmax(-1)


class Speaks(Other):
    """What its ``attention_weights`` gives, and what it does."""

    def __init__(self, say, mix):
        super().__init__(mix)
        self.say = say

    def attention_weights(self, x):
        q, k, _ = self.heads(x)
        return self.say(q, k)


def soft(q, k):
    return (q @ k.mT / 3).softmax(-1)


def in_halves(q, k, v):
    halves = zip(*(x.chunk(2, 1) for x in (q, k, v)), strict=True)
    return torch.cat([soft(q, k) @ v for q, k, v in halves], 1)


def causal_bias(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(N, N))


def gated(q, k, v):
    return attend(q, k, v) * q.mean(-1).softmax(1)[..., None]


def placed(q, k, v):
    weights = torch.arange(H * N * N).sin().view(H, N, N).to(q).softmax(-1)
    return weights @ v


def by_place(q, k):
    weights = torch.arange(H * N * N).sin().view(H, N, N).to(q).softmax(-1)
    return weights.expand(len(q), -1, -1, -1)


def sparse(q, k, v):
    return torch.bmm(soft(q, k).flatten(0, 1).to_sparse(), v.flatten(0, 1)).view_as(v)


def lower(q, k):
    scores = (q @ k.mT / math.sqrt(D // H)).masked_fill(~torch.ones(N, N).tril().bool(), -math.inf)
    return scores.softmax(-1)


ALSO_READ = {
    "a causal bias": (lambda: Other(causal_bias), lower),
    "a gate over heads": (lambda: Other(gated), soft),
    "one map for all images and heads": (
        lambda: Other(placed),
        by_place,
    ),
    "a helper of that name": (Helps, soft),
    "says it, and multiplies in two halves": (lambda: Speaks(soft, in_halves), soft),
    "sparse weights": (lambda: Other(sparse), soft),
}


@pytest.mark.parametrize("name", ALSO_READ)
def test_what_is_written_in_another_way_is_read_nevertheless(name):
    build, expected = ALSO_READ[name]
    model, x = stack(plain(), build(), plain()), tokens()[: 1 if name == "sparse weights" else B]
    middle = model[1].layer
    q, k, _ = middle.heads(model[1].norm(model[0](x)))
    assert_close(attention_maps(model, x)[1], expected(q, k))


def in_vmap(q, k, v):
    return torch.vmap(torch.vmap(lambda q, k, v: soft(q, k) @ v))(q, k, v)


def nested(q, k, v):
    q, k, v = (torch.nested.as_nested_tensor(x, layout=torch.jagged) for x in (q, k, v))
    return torch.stack([*F.scaled_dot_product_attention(q, k, v).unbind()])


def heads_added_up(q, k, v):
    return torch.einsum("bhij,bgjd->bgid", soft(q, k), v)


def used_in_turn(q, k, v):
    first, second = soft(q, k), soft(k, q)
    return second @ v + (first * 2) @ v


def in_parts(q, k, v):
    weights = soft(q, k)
    return torch.stack([weights[:, head] @ v[:, head] for head in range(H)], 1)


def twice(q, k, v):
    weights, (left, right) = soft(q, k), v.chunk(2, dim=-1)
    return torch.cat([weights @ left, weights @ right], -1)


def two_hops(q, k, v):
    weights = soft(q, k)
    return weights @ (weights @ v)


NOT_READ = {
    "its softmax in parts": (lambda: Other(in_parts), "multiplies a part of it"),
    "in vmap": (lambda: Other(in_vmap), "it runs in torch.vmap"),
    "nested": (lambda: Other(nested), "its tokens are a nested tensor"),
    "heads added up": (lambda: Other(heads_added_up), CHANGED),
    "two softmaxes, the later one first": (lambda: Other(used_in_turn), CHANGED),
    "says other heads of two halves": (
        lambda: Speaks(lambda q, k: soft(q, k).roll(1, 1), in_halves),
        SAID,
    ),
    "says nothing": (lambda: Speaks(lambda q, k: None, exponentials), "no weights .* but NoneType"),
    "cannot say": (lambda: Speaks(lambda q, k: q @ k, exponentials), "its attention_weights fails"),
    "says which, not how much": (
        lambda: Speaks(lambda q, k: soft(q, k) > 0.1, attend),
        "no weights .* but torch.bool",
    ),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_cannot_be_read_is_refused_in_a_sentence_that_names_it(name):
    build, why = NOT_READ[name]
    with pytest.raises(ValueError, match=f"'1.layer': .*{why}"):
        attention_maps(stack(plain(), build(), plain()), tokens())


@pytest.mark.parametrize("pruned", [slice(8), slice(4, 20), slice(None)])  # a head, halves, all
def test_columns_of_a_projection_that_are_zero_throw_nothing_away(pruned):
    model = stack(plain(), plain(), plain())
    expected = attention_maps(model, x := tokens())
    torch.nn.init.zeros_(model[2].layer.proj.weight[:, pruned])
    assert_close(attention_maps(model, x), expected)


def neighbours(x):
    return (x + x.roll(1, 1)) / 2


def test_what_a_model_does_before_its_first_layer_moves_no_token_unseen():
    images = torch.randn(B, 3, *SIZE)
    for number in (0, 4):  # registers
        arrange = lambda x, r: torch.cat([r[:, :number], x], 1)  # noqa: B023, E731
        honest = all_random(Tokens(arrange)).eval()
        assert attention_maps(honest, images).shape == (2, B, H, N + number, N + number)
        for mix in (neighbours, conv):
            model = all_random(Tokens(lambda x, r: arrange(mix(x), r))).eval()  # noqa: B023
            with pytest.raises(ValueError, match=f"'Tokens.forward' {MOVES}"):
                attention_maps(model, images)


class Positions(nn.Module):
    """Positions (1, N, D), of an image whose size alone matters, or of numbers."""

    def __init__(self, number):
        super().__init__()
        self.pos, self.table = nn.Parameter(torch.randn(1, number, D)), nn.Embedding(number, D)

    def forward(self, images):
        return self.pos + self.table(torch.arange(self.pos.shape[1]))


class Embeds(nn.Module):
    """Patches behind a class token, with positions from modules of their own."""

    def __init__(self, mix):
        super().__init__()
        self.patches, self.mix = nn.Conv2d(3, D, P, P), mix
        self.positions, self.one = Positions(N + 1), nn.Parameter(torch.randn(1, 1, D))

    def forward(self, images):
        x = self.mix(self.patches(images).flatten(2).mT)
        x = torch.cat([self.one.expand(len(x), -1, -1), x], 1)
        return x + self.positions(images)


def test_positions_that_a_module_gives_are_no_patches():
    images = torch.randn(B, 3, *SIZE)
    model = all_random(nn.Sequential(Embeds(lambda x: x), Block(Open()), Block(Open()))).eval()
    assert attention_maps(model, images).shape == (2, B, H, N + 1, N + 1)
    model[0].mix = neighbours
    with pytest.raises(ValueError, match=f"'0' {MOVES}"):
        attention_maps(model, images)


FORMS = {
    "tokens": (lambda x: x, lambda x: x),
    "a dict": (lambda x: x["x"], lambda x: {"x": x}),
    "a grid of one row": (lambda x: x[:, 0], lambda x: x[:, None]),
    "a grid": (lambda x: x.flatten(1, 2), lambda x: x.unflatten(1, (3, 4))),
    "a grid, channels first": (lambda x: x.flatten(2).mT, lambda x: x.mT.unflatten(2, (3, 4))),
}


@pytest.mark.parametrize("keyword", [True, False])
@pytest.mark.parametrize("name", FORMS)
def test_a_mixing_at_the_end_of_the_last_block_is_seen_however_it_is_called(name, keyword):
    images, forms = torch.randn(1, D, 3, 4), FORMS[name]
    model = Grid(*forms, keyword=keyword)
    model.take, model.blocks[0] = lambda x: x, Takes(*forms)
    with pytest.raises(ValueError, match=f"'blocks.1' {MOVES}"):
        attention_maps(all_random(model).eval(), images)


class Takes(Called):
    def forward(self, x):
        x = self.take(x)
        return self.give(x + self.layer.forward(self.norm(x)))


class Asks(nn.MultiheadAttention):
    def __init__(self):
        super().__init__(D, H, batch_first=True)

    def forward(self, x, y):
        return x + super().forward(x, y, y, need_weights=False)[0]


def latents(model, x):
    return model.asks[1](model.asks[0](model.pos.expand_as(x), x), x)


def decoder(model, x):
    return model.transformer(x, model.pos.expand_as(x))


def second_view(model, x):
    y = x.unflatten(1, (3, 4)).flip(2).flatten(1, 2)
    x, y = (model.asks[0](z, z) for z in (x, y))
    return model.asks[1](y, x)


class Streams(Root):
    def __init__(self, forward):
        super().__init__(forward)
        self.asks = nn.ModuleList([Asks(), Asks()])
        self.transformer = nn.Transformer(D, H, 1, 1, D, 0.0, batch_first=True)


ASK_OTHERS = "has queries that are not the tokens that it takes keys"
OTHER_PATCHES = "other patches than those of"


@pytest.mark.parametrize(
    ("forward", "told"),
    [(latents, ASK_OTHERS), (decoder, ASK_OTHERS), (second_view, OTHER_PATCHES)],
)
def test_as_many_queries_of_something_else_are_no_tokens_that_ask_each_other(forward, told):
    model, images = all_random(Streams(forward)).eval(), torch.randn(B, 3, *SIZE)
    with pytest.raises(ValueError, match=ASK_OTHERS):
        attention_maps(model, images)
    with pytest.raises(ValueError, match=told):
        find_num_prefix(model, images)


def inline(mix, at):
    """Blocks in the model's forward; one of them mixes tokens beside its attention."""

    def forward(model, x):
        x = x + model.pos
        for number, layer in enumerate(model.layers):
            y = layer(x, x, x)[0]
            x = mix(x, y) if number == at else x + y
        return x

    return Root(forward)


def asks_for(memory):
    def forward(model, x):
        given = memory(model, x)
        for layer in model.layers:
            x = x + layer(x, given, given)[0]
        return x

    return Root(forward)


class Handed(nn.Module):
    """A block that is given its tokens in a form of its own, and mixes them beside attention."""

    def __init__(self, mixes):
        super().__init__()
        self.layer, self.mixes = nn.MultiheadAttention(D, H, batch_first=True), mixes

    def forward(self, *, given):
        x = next(iter(given.values())) if isinstance(given, dict) else given[0]
        x = x + self.layer(x, x, x)[0] + self.mixes * x.mean(1, keepdim=True)
        return {"x": x} if isinstance(given, dict) else (x,)


def handed(form, at):
    def forward(model, x):
        given = form(x + model.pos)
        for block in model.handed:
            given = block(given=given)
        return given

    model = Root(forward)
    model.handed = nn.ModuleList(Handed(number == at) for number in range(3))
    return model


MIXES = {
    "the mean": lambda x, y: x + y + x.mean(1, keepdim=True),
    "a gate by the mean": lambda x, y: x + y * x.mean(1, keepdim=True).sigmoid(),
    "other tokens": lambda x, y: x.flip(1) + y,
    "neighbours": lambda x, y: x + y + x.roll(1, 1),
}
MEMORIES = {
    "slots": lambda model, x: model.pos.expand_as(x),
    "nothing": lambda model, x: torch.zeros_like(x),
    "tokens, sorted": lambda model, x: x.sort(1)[0],
    "the mean": lambda model, x: x.mean(1, keepdim=True).expand_as(x),
    "the first tokens": lambda model, x: x,
}


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_what_mixes_beside_attention_is_seen_in_the_first_block_too(mix, at):
    with pytest.raises(ValueError, match=r"moves tokens when another one is disturbed|put in"):
        attention_maps(all_random(inline(mix, at)).eval(), torch.randn(B, 3, *SIZE))
    plain_one = all_random(inline(torch.add, at)).eval()
    assert attention_maps(plain_one, torch.randn(B, 3, *SIZE)).shape == (2, B, H, N, N)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("form", [lambda x: (x,), lambda x: {"x": x}], ids=["tuple", "dict"])
def test_a_block_may_be_given_its_tokens_in_any_form(form, at):
    model, images = all_random(handed(form, at)).eval(), torch.randn(B, 3, *SIZE)
    if at == 3:
        assert attention_maps(model, images).shape == (3, B, H, N, N)
    else:
        with pytest.raises(ValueError, match=f"'handed.{at}'.* {MOVES}"):
            attention_maps(model, images)


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_values_of_something_else_than_the_tokens_before_are_no_columns_of_a_map(memory):
    with pytest.raises(ValueError, match=r"multiplies its map with values|moves tokens"):
        attention_maps(all_random(asks_for(memory)).eval(), torch.randn(B, 3, *SIZE))


@pytest.mark.parametrize("token", range(N))
def test_no_token_may_have_another_value(token):
    def zero(q, k, v):
        v = v.clone()
        v[:, :, token] = 0
        return attend(q, k, v)

    with pytest.raises(ValueError, match=r"'1.layer' multiplies its map with values that do not"):
        attention_maps(stack(plain(), Other(zero), plain()), tokens())


def test_a_value_that_nobody_hears_may_be_anything():
    def masked(q, k, v):
        hidden = torch.arange(N) > N - 3
        scores = (q @ k.mT / 3).masked_fill(hidden, -math.inf)
        return scores.softmax(-1) @ (v * ~hidden[:, None])

    maps = attention_maps(stack(plain(), Other(masked), plain()), tokens())
    assert (maps[1, ..., N - 2 :] == 0).all()


def padded_window(model, x):
    x = F.pad(x, (0, 0, 0, 6))
    for block in model.blocks:
        x = block(x)
    return x[:, :N]


def test_a_window_that_is_padded_is_not_the_image():
    model = all_random(Root(padded_window)).eval()
    with pytest.raises(ValueError, match="the same for a quarter of its tokens or more: padding"):
        attention_maps(model, torch.randn(B, 3, *SIZE))


class Rootless(nn.Module):
    """Channels attend to each other, in a module without parameters."""

    def forward(self, x):
        q = x.flatten(2)
        return x + ((q @ q.mT).softmax(-1) @ q).view_as(x)


def test_rows_that_no_module_gives_or_takes_may_be_channels():
    model = nn.Sequential(nn.Conv2d(3, D, P, P), Rootless(), Rootless()).eval()
    with pytest.raises(ValueError, match="as many rows as no module gives or is given tokens"):
        attention_maps(model, torch.randn(B, 3, *SIZE))


@pytest.mark.parametrize("count", [1, N // 2, N])
def test_tokens_that_are_replaced_between_layers_are_others(count):
    def forward(model, x):
        first, second = model.blocks
        x = first(x + model.pos).clone()
        x[:, :count] = model.pos[:, :count]
        return second(x)

    with pytest.raises(ValueError, match=r"'blocks.1' is given tokens of which some follow none"):
        attention_maps(all_random(Root(forward)).eval(), torch.randn(B, 3, *SIZE))


@pytest.mark.parametrize("norm", [nn.Identity(), nn.LayerNorm(D)])
def test_a_second_tower_is_no_next_layer(norm):
    class Towers(Root):
        def forward(self, images):
            first, second = self.blocks
            return [
                block(self.norm(self.patches(x).flatten(2).mT + self.pos))
                for block, x in ((first, images), (second, images.flip(-1)))
            ]

    model, x = all_random(Towers(None)).eval(), torch.randn(B, 3, *SIZE)
    model.norm = norm
    with pytest.raises(ValueError, match=r"of which some follow none that the layers before left$"):
        attention_maps(model, x)
    with pytest.raises(ValueError, match=r"'blocks.1.layer' .* values that do not follow"):
        attention_maps(model, x, layers="blocks.*")
    assert attention_maps(model, x, layers="blocks.1.layer").shape == (1, B, H, N, N)


class TwoStacks(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(N, D))
        self.both = nn.Transformer(D, H, depth, 2, 2 * D, batch_first=True)

    def forward(self, x):
        return self.both(x + self.pos, x + self.pos)


class Beside(Open):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(D, D, 3, padding=1, groups=D)

    def forward(self, x):
        return super().forward(x) + self.conv(x.mT.unflatten(2, (3, 4))).flatten(2).mT


def test_each_convolution_over_the_grid_in_a_block_is_named():
    with pytest.raises(ValueError, match=r"'0.layer.conv', '1.layer.conv' moves tokens"):
        attention_maps(stack(Beside(), Beside()), tokens())


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D // H)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return soft(q, k) @ v


class Heads(nn.Module):
    """Each head is a module."""

    def __init__(self, count):
        super().__init__()
        self.heads, self.proj = nn.ModuleList(Head() for _ in range(count)), nn.LazyLinear(D)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], -1))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_heads_that_are_modules_stand_side_by_side_and_no_rollout_goes_through_them(count):
    model = nn.Sequential(*(Block(Heads(count)) for _ in range(3))).double()
    model(tokens())
    with pytest.warns(UserWarning, match=r"'0.layer.heads.1', .* stand side by side with the"):
        maps = attention_maps(all_random(model).eval(), tokens())
    assert maps.shape == (3 * count, B, 1, N, N)


def not_handed_on(model, x):
    for block in model.blocks:
        out = block(x)
    return out


def two_branches(model, x):
    trunk, first, second = model.blocks
    x = trunk(x)
    return first(x) + second(x)


def twice_the_same(model, x):
    first, last = model.blocks
    x = first(x)
    return last(x) + last(x)


def older_values(model, x):
    first, second, third = model.layers
    y = x + first(x, x, x)[0]
    z = y + second(y, y, y)[0]
    return z + third(z, z, y)[0]


@pytest.mark.parametrize(
    ("model", "x", "name"),
    [
        (Root(not_handed_on), torch.randn(B, 3, *SIZE), "blocks.1.layer"),
        (Root(two_branches, depth=3), torch.randn(B, 3, *SIZE), "blocks.2.layer"),
        (Root(twice_the_same), torch.randn(B, 3, *SIZE), "blocks.1.layer"),
        (Root(older_values, depth=3), torch.randn(B, 3, *SIZE), "layers.2"),
        (TwoStacks(2), torch.randn(B, N, D), "both.decoder.layers.0.self_attn"),
    ],
)
def test_a_layer_that_does_not_follow_the_one_before_makes_no_chain(model, x, name):
    told = rf"'{name}' multiplies its map with values that do not follow what the block .*\)$"
    with pytest.raises(ValueError, match=told):
        attention_maps(all_random(model).eval(), x)


class Pair(nn.Module):
    """Two heads of one layer each."""

    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(Root(None, depth=1) for _ in range(2))

    def forward(self, x):
        x = self.nets[0].patches(x).flatten(2).mT
        return sum(net.blocks[0](x).mean(1) for net in self.nets)


def test_two_heads_with_a_layer_each_are_no_chain():
    with pytest.raises(ValueError, match=r"'nets.1.blocks.0.layer' multiplies .* do not follow"):
        attention_maps(all_random(Pair()).eval(), torch.randn(B, 3, *SIZE))


class Expert(nn.Module):
    """Each token goes to one of three experts, one expert after the other."""

    def __init__(self):
        super().__init__()
        self.route, self.act = nn.Linear(D, 3), nn.ReLU()
        self.weight = nn.Parameter(torch.randn(3, D, D))

    def forward(self, x):
        rows = x.flatten(0, -2)
        order = self.route(rows).argmax(-1).sort()
        made = self.act((rows[order.indices, None] @ self.weight[order.values]).squeeze(1))
        return torch.empty_like(rows).index_copy(0, order.indices, made).view_as(x)


class Choose(Open):
    """One of two projections for each token, chosen by what the token is."""

    def __init__(self):
        super().__init__()
        self.gate, self.other = nn.Linear(D, 1), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.heads(x)
        out = (soft(q, k) @ v).transpose(1, 2).flatten(2)
        return torch.where(self.gate(x) > 0, self.proj(out), self.other(out))


@pytest.mark.parametrize(("layer", "depth"), [(Expert, 2), (Choose, 3)])
def test_where_a_token_goes_for_what_it_is_moves_no_other(layer, depth):
    model = stack(plain(), layer(), plain())
    assert attention_maps(model, tokens()).shape == (depth, B, H, N, N)


def by_sums(q, k):
    weights = exponential(q, k)
    return weights / weights.sum(-1, keepdim=True)


ASIDE = {
    "values that are mixed": lambda q, k, v: by_sums(q, k) @ (v + v.mean(2, keepdim=True)),
    "values of others": lambda q, k, v: by_sums(q, k) @ v.roll(1, 2),
    "rows of others": lambda q, k, v: (by_sums(q, k) @ v).roll(1, 2),
    "another image": lambda q, k, v: (by_sums(q, k) @ v).flip(0),
}


@pytest.mark.parametrize("mix", ASIDE.values(), ids=ASIDE)
def test_a_layer_that_says_its_weights_is_tested_behind_its_product_too(mix):
    model = stack(plain(), Speaks(by_sums, mix), plain())
    with pytest.raises(ValueError, match=f"'1.layer': {SAID}"):
        attention_maps(model, tokens())
    honest = Speaks(by_sums, lambda q, k, v: by_sums(q, k) @ v)
    assert attention_maps(stack(plain(), honest, plain()), tokens()).shape == (3, B, H, N, N)


class Shifted(Block):
    def forward(self, x):
        return x + self.layer(self.norm(x).roll(1, 1)).roll(-1, 1)


def test_layers_whose_tokens_come_in_other_orders_are_not_advised():
    model = all_random(nn.Sequential(Block(plain()), Shifted(plain()))).eval()
    with pytest.raises(ValueError, match="moves tokens") as refusal:
        attention_maps(model, tokens().float())
    assert "layers=" not in str(refusal.value)
    with pytest.raises(ValueError, match=r"'1.layer' has its tokens in another order"):
        attention_maps(model, tokens().float(), layers="*.layer")


class Lines(nn.Module):
    """Blocks of a grid (B, H, W, D), by a function and a norm that stands behind it."""

    def __init__(self, width, function=lambda x: x):
        super().__init__()
        self.patches, self.function = nn.Conv2d(3, width, P, P), function
        self.layers = nn.ModuleList(Line(width, 3 * width) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, images):
        x = self.patches(images).permute(0, 2, 3, 1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(self.function(x + layer(x)))
        return x


class Line(nn.Linear):
    def forward(self, x):
        q, k, v = super().forward(x).flatten(1, 2).chunk(3, -1)
        return attend(q[:, None], k[:, None], v[:, None]).view_as(x)


@pytest.mark.parametrize("width", [24, SIZE[1]])
def test_a_grid_is_no_window_of_an_image_that_is_as_wide_as_its_tokens(width):
    assert len(attention_maps(Lines(width).eval(), torch.randn(1, 3, *SIZE))) == 2


SCORES = {
    "a product": lambda q, k: q @ k.mT,
    "a product, and another behind it": lambda q, k: q @ k.mT @ torch.eye(N),
    "einsum": lambda q, k: torch.einsum("...id, ...jd -> ...ij", q, k),
    "distances": lambda q, k: -(torch.cdist(q, k) ** 2),
    "a sum of products": lambda q, k: (q[..., None, :] * k[..., None, :, :]).sum(-1),
    "a sum": lambda q, k: (q[..., None, :] + k[..., None, :, :]).tanh().sum(-1),
    "baddbmm": lambda q, k: torch.baddbmm(
        torch.zeros(len(q) * H, N, N), q.flatten(0, 1), k.flatten(0, 1).mT
    ).unflatten(0, (len(q), H)),
}
QUERIES = {
    "tokens": lambda model, x: x,
    "latents": lambda model, x: model.pos.expand_as(x),
    "another view": lambda model, x: x.unflatten(1, (3, 4)).flip(2).flatten(1, 2),
    "the mean of all": lambda model, x: x.mean(1, keepdim=True) + model.pos,
}


class Scores(Root):
    """Two layers whose queries are somebody's, and whose scores are made in some way."""

    def __init__(self, scores, queries):
        super().__init__(None)
        self.scores, self.queries = scores, queries
        self.layers = nn.ModuleList(Scored(D, 3 * D) for _ in range(2))

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        for layer in self.layers:
            x = F.layer_norm(x + layer(x, self.queries(self, x), self.scores), (D,))
        return x


class Scored(nn.Linear):
    def forward(self, x, asking, scores):
        q, k, v = (
            F.linear(y, weight).unflatten(-1, (H, D // H)).transpose(1, 2)
            for y, weight in zip((asking, x, x), self.weight.chunk(3), strict=True)
        )
        return (scores(q / D**0.5, k).softmax(-1) @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("who", QUERIES)
def test_who_asks_is_seen_whatever_makes_the_scores(who, scores):
    model, images = Scores(scores, QUERIES[who]).eval(), torch.randn(B, 3, *SIZE)
    if who == "tokens":
        assert attention_maps(model, images).shape == (2, B, H, N, N)
    else:
        with pytest.raises(ValueError, match="has queries that are not the tokens that it takes"):
            attention_maps(model, images)


class Windows(nn.Module):
    """Attention along the rows of a grid, or of heads, in the model's own forward."""

    def __init__(self, rows):
        super().__init__()
        self.patches, self.qkv, self.rows = nn.Conv2d(3, D, P, P), nn.Linear(D, 3 * D), rows

    def forward(self, images):
        x = self.qkv(self.patches(images).movedim(1, -1))  # (B, 3, 4, 3 D)
        if not self.rows:
            x = x.flatten(1, 2).unflatten(2, (H, -1)).transpose(1, 2)
        return F.scaled_dot_product_attention(*x.chunk(3, -1)).flatten(1)


def test_rows_of_a_grid_are_no_heads():
    images = torch.randn(B, 3, *SIZE)
    assert attention_maps(Windows(rows=False).eval(), images).shape == (1, B, H, N, N)
    with pytest.raises(ValueError, match="heads that are windows or groups"):
        attention_maps(Windows(rows=True).eval(), images)


class Core(nn.Module):
    """Attention of queries, keys and values, without parameters or with a temperature."""

    def __init__(self, learns):
        super().__init__()
        self.heat = nn.Parameter(torch.ones(1)) if learns else 1.0

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q * self.heat, k, v)


class CoreAttention(Core):
    pass


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("kind", [Core, CoreAttention])
def test_a_core_that_is_given_heads_is_read(kind, learns):
    core = Other(None)
    core.mix = kind(learns)
    model, x = stack(plain(), core, plain()), tokens()
    q, k, _ = core.heads(model[1].norm(model[0](x)))
    scores = q * core.mix.heat @ k.mT / math.sqrt(D // H)
    assert_close(attention_maps(model, x)[1], scores.softmax(-1))


class Flat(nn.Module):
    """Layers that the model itself calls, with no module round them; it has maps of its own."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, D, P, P)
        self.blocks = nn.ModuleList([Open(), Open()])

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        for block in self.blocks:
            q, k, v = block.heads(x)
            x = x + block.proj(attend(q, k, v).transpose(1, 2).flatten(2))
        return x

    def attention_weights(self, images):
        return [images, images]


def test_layers_that_a_model_itself_calls_are_its_layers():
    model, images = all_random(Flat()).eval(), torch.randn(B, 3, *SIZE)
    q, k, _ = model.blocks[0].heads(model.patches(images).flatten(2).mT)
    maps = attention_maps(model, images)
    assert len(maps) == 2
    assert_close(maps[0], soft(q, k))


class Unseen(nn.Module):
    """Attention in a ``__call__`` of its own."""

    def __init__(self):
        super().__init__()
        self.attention = Other(sigmoid)

    def __call__(self, x):
        return self.attention.forward(x)


def test_a_class_whose_call_hides_it_is_named():
    hidden = stack(plain(), Unseen())
    hidden[1].layer.__class__ = type("UnseenAttention", (Unseen,), {})
    with pytest.raises(ValueError, match=r"'1.layer': its class has a __call__ of its own"):
        attention_maps(hidden, tokens())


def in_place_of(q, k, v):
    return torch.matmul(soft(q, k), v, out=torch.empty_like(v))


def test_a_product_with_out_is_read():
    model = stack(plain(), Other(in_place_of), plain())
    assert attention_maps(model, tokens()).shape == (3, B, H, N, N)


def exponential(q, k):
    return (q @ k.mT / 3).exp()


def divided_later(q, k, v):
    weights = exponential(q, k)
    return weights @ v / weights.sum(-1, keepdim=True)


def each_alone(q, k, v):
    weights = [
        [soft(a, b).flip(0) for a, b in zip(*pair, strict=True)] for pair in zip(q, k, strict=True)
    ]
    return torch.stack(
        [
            torch.stack([w @ x for w, x in zip(*p, strict=True)])
            for p in zip(weights, v, strict=True)
        ]
    )


def added(q, k, v):
    weights, zero = exponential(q, k).flatten(0, 1), torch.zeros_like(v).flatten(0, 1)
    return torch.baddbmm(zero, weights, v.flatten(0, 1)).view_as(v)


def turned_heads(q, k, v):
    return head_by_head(q.roll(1, 1), k.roll(1, 1), v.roll(1, 1)).roll(-1, 1)


def others_but_one(q, k, v):
    return head_by_head(torch.cat([q[:, :1], q[:, 1:] / 2], 1), k, v)


SAYS = {
    "heads that come in another order": (soft, turned_heads),
    "what one head does alone": (soft, others_but_one),
    "exponentials that are divided later": (exponential, divided_later),
    "rows that stand elsewhere, head by head": (soft, each_alone),
    "not what is added": (soft, added),
    "a softmax where nothing is mixed": (soft, lambda q, k, v: v),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_layer_says_is_held_against_what_it_does(name):
    with pytest.raises(ValueError, match=f"'1.layer': {SAID}"):
        attention_maps(stack(plain(), Speaks(*SAYS[name]), plain()), tokens())


def test_what_a_layer_multiplies_in_unequal_parts_is_told_as_such():
    def in_fives(q, k, v):
        return torch.cat([soft(some, k) @ v for some in q.split(5, 2)], 2)

    with pytest.raises(ValueError, match=r"'1.layer': .*or unequal parts of them"):
        attention_maps(stack(plain(), Speaks(soft, in_fives), plain()), tokens())


def test_what_a_layer_says_of_exponentials_may_be_divided_later():
    maps = attention_maps(stack(plain(), Speaks(soft, divided_later), plain()), tokens())
    assert_close(maps.sum(-1), torch.ones(3, B, H, N).double())


def head_by_head(q, k, v):
    parts = zip(exponential(q, k).unbind(1), v.unbind(1), strict=True)
    return torch.stack([w / w.sum(-1, keepdim=True) @ x for w, x in parts], 1)


def one_by_one(q, k, v):
    parts = zip(exponential(q, k).flatten(0, 1), v.flatten(0, 1), strict=True)
    return torch.stack([w @ x / w.sum(-1, keepdim=True) for w, x in parts]).view_as(v)


def in_fours(q, k, v):
    return torch.cat([soft(some, k) @ v for some in q.split(4, 2)], 2)


def image_by_image(q, k, v):
    return torch.cat(
        [soft(*qk) @ x for *qk, x in zip(*(x.split(1) for x in (q, k, v)), strict=True)]
    )


@pytest.mark.parametrize("mix", [head_by_head, one_by_one, in_fours, image_by_image, in_vmap])
def test_what_a_layer_says_may_be_multiplied_part_by_part(mix):
    model, x = stack(plain(), Speaks(soft, mix), plain()), tokens()
    q, k, _ = model[1].layer.heads(model[1].norm(model[0](x)))
    assert_close(attention_maps(model, x)[1], soft(q, k))


def test_what_a_layer_says_may_be_what_its_forward_kept():
    class Keeps(Open):
        def forward(self, x):
            q, k, v = self.heads(x)
            self.kept = exponential(q, k) / exponential(q, k).sum(-1, keepdim=True)
            return self.proj((self.kept @ v).transpose(1, 2).flatten(2))

        def attention_weights(self, x):
            return self.kept

    model, x = stack(Keeps(), Keeps()), tokens()
    maps = attention_maps(model, x)
    model(x)
    assert_close(maps, torch.stack([block.layer.kept for block in model]))


def kernel(q, k, v):
    q, k = q.exp(), k.exp()
    return q @ (k.mT @ v) / (q @ k.sum(-2, keepdim=True).mT)


def kernel_weights(q, k):
    weights = q.exp() @ k.exp().mT
    return weights / weights.sum(-1, keepdim=True)


@pytest.mark.parametrize(("say", "mix"), [(soft, pointwise), (kernel_weights, kernel)])
def test_what_a_layer_says_and_gives_in_a_way_of_its_own_is_tested_by_its_sums(say, mix):
    model = stack(plain(), Speaks(say, mix), plain())
    q, k, _ = model[1].layer.heads(model[1].norm(model[0](x := tokens())))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(attention_maps(model, x)[1], say(q, k))


def test_what_a_layer_says_and_nothing_can_test_is_refused():
    class Grid(Speaks):
        def forward(self, x):
            return super().forward(x.flatten(1, 2)).view(x.shape)

        def attention_weights(self, x):
            return super().attention_weights(x.flatten(1, 2))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Grid(soft, pointwise)

        def forward(self, x):
            return x + self.layer(x)

    for model, x in (
        (all_random(Model()).eval(), torch.randn(B, 3, 4, D)),
        (stack(plain(), Speaks(soft, pointwise), plain()).half(), tokens().half()),
        (stack(plain(), Speaks(soft, pointwise), plain()), torch.randn(B, 2, D).double()),
    ):
        told = "layer': what attention_weights says was not seen to be multiplied"
        with pytest.raises(ValueError, match=f"{told}.*verify=False does not ask"):
            attention_maps(model, x)
        with pytest.warns(UserWarning, match=told), record_attention(model):
            model(x)


def test_a_forward_put_on_a_class_makes_what_it_says_nobodys(monkeypatch):
    class Patched(MultiHeadSelfAttention):
        pass

    def mean(self, x, mask=None):
        return self.proj(x.mean(1, keepdim=True).expand_as(x))

    model = stack(plain(), Patched(embed_dim=D, num_heads=H), plain())
    expected, fused = attention_maps(model, tokens()), MultiHeadSelfAttention.forward
    with monkeypatch.context() as patch:
        patch.setattr(MultiHeadSelfAttention, "forward", mean)
        with pytest.raises(
            ValueError, match=f"'1.layer' {MOVES}|'1.layer': its attention_weights is passed over"
        ):
            attention_maps(model, tokens())
    monkeypatch.setattr(MultiHeadSelfAttention, "forward", lambda *args: fused(*args))
    assert attention_maps(model, tokens()).shape == expected.shape


def test_a_forward_put_on_one_layer_makes_what_it_says_nobodys():
    patched = MultiHeadSelfAttention(embed_dim=D, num_heads=H)
    patched.forward = lambda x, mask=None: patched.proj(x.mean(1, keepdim=True).expand_as(x))
    with pytest.raises(
        ValueError, match=f"'1' {MOVES}|'1.layer': its attention_weights is passed over"
    ):
        attention_maps(stack(plain(), patched, plain()), tokens())
    fused = MultiHeadSelfAttention(embed_dim=D, num_heads=H)
    model, x = stack(plain(), fused, plain()), tokens()
    expected = attention_maps(model, x)
    fused.forward = lambda x, mask=None, forward=fused.forward: forward(x, mask)
    assert_close(attention_maps(model, x), expected)


class Remembers(Open):
    """Attention that keeps the map of its first call."""

    def __init__(self):
        super().__init__(lambda layer, w: layer.used[0][: len(w)] if layer.used else w)


def heads_attend(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (B, N, h, d)
    return attend(q, k, v).transpose(1, 2)


def test_a_reason_that_cannot_be_told_from_others_stands_among_them():
    images = torch.randn(1, D, 3, 4).double()
    model = nn.Sequential(nn.Flatten(2), Turn(), stack(plain(), Remembers(), plain()))
    with pytest.raises(ValueError, match=r"'2.1.layer' shows its map in some runs on the same"):
        attention_maps(model, images)
    last = [torch.zeros(1, N, D).double()]

    def before(x):
        last.append(x)
        return last[-2]

    model = nn.Sequential(nn.Flatten(2), Turn(), stack(plain(), Parts(before), plain()))
    with pytest.raises(ValueError, match="or keeps something from one run for the next"):
        attention_maps(model, images)
    with pytest.raises(ValueError, match="are not of its 12 tokens: channels attend, or heads"):
        attention_maps(stack(plain(), Other(heads_attend), plain()), tokens())


def test_windows_of_one_image_are_not_said_to_be_images():
    class Cut(nn.Module):
        def forward(self, x):  # (B, D, 4, 4) -> windows (4 B, 2, 2, D)
            return x.movedim(1, -1).unfold(1, 2, 2).unfold(2, 2, 2).flatten(0, 2).movedim(1, -1)

    class Window(nn.Linear):
        def forward(self, x):
            x = super().forward(x.flatten(1, 2)).unflatten(-1, (3, H, D // H))
            return attend(*x.permute(2, 0, 3, 1, 4).flatten(1, 2))

    model = nn.Sequential(Cut(), Window(D, 3 * D))
    for count, said in ((1, "heads, and perhaps windows or groups, share"), (2, "if no windows")):
        with pytest.raises(ValueError, match=said):
            attention_maps(model, torch.randn(count, D, 4, 4))


@pytest.mark.parametrize("mix", [twice, two_hops], ids=lambda mix: mix.__name__)
def test_a_softmax_that_is_multiplied_twice_is_seen_twice(mix):
    with pytest.raises(ValueError, match=r"'1.layer', '1.layer#2': it attends more than once"):
        attention_maps(stack(plain(), Other(mix), plain()), tokens())


def test_what_torch_export_made_is_refused_in_a_sentence():
    model = stack(plain(), plain())
    exported = torch.export.export(model, (tokens(),)).module()
    with pytest.raises(ValueError, match="give the model that was exported"):
        attention_maps(exported, tokens())
    told = "it runs unseen: give the model that was exported"
    with pytest.raises(ValueError, match=told), record_attention(exported):
        exported(tokens())


class Reused(nn.Module):
    """A layer for all tokens, and once more for a part of them."""

    def __init__(self):
        super().__init__()
        self.layer = Block(Open())

    def forward(self, x):
        x = self.layer(x)
        return torch.cat([self.layer(x[:, :4]), x[:, 4:]], 1)


def test_a_layer_that_is_called_again_with_other_tokens_can_be_named_alone():
    model = all_random(Reused()).double()
    with pytest.raises(ValueError, match=r"layers='layer\.layer'"):
        attention_maps(model, tokens())
    assert attention_maps(model, tokens(), layers="layer.layer").shape == (1, B, H, N, N)


def test_no_images_and_layers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="at least one, got the shape"):
        attention_maps(stack(plain()), tokens()[:0])
    with pytest.raises(TypeError, match="a pattern or several, got 0"):
        attention_maps(stack(plain()), tokens(), layers=0)
    for layers in ([0, 1], b"0.layer"):
        with pytest.raises(
            ValueError, match=f"as text, got {re.escape(repr(layers))}; .*'0.layer'"
        ):
            attention_maps(stack(plain()), tokens(), layers=layers)


class Named(nn.ModuleDict):
    def forward(self, x):
        for layer in self.values():
            x = layer(x)
        return x


def test_signs_in_the_names_of_modules_are_no_signs_of_ours():
    blocks = [Block(plain()) for _ in range(3)]
    model = Named({"a": blocks[0], "a#2": blocks[1], "[b]": blocks[2]})
    model = all_random(nn.Sequential(model, blocks[0])).eval().double()
    names = ["0.a.layer", "0.a#2.layer", "0.[b].layer", "0.a.layer#2"]
    with record_attention(model) as maps:
        model(x := tokens())
    assert list(maps) == names
    assert_close(attention_maps(model, x), torch.stack([*maps.values()]))
    assert_close(attention_maps(model, x, layers=names[2]), maps[names[2]][None])
    same = Named({"a": plain()})
    layer = same["a"]
    same["a#2"], same["b"] = plain(), layer
    with record_attention(all_random(same).double()) as maps:
        same(x)
    assert list(maps) == ["a", "a#2", "a#2#"]


def test_a_property_that_raises_is_no_method():
    class Later(Open):
        @property
        def attention_weights(self):
            raise RuntimeError("run forward first")

    model = stack(Later(), plain())
    assert_close(attention_maps(model, tokens())[0], model[0].layer.used[0])


# --- models --------------------------------------------------------------------------------------

TINY = {"patch_size": P, "embed_dim": D, "depth": 2, "num_heads": H, "num_classes": 5}


def timm_model(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = timm.create_model(name, **({"img_size": SIZE} | TINY | options))
    return all_random(model).eval()


def head_off(model):
    """A head is switched off in a hook, through a view."""
    for block in model.blocks:
        block.attn.fused_attn = False
    model.blocks[1].attn.attn_drop.register_forward_hook(
        lambda _, args, out: out[:, 0].zero_()[:0].sum() * 0 + out
    )
    return model


def test_a_head_that_a_hook_switches_off_through_a_view_is_named():
    model = head_off(timm_model("vit_tiny_patch16_224"))
    with pytest.raises(ValueError, match=f"'blocks.1.attn': {CHANGED}"):
        attention_maps(model, torch.randn(B, 3, *SIZE))


class Tokens(nn.Module):
    """A ViT whose tokens are arranged by a function of the patches (B, N, D) and four others."""

    def __init__(self, arrange, num_prefix=4, stem=None):
        super().__init__()
        self.patches = stem or nn.Conv2d(3, D, P, P)
        self.registers = nn.Parameter(torch.randn(1, 4, D))
        self.blocks = nn.Sequential(Block(Open()), Block(Open()))
        self.num_prefix, self.arrange = num_prefix, arrange

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        return self.blocks(self.arrange(x, self.registers.expand(len(x), -1, -1)))


def in_units(x, others):
    """Hiera's order: the patches of a unit of 2 x 2 stand side by side."""
    x = x.unflatten(1, (3, 4))[:, :2].unflatten(2, (2, 2)).unflatten(1, (1, 2))
    return torch.cat([others, x.permute(0, 1, 3, 2, 4, 5).flatten(1, 4)], 1)


def swapped(x, others):
    order = torch.arange(12)
    order[[5, 6]] = torch.tensor([6, 5])
    return torch.cat([others, x[:, order]], 1)


ARRANGED = {
    "registers before": (lambda x, r: torch.cat([r, x], 1), None),
    "registers behind": (lambda x, r: torch.cat([x, r], 1), r"patch 0 \(row by row\) is token 0"),
    "registers on both sides": (
        lambda x, r: torch.cat([r[:, :2], x, r[:, 2:]], 1),
        r"patch 0 \(row by row\) is token 2",
    ),
    "two patches swapped": (swapped, r"patch 5 \(row by row\) is token 10, patch 6"),
    "column by column": (
        lambda x, r: torch.cat([r, x.unflatten(1, (3, 4)).transpose(1, 2).flatten(1, 2)], 1),
        r"patch 1 \(row by row\) is token 7",
    ),
    "backwards": (lambda x, r: torch.cat([r, x.flip(1)], 1), r"patch 0 \(row by row\) is token 15"),
    "shuffled anew": (
        lambda x, r: torch.cat([r, x[:, torch.randperm(12)]], 1),
        "no token follows|is token",
    ),
    "the last patch missing": (
        lambda x, r: torch.cat([r, x[:, :-1], r[:, :1]], 1),
        "no token follows patch 11",
    ),
    "one patch twice": (
        lambda x, r: torch.cat([r, x[:, [0, 1, 2, 3, 4, 4, *range(6, 12)]]], 1),
        "no token follows patch 5",
    ),
    "some patches constant": (
        lambda x, r: torch.cat([r, x[:, :7], 0 * x[:, 7:]], 1),
        "no token follows patch 7",
    ),
    "a token of nothing": (
        lambda x, r: torch.cat([r, x[:, :5], r[:, :1], (x[:, 5:6] + x[:, 6:7]), x[:, 7:]], 1),
        "is token 10|token 9 follows no patch",
    ),
    "mostly the mirror image": (
        lambda x, r: torch.cat([r, x / 4 + x.flip(1)], 1),
        "is token|token .* follows patch",
    ),
    "all alike": (
        lambda x, r: torch.cat([r, x.mean(1, keepdim=True).expand_as(x)], 1),
        "is token|no token",
    ),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_which_tokens_are_patches_and_in_which_order_is_seen_from_the_pixels(name):
    arrange, why = ARRANGED[name]
    model, images = all_random(Tokens(arrange)).eval(), torch.randn(B, 3, *SIZE)
    assert find_num_prefix(model) == 4, "what it says"
    if why is None:
        assert find_num_prefix(model, images) == 4
        return
    with pytest.raises(ValueError, match=why):
        find_num_prefix(model, images)


@pytest.mark.parametrize("seed", range(4))
def test_behind_a_stem_that_overlaps_the_order_is_seen_and_a_shift_by_one_patch_too(seed):
    torch.manual_seed(seed)
    stem = nn.Sequential(nn.Conv2d(3, D, 7, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    images = torch.randn(1, 3, 4 * P, 5 * P)
    for roll in (0, 1, -1, 5, -5):  # patches, 5 in a row
        model = Tokens(lambda x, r: torch.cat([r, x.roll(roll, 1)], 1), stem=stem)  # noqa: B023
        all_random(model).eval()
        if roll == 0:
            assert find_num_prefix(model, images) == 4
            continue
        with pytest.raises(ValueError, match="is token"):
            find_num_prefix(model, images)


def test_an_image_that_a_model_cuts_is_no_grid_of_its_patches():
    cut = nn.Sequential(nn.ZeroPad2d((-4, -4, -4, -4)), nn.Conv2d(3, D, P, P))
    model = all_random(Tokens(lambda x, r: torch.cat([r, x], 1), stem=cut)).eval()
    with pytest.raises(ValueError, match="pixels at the top, half a patch wide: they are cut"):
        find_num_prefix(model, torch.randn(1, 3, 8 + 5 * P, 8 + 5 * P))


class Twice(Tokens):
    """The image and another view of it, one after the other."""

    def __init__(self, view):
        super().__init__(lambda x, r: torch.cat([r, x], 1))
        self.view = view

    def forward(self, images):
        return super().forward(images) + super().forward(self.view(images))


@pytest.mark.parametrize("view", [lambda x: x.flip(-1), lambda x: x.flip(-2), lambda x: x.mT])
def test_all_layers_have_to_see_the_same_patches_not_the_first_alone(view):
    images = torch.randn(1, 3, 3 * P, 3 * P)
    with pytest.raises(ValueError, match=r"other patches than those of 'blocks.0.layer': .*#2'"):
        find_num_prefix(all_random(Twice(view)).eval(), images)
    assert find_num_prefix(all_random(Twice(lambda x: x + 1)).eval(), images) == 4


class Placed(Tokens):
    """Positions are the first argument of each layer."""

    def __init__(self):
        super().__init__(lambda x, r: torch.cat([r, x], 1))
        self.pos = nn.Parameter(torch.zeros(1, 16, D))
        self.blocks = nn.ModuleList([Behind(), Behind()])

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        x = self.arrange(x, self.registers.expand(len(x), -1, -1))
        for block in self.blocks:
            x = x + block(self.pos, x)
        return x


class Behind(Open):
    def forward(self, pos, x):
        return super().forward(x + pos)


def test_tokens_are_found_among_the_arguments_of_a_layer_by_what_moves_them():
    assert find_num_prefix(all_random(Placed()).eval(), torch.randn(1, 3, *SIZE)) == 4


def test_a_model_that_says_nothing_is_tested_with_the_number_that_fits():
    model = all_random(Tokens(lambda x, r: torch.cat([r, x], 1), num_prefix=None)).eval()
    assert find_num_prefix(model, torch.randn(1, 3, *SIZE)) == 4


def test_the_order_is_seen_in_models_of_timm_also_behind_a_stem_that_overlaps():
    images = torch.randn(1, 3, *SIZE)
    for name, number in (
        ("vit_small_patch14_reg4_dinov2", 5),
        ("vit_base_patch16_siglip_gap_224", 0),
    ):
        assert find_num_prefix(timm_model(name), images) == number


def test_patches_that_a_model_drops_by_chance_are_no_map():
    model = stack(plain(), plain())
    model.insert(0, Drops())
    with pytest.raises(ValueError, match="draws at random"):
        attention_maps(model, tokens())


class Once(nn.Module):
    """Fails when other tokens come."""

    def forward(self, x):
        self.first = getattr(self, "first", x)
        if not torch.equal(x[:1], self.first[:1]):
            raise RuntimeError("other tokens")
        return x


def test_a_model_that_fails_with_a_disturbed_token_is_refused_in_a_sentence():
    model = stack(plain(), Once(), plain())
    with pytest.raises(ValueError, match=r"token disturbed \(other tokens\), so that nobody can"):
        attention_maps(model, tokens())
    del model[1].layer.first
    assert attention_maps(model, tokens(), verify=False).shape[0] == 2


class Drops(nn.Module):
    """A random half of the tokens, in evaluation mode, too (MAE)."""

    def forward(self, x):
        return x[:, torch.randperm(x.shape[1])[: x.shape[1] // 2]]


# --- rebuilt -------------------------------------------------------------------------------------


def heads(model):
    model.blocks[1].attn.num_heads, model.blocks[1].attn.head_dim = 2, 16


def activation(model):
    model.blocks[1].mlp.act = nn.ReLU()


def eps(model):
    model.norm.eps = 0.1


def hook(model):
    model.blocks[0].register_forward_hook(lambda _, args, out: out * 1.01)


def scale(model):
    model.blocks[1].attn.fused_attn = False
    model.blocks[1].attn.scale *= 1.5


def low_rank(model):
    class Low(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base, self.a, self.b = base, nn.Linear(D, 2), nn.Linear(2, 3 * D)

        def forward(self, x):
            return self.base(x) + self.b(self.a(x))

    model.blocks[1].attn.qkv = Low(model.blocks[1].attn.qkv)


DIFFERENT = {
    heads: "its blocks differ in num_heads",
    activation: "its MLP has ReLU for GELU",
    eps: "its norms have the eps",
    hook: "on noise, the answers differ by",
    scale: "on noise, the answers differ by",
    low_rank: "a linear layer of its blocks is Low",
}


@pytest.mark.parametrize("change", DIFFERENT, ids=lambda change: change.__name__)
@pytest.mark.parametrize("changes", [{}, {"num_classes": 3, "image_size": 32}])
def test_a_later_block_that_differs_is_found_before_a_model_is_called_rebuilt(change, changes):
    model = timm_model("vit_tiny_patch16_224")
    rebuild(copy.deepcopy(model), **changes)
    change(model)
    with pytest.raises(ValueError, match=DIFFERENT[change]):
        rebuild(model, **changes)
    if "noise" in DIFFERENT[change]:
        rebuild(model, verify=False, **changes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_little_of_the_neighbour_is_seen_where_numbers_are_coarse(dtype):
    honest = stack(plain(), Parts(torch.zeros_like), plain()).to(dtype)
    assert attention_maps(honest, tokens().to(dtype)).dtype == dtype
    a_little = stack(plain(), Parts(lambda x: 0.03 * x.roll(1, dims=1)), plain()).to(dtype)
    with pytest.raises(ValueError, match="mixes tokens"):
        attention_maps(a_little, tokens().to(dtype))


class Weights(Open):
    """Weights, given to the module round it; perhaps of one head, without an axis for it."""

    def __init__(self, heads=H, change=lambda weights: weights):
        super().__init__()
        self.change, self.count = change, heads

    def forward(self, x):
        q, k, _ = self.qkv(x).unflatten(-1, (3, self.count, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / 3).softmax(-1)
        self.used.append(weights.detach().clone())
        return self.change(weights if self.count > 1 else weights[:, 0])


class Values(nn.Module):
    def __init__(self, heads=H):
        super().__init__()
        self.value, self.proj, self.count = nn.Linear(D, D), nn.Linear(D, D), heads

    def forward(self, x, weights):
        v = self.value(x)
        if self.count > 1:
            v = v.unflatten(-1, (self.count, -1)).transpose(1, 2)
            return self.proj((weights @ v).transpose(1, 2).flatten(2))
        return self.proj(weights @ v)


class InTwo(nn.Module):
    """What makes the weights, and one or two that multiply with them."""

    def __init__(self, times=1, heads=H, change=lambda weights: weights):
        super().__init__()
        self.weights = Weights(heads, change)
        self.values = nn.ModuleList(Values(heads) for _ in range(times))

    def forward(self, x):
        weights = self.weights(x)
        for values in self.values:
            x = x + values(x, weights)
        return x


class Heated(Open):
    """Its softmax stands in a module that has a learned temperature."""

    def __init__(self):
        super().__init__()
        self.soft = Soft()

    def forward(self, x):
        q, k, v = self.heads(x)
        weights = self.soft(q @ k.mT)
        self.used.append(weights.detach().clone())
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


class Soft(Temper):
    def forward(self, scores):
        return super().forward(scores).softmax(-1)


class BareAttention(nn.Module):
    """Attention without a parameter, given queries, keys and values."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


class RoundBare(Open):
    def __init__(self):
        super().__init__()
        self.attention = BareAttention()

    def forward(self, x):
        q, k, v = self.heads(x)
        weights = (q @ k.mT / math.sqrt(D // H)).exp()
        self.used.append(weights / weights.sum(-1, keepdim=True))
        return self.proj(self.attention(q, k, v).transpose(1, 2).flatten(2))


ELSEWHERE = {
    "multiplied beside": lambda: InTwo(),
    "multiplied twice, in two modules": lambda: InTwo(times=2),
    "of one head": lambda: InTwo(heads=1),
    "a softmax with a parameter": Heated,
    "without a parameter": RoundBare,
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_attention_that_is_made_of_several_modules_is_read(name):
    layers = ELSEWHERE[name](), ELSEWHERE[name]()
    model = stack(*layers)
    maps = attention_maps(model, tokens())
    makers = [getattr(layer, "weights", layer) for layer in layers]
    times = len(maps) // len(layers)
    assert times == (2 if "twice" in name else 1)
    assert_close(maps, torch.stack([m.used[0] for m in makers for _ in range(times)]))
    for mix in (conv, lambda x: x.roll(1, 1)):
        with pytest.raises(ValueError, match=MOVES):
            attention_maps(stack(layers[0], Parts(mix), layers[1]), tokens())


def by_tokens(q, k, v):
    """Other weights, image by image and head by head."""
    pairs = zip(*(x.flatten(0, 1) for x in ((q @ k.mT).sigmoid() / N, v)), strict=True)
    return torch.stack([weights @ values for weights, values in pairs]).view_as(v)


def added_product(q, k, v):
    weights, values = ((x.flatten(0, 1)) for x in ((q @ k.mT).sigmoid() / N, v))
    return torch.baddbmm(torch.zeros_like(values), weights, values).view_as(v)


LIES = {
    "one by one": by_tokens,
    "baddbmm": added_product,
    "nothing is mixed": lambda q, k, v: v,
    "a running sum": lambda q, k, v: v.cumsum(2),
    "its neighbours": lambda q, k, v: (v + v.roll(1, 2)) / 2,
    "a mean": lambda q, k, v: v.mean(2, keepdim=True).expand_as(v),
    "other weights, by hand": lambda q, k, v: pointwise(k, q, v),
    "linear attention": kernel,
}


@pytest.mark.parametrize("name", LIES)
def test_what_a_layer_says_and_does_not_do_is_refused(name):
    model = stack(plain(), SaysOther(LIES[name]), plain())
    for mode in (model, model.float()):
        with pytest.raises(ValueError, match=f"'1.layer'.*{SAID}"):
            attention_maps(mode, tokens().to(mode[0].norm.weight))


@pytest.mark.filterwarnings("ignore:.*torch.ao:DeprecationWarning")
def test_linear_layers_that_round_all_tokens_by_the_largest_one_are_no_mixing():
    def rounded(*layers):
        model = nn.Sequential(*map(Block, layers)).eval()
        return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, torch.qint8)

    model, x = rounded(plain(), plain()), tokens()[:1].float()
    maps = attention_maps(model, x)
    assert_close(maps, torch.stack([block.layer.used[0] for block in model]))
    with pytest.raises(ValueError, match=MOVES):
        attention_maps(rounded(plain(), Parts(lambda x: 0.05 * x.roll(1, 1)), plain()), x)
    with pytest.raises(ValueError, match=THROWN):
        attention_maps(rounded(plain(), Open(after=lambda out, v: v), plain()), x)


@pytest.mark.parametrize("change", [lambda w: w.tril(), lambda w: w * 0.5, lambda w: w.roll(1, 1)])
def test_weights_that_change_on_the_way_to_another_module_are_doubted_where_they_are_made(change):
    model = stack(plain(), InTwo(change=change), plain())
    with pytest.raises(ValueError, match=f"'1.layer.weights'.*{CHANGED}"):
        attention_maps(model, tokens())
    model[1].layer.weights.change = lambda weights: weights
    forward = model[1].layer.values[0].forward
    model[1].layer.values[0].forward = lambda x, weights: forward(x, change(weights))
    with pytest.raises(ValueError, match=f"'1.layer.weights'.*{CHANGED}"):
        attention_maps(model, tokens())


def test_numbers_that_are_none_and_values_that_are_zero_are_said_to_be_so():
    model, x = stack(plain(), plain()), tokens()
    with pytest.raises(ValueError, match=r"'0\.layer', '1\.layer': its map holds nan"):
        attention_maps(model, x.index_fill(1, torch.tensor(3), math.nan), verify=False)
    model[1].layer.qkv.weight.data[2 * D :] = model[1].layer.qkv.bias.data[2 * D :] = 0
    with pytest.raises(ValueError, match=f"'1.layer' {NOTHING}"):
        attention_maps(model, x)


def test_a_softmax_among_complex_numbers_is_read():
    def turned(q, k, v):
        return (soft(q, k) + 0j) @ torch.complex(v, v.flip(-1))

    model = stack(plain(), Other(lambda q, k, v: turned(q, k, v).real), plain())
    q, k, _ = model[1].layer.heads(model[1].norm(model[0](x := tokens())))
    assert_close(attention_maps(model, x)[1], soft(q, k))
    model[1].layer.mix = lambda q, k, v: turned(q, k, v.roll(1, 2)).real
    with pytest.raises(ValueError, match=MIXED):
        attention_maps(model, x)


def test_tokens_that_lie_on_the_last_axis_are_named():
    class Last(Open):
        def forward(self, x):
            return super().forward(x.mT).mT

    class Model(nn.Sequential):
        def forward(self, x):
            return super().forward(x.mT)

    model = all_random(Model(Last(), Last())).eval().double()
    with pytest.raises(ValueError, match=r"or of tokens given as \(B, D, N\)"):
        attention_maps(model, tokens())


@pytest.mark.parametrize("where", [0, 1, 2])
def test_what_mixes_the_tokens_of_one_image_alone_is_seen_whichever_it_is(where):
    def bright(x):
        return torch.where(x.mean((1, 2), keepdim=True) > 4, 0.1 * x.roll(2, 1), 0 * x)

    model = nn.Sequential(Block(plain()), Parts(bright), Block(plain()))
    model, x = all_random(model).eval().double(), torch.randn(3, N, D).double()
    assert attention_maps(model, x).shape == (2, 3, H, N, N)
    x[where] += 9
    with pytest.raises(ValueError, match=MOVES):
        attention_maps(model, x)


def one_key(scores, product):
    """All heads ask the same keys, in an order of axes."""

    def mix(q, k, v):
        weights = torch.einsum(f"bhid,bjd->{scores}", q, k[:, 0]).softmax(-1)
        return torch.einsum(f"{scores},bjd->{product}", weights, v[:, 0])

    return mix


def broadcast(q, k, v):
    return ((q.transpose(1, 2) @ k[:, :1].mT).softmax(-1) @ v[:, :1]).transpose(1, 2)


def of_heads(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)


def as_sums(q, k, _):
    weights = (q @ k[:, :1].mT).exp()
    return weights / weights.sum(-1, keepdim=True)


SHARED = {
    "queries first": one_key("bihj", "bhid"),
    "heads first": one_key("bhij", "bhid"),
    "queries before the images": one_key("ibhj", "bhid"),
    "a product that repeats the values": broadcast,
}


@pytest.mark.parametrize("images", [1, B, H])
@pytest.mark.parametrize("name", SHARED)
def test_as_many_heads_as_tokens_are_told_apart_by_what_a_token_moves(name, images):
    model, x = stack(Other(SHARED[name]), Other(SHARED[name])), torch.randn(images, H, D).double()
    given = x, model[0](x)
    heads = [block.layer.heads(block.norm(x)) for block, x in zip(model, given, strict=True)]
    expected = torch.stack([as_sums(*qkv) for qkv in heads])
    assert_close(attention_maps(model, x), expected)
    assert_close(attention_maps(model, x, verify=False), expected)
    with record_attention(model) as maps:
        model(x)
    assert_close(torch.stack(list(maps.values())), expected)


def test_heads_that_attend_are_named_where_they_are_as_many_as_the_tokens():
    model, x = stack(Other(of_heads), Other(of_heads)), torch.randn(B, H, D).double()
    with pytest.raises(ValueError, match="as many heads as tokens, and its heads attend"):
        attention_maps(model, x)
    with pytest.warns(UserWarning, match="as many heads as tokens, and its heads attend"):  # noqa: SIM117
        with record_attention(model):
            model(x)


def test_which_axis_is_that_of_heads_is_said_to_be_open_where_a_layer_cannot_run_alone():
    class Keyword(Block):
        def forward(self, x):
            return x + self.layer(x=self.norm(x))

    mix = SHARED["queries first"]
    model = all_random(nn.Sequential(Keyword(Other(mix)), Block(Other(mix)))).eval().double()
    with pytest.raises(ValueError, match=r"'0\.layer'.*open which axis"):
        attention_maps(model, torch.randn(B, H, D).double())


def test_channels_first_and_as_many_as_tokens_are_given_as_the_other_reason():
    class Turned(Open):
        def forward(self, x):
            return super().forward(x.mT).mT

    def forward(model, x):
        x = F.pad(x, (0, 0, 0, D - N)) + model.more
        for layer in model.turned:
            x = x + layer(x.mT).mT
        return x

    model = Root(forward)
    model.more = nn.Parameter(torch.randn(1, D, D))
    model.turned = nn.ModuleList(Turned() for _ in range(2))
    with pytest.raises(ValueError, match=r"or it is given channels first, \(B, D, N\)"):
        attention_maps(all_random(model).eval(), torch.randn(B, 3, *SIZE))


def test_a_block_that_writes_into_its_argument_is_told_so():
    class Writes(Block):
        def forward(self, x):
            x += self.layer(self.norm(x))

    def forward(model, x):
        x = x.contiguous()
        for block in model.writes:
            block(x)
        return x

    model = Root(forward)
    model.writes = nn.ModuleList(Writes(Open()) for _ in range(2))
    with pytest.raises(ValueError, match=r"'writes.0' gives nothing, and changes what it is given"):
        attention_maps(all_random(model).eval(), torch.randn(B, 3, *SIZE))


def test_keys_may_have_a_width_of_their_own():
    def forward(model, x):
        for layer in model.layers:
            x = x + layer(x, x, x)[0]
        return model.pool(model.new[..., : D // 2].expand(len(x), -1, -1), x, x)[0]

    model = Root(forward)
    model.pool = nn.MultiheadAttention(D // 2, H, kdim=D, vdim=D, batch_first=True)
    images = torch.randn(B, 3, *SIZE)
    with pytest.raises(ValueError, match=r"'pool': 4 queries ask 12 keys .*layers='layers.\*'"):
        attention_maps(all_random(model).eval(), images)
    assert attention_maps(model, images, layers="layers.*").shape == (2, B, H, N, N)
