"""The same script as one process or, under ``torchrun``, as several on one or more machines.

Everything here is harmless in a single process: one process is a world of one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def process_group(device_type: str = "cpu") -> Iterator[torch.device]:
    """Join the other processes that ``torchrun`` started; gloo on CPUs, NCCL on GPUs.

    Args:
        device_type: "cpu" or "cuda".

    Yields:
        The device of this process.
    """
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device(device_type, local_rank) if device_type == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        if local_rank >= torch.cuda.device_count():
            raise ValueError(
                f"process {local_rank} of this machine has no GPU: torch sees "
                f"{torch.cuda.device_count()}; start fewer processes or use the CPU"
            )
        torch.cuda.set_device(device)
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield device
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
    finally:
        dist.destroy_process_group()


def rank() -> int:
    """The number of this process, from 0; process 0 is the one that writes."""
    return dist.get_rank() if dist.is_initialized() else 0


def world() -> int:
    """How many processes take part."""
    return dist.get_world_size() if dist.is_initialized() else 1


def barrier() -> None:
    """Wait for the others."""
    if world() > 1:
        dist.barrier()


def total(values: Tensor) -> Tensor:
    """The sum of a tensor over all processes, the same for each."""
    if world() > 1:
        values = values.clone()
        dist.all_reduce(values)
    return values


def from_first(data: bytes | None, device: torch.device) -> bytes | None:
    """What process 0 holds, given to all; only process 0 needs to see the file system."""
    if world() == 1:
        return data
    size = torch.tensor([-1 if data is None else len(data)], device=device)
    dist.broadcast(size, src=0)
    if size.item() < 0:
        return None
    if data is not None and rank() == 0:
        buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device)
    else:
        buffer = torch.empty(int(size), dtype=torch.uint8, device=device)
    dist.broadcast(buffer, src=0)
    return buffer.cpu().numpy().tobytes()


def replicate(model: nn.Module) -> nn.Module:
    """Let gradients be averaged over the processes; a single process gets its model back."""
    return DistributedDataParallel(model) if world() > 1 else model
