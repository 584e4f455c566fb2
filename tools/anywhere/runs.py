"""Which runs a page is put to, and which of them this machine can make."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SETS = {  # the switches of ATen, MKL and oneDNN; they count when torch is imported
    "default": ("default", "SSE4_2", "SSE41"),
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512", "AVX512_CORE"),
}
DRAWS = [f"draw-{k}" for k in range(1, 11)]
OLDER = "torch-2.11"  # what Colab has; the environment of tools/colab_standin.py
DIED = "the process died"
RUNS = [*SETS, *DRAWS, "drawn-1", OLDER]


def missing_here(runs: list[str]) -> dict[str, str]:
    """The runs that this machine cannot make, with the reason."""
    reasons = {}
    sets = list(SETS)
    for run in runs:
        if run in SETS and sets.index(run) > sets.index(capability()):
            reasons[run] = f"this processor has {capability()} at most"
        if run == OLDER and not older_python().is_file():
            reasons[run] = "no environment with torch 2.11: python -m tools.anywhere.older"
    return reasons


@cache
def capability() -> str:
    """The largest instruction set that torch uses on this processor."""
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    env = {key: text for key, text in os.environ.items() if key != "ATEN_CPU_CAPABILITY"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    name = done.stdout.strip().lower()
    return name if name in SETS else "default"


def older_python() -> Path:
    return ROOT / ".venv-older" / "bin" / "python"


def environment_of(run: str) -> dict[str, str]:
    """What a process of this run sees: one thread, no GPU, which noise does not reach, and the
    switches of its set."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    env |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    env["CUDA_VISIBLE_DEVICES"] = ""
    names = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
    for name in names:
        env.pop(name, None)
    return env | dict(zip(names, SETS.get(run, ()), strict=False))


def processes_of(runs: list[str]) -> list[list[str]]:
    """The runs that one process can make: draws in one, each set in its own."""
    alone = [[run] for run in runs if run in SETS or run == OLDER]
    together = [run for run in runs if run not in SETS and run != OLDER]
    return alone + ([together] if together else [])


def make_runs(page: Path, runs: list[str]) -> Iterator[dict[str, Any]]:
    """Make runs of a page in one process, and give each as it ends."""
    name = [run if run not in SETS and run != OLDER else "plain" for run in runs]
    python = str(older_python()) if runs == [OLDER] else sys.executable
    command = [python, "-m", "tools.anywhere.page", str(page), *name]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment_of(runs[0]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        seen = 0
        for run, said in zip(runs, process.stdout, strict=False):
            seen += 1
            yield {**json.loads(said), "run": run}
    for run in runs[seen:]:
        yield {"run": run, "error": DIED}
