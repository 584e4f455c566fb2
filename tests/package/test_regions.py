"""Attention by region: distances and shares, held against hands and loops.

L = 2, B = 2, h = 3, a grid of 2 x 3 patches and one class token.
"""

import torch
from torch.testing import assert_close

from vitbook.inspection import mean_attention_distance, query_distance, region_attention

L, B, H, GRID, N = 2, 2, 3, (2, 3), 7


def random_maps(*shape):
    return torch.randn(*(shape or (L, B, H, N, N))).softmax(dim=-1)


def patches(*indices, n=6):
    return torch.zeros(n, dtype=torch.bool).index_fill(0, torch.tensor(indices), True)[None]


def test_three_patches_in_a_row_by_hand():
    weights = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    got = query_distance(weights[None, None, None], (1, 3), 4, num_prefix=0)
    assert_close(got[0, 0, 0], torch.tensor([0.0, 2.0, 3.0]))


def test_the_mean_over_the_queries_is_the_mean_attention_distance():
    maps = random_maps()
    got = query_distance(maps, GRID, (5, 7))
    assert got.shape == (L, B, H, 6)
    assert_close(got.mean(dim=-1), mean_attention_distance(maps, GRID, (5, 7)))


def test_a_patch_that_looks_at_no_patch_has_no_distance():
    maps = torch.zeros(1, 1, 1, N, N)
    maps[..., 0] = 1
    assert query_distance(maps, GRID, 4).isnan().all()


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


def test_even_attention_gives_the_share_of_the_keys_and_no_query_gives_nan():
    maps = torch.full((L, B, H, N, N), 1 / N)
    keys = patches(0, 3).expand(B, 6)
    assert_close(region_attention(maps, ~keys, keys), torch.full((L, B, H), 2 / 6))
    none = torch.zeros(B, 6, dtype=torch.bool)
    assert region_attention(maps, none, keys).isnan().all()


MAPS = torch.full((L, B, H, N, N), 1 / N)
SOME = patches(0).expand(B, 6)
BAD_INPUT = [
    (lambda: query_distance(MAPS, 3, 4), ValueError, "N = 7"),
    (lambda: query_distance(MAPS, GRID, 0), ValueError, "patch_size"),
    (lambda: region_attention(MAPS[0], SOME, SOME), ValueError, "(L, B, h, N, N)"),
    (lambda: region_attention(MAPS, SOME.long(), SOME), TypeError, "queries must be"),
    (lambda: region_attention(MAPS, SOME, SOME[:1]), ValueError, "keys must have"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
