"""What chapter 3 shows: three spellings of one product timed, and the memory of fused attention.

Times are ratios to `torch.bmm`, taken in turn within one process. Memory is the peak that one
attention call adds to a process of its own (Linux: VmHWM, after a reset). About 2 minutes.
"""

import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from experiments.machinery.experiment import Experiment, Outcome, checksum
from vitbook.attention import scaled_dot_product_attention

SHAPES = ["1x4x8", "8x16x16", "16x64x32", "32x196x64"]  # B, N, d
LENGTHS = [512, 1024, 2048, 4096]
HEADS, HEAD_DIM = 2, 16
ROUNDS = 60

SPELLINGS = {
    "matmul": lambda q, k: q @ k.transpose(1, 2),
    "einsum": lambda q, k: torch.einsum("bid,bjd->bij", q, k),
}
WAYS = {
    "explicit": lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
    "fused": F.scaled_dot_product_attention,
}


def by_bmm(q, k):
    return torch.bmm(q, k.transpose(1, 2))


def seconds(call, q, k, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        call(q, k)
    return time.perf_counter() - start


def ratios_to_bmm(shape, seed, rounds):
    """Median over the rounds of time(spelling) / time(bmm); each round times all in turn."""
    generator = torch.Generator().manual_seed(seed)
    size = [int(number) for number in shape.split("x")]
    q, k = torch.randn(*size, generator=generator), torch.randn(*size, generator=generator)
    repeats = max(3, round(5e-3 / (seconds(by_bmm, q, k, 20) / 20)))  # about 5 ms a measurement
    calls = {"bmm": by_bmm, **SPELLINGS}
    ratios = {name: [] for name in SPELLINGS}
    for number in range(rounds):
        order = list(calls)[:: 1 if number % 2 else -1]
        took = {name: seconds(calls[name], q, k, repeats) for name in order}
        for name in SPELLINGS:
            ratios[name].append(took[name] / took["bmm"])
    return {f"{name}_to_bmm": statistics.median(values) for name, values in ratios.items()}


def peak_mib(way, seed):
    """MiB that one attention call adds to this process at its peak, for each length."""
    torch.manual_seed(seed)
    call = WAYS[way]
    call(*(torch.randn(1, HEADS, 8, HEAD_DIM) for _ in range(3)))  # load what is loaded once
    peaks = []
    for tokens in LENGTHS:
        q, k, v = (torch.randn(1, HEADS, tokens, HEAD_DIM) for _ in range(3))
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = status_kib("VmRSS")
        call(q, k, v)
        peaks.append(max(status_kib("VmHWM") - before, 4) / 1024)  # one page is the least to see
    return peaks


def status_kib(entry):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(entry))


def run(condition, seed, log, scale):
    if "shape" in condition:
        return Outcome(ratios_to_bmm(condition["shape"], seed, max(3, round(ROUNDS * scale))))
    return Outcome({"peak_mib": peak_mib(condition["way"], seed)})


EXPERIMENT = Experiment(
    what="The time of matmul and einsum as a multiple of bmm's, and the peak memory of explicit "
    "and fused attention.",
    chosen_on="Nothing was chosen; every shape that was measured is shown.",
    metrics={
        "matmul_to_bmm": "time of matmul over the time of bmm, median of interleaved rounds",
        "einsum_to_bmm": "time of einsum over the time of bmm, median of interleaved rounds",
        "peak_mib": "peak memory that one attention call adds to its process, MiB, by length",
    },
    conditions=[{"shape": s} for s in SHAPES] + [{"way": way} for way in WAYS],
    seeds=range(5),
    run=run,
    data=lambda: {"none": checksum(torch.tensor(SHAPES and LENGTHS))},
    settings={"lengths": LENGTHS, "heads": HEADS, "head_dim": HEAD_DIM, "rounds": ROUNDS},
    workers=1,
)
