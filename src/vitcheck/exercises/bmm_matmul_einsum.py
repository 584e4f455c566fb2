"""Checks: shared keys by einsum, a strict product, a table of times."""

from functools import partial

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _multi_query(q, k, v, scale=lambda d: d**0.5, softmax=lambda scores: scores.softmax(-1)):
    scores = torch.einsum("bhqd,bkd->bhqk", q, k) / scale(q.shape[-1])
    return torch.einsum("bhqk,bkd->bhqd", softmax(scores), v)


@staged(
    "multi-query attention",
    ok="the output is right, and no head got a copy of its own.",
    right=_multi_query,
    mistakes={
        "did you scale by the square root of the head dimension?": partial(
            _multi_query, scale=lambda d: 1
        ),
        "did you divide by d instead of its square root?": partial(_multi_query, scale=lambda d: d),
        "where is the softmax?": partial(_multi_query, softmax=lambda scores: scores),
        "along which axis must the weights sum to one?": partial(
            _multi_query, softmax=lambda scores: scores.softmax(-2)
        ),
        "what is averaged: the keys or the values?": lambda q, k, v: _multi_query(q, k, k),
    },
)
def check_einsum_attention(trial: Trial, attend):
    """Multi-query attention: q (B, h, N_q, d), shared k and v (B, N_k, d) -> (B, h, N_q, d).

    No operator may give the keys or the values h times, in memory of its own.
    """
    trial.stage("shape")
    B, h, Nq, Nk, d = 2, 3, 4, 6, 5
    q, k, v = trial.randn(B, h, Nq, d), trial.randn(B, Nk, d), trial.randn(B, Nk, d)
    with _FindCopies(h, keys=k, values=v) as copies:
        got = trial.tensor(attend(q, k, v), (B, h, Nq, d))
    trial.stage("values")
    otherwise = "the output differs from F.scaled_dot_product_attention's"
    trial.compare(got, q, k, v, otherwise=otherwise)
    trial.stage("one head")
    single = trial.randn(B, 1, Nq, d)
    want = F.scaled_dot_product_attention(single, k[:, None], v[:, None])
    trial.close(attend(single, k, v), want, "does it also work with a single head?")
    trial.stage("copies")
    trial.ask(
        not copies.found,
        f"the output is right, but {' and '.join(copies.found)}. Which spelling of a product needs "
        "no letter, and so no axis, for the head?",
    )


class _FindCopies(TorchDispatchMode):
    """While active: which of some tensors an operator repeats ``times`` times in new memory."""

    def __init__(self, times: int, **tensors):
        super().__init__()
        self.found: list[str] = []
        self.own = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
        self.repeated = {
            name: tensor.double().flatten().repeat(times).sort().values
            for name, tensor in tensors.items()
        }

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        for name, copied in self.repeated.items():
            if (
                isinstance(result, torch.Tensor)
                and result.numel() == len(copied)
                and result.untyped_storage().data_ptr() not in self.own
                and torch.allclose(result.double().flatten().sort().values, copied)
            ):
                says = f"the {name} are copied for each head by {operator.__name__.split('.')[0]}"
                self.found += [] if any(f"the {name}" in found for found in self.found) else [says]
        return result


@staged("strict_matmul", ok="it multiplies like matmul and refuses every silent broadcast.")
def check_strict_matmul(trial: Trial, multiply):
    """Like matmul on equal leading axes; ValueError wherever matmul would broadcast."""
    for left, right in [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 6, 3, 4), (2, 6, 4, 5))]:
        trial.stage(f"{left} times {right}")
        a, b = trial.randn(*left), trial.randn(*right)
        trial.close(multiply(a, b), a @ b, "equal leading axes: multiply like matmul")
    missing, one = "an axis is missing on one side", "an axis of length 1 would be repeated"
    vector = "a vector has no two axes to multiply"
    for left, right, what in [
        ((2, 3, 4), (4, 5), missing),
        ((3, 4), (2, 4, 5), missing),
        ((2, 3, 4), (1, 4, 5), one),
        ((1, 3, 4), (2, 4, 5), one),
        ((4, 4, 3, 4), (4, 4, 5), missing),
        ((2, 3, 4), (4,), vector),
    ]:
        trial.stage(f"{left} times {right}")
        try:
            multiply(trial.randn(*left), trial.randn(*right))
        except ValueError:
            continue
        except RuntimeError as error:
            trial.fail(f"{what}: raise a ValueError (matmul's own error says: {error})")
        trial.fail(f"{what}; matmul says nothing, so your function has to")


_STATEMENTS = {
    "the fused kernel is faster here at 4,096 tokens": (
        YES,
        "explicit over fused: what would 1 mean, and does the interval hold it?",
    ),
    "the fused kernel is slower here at 128 tokens": (
        OPEN,
        "which factors are possible within the interval?",
    ),
    "at 1,024 tokens explicit takes twice as long or longer": (
        NO,
        "what is the largest factor that the interval allows?",
    ),
    "explicit memory grows about with the square of N here": (
        YES,
        "N grows by 4; by how much does the memory grow?",
    ),
    "the fused kernel makes fewer multiplications": (
        OPEN,
        "is there a column in which multiplications were counted?",
    ),
    "the written-out map is why explicit is slower here": (
        OPEN,
        "slower and larger at the same time: was one changed without the other?",
    ),
}


check_times = reading("you took from times and bytes what they say, and no reason", _STATEMENTS)
