"""The first process in a sandbox: it imports torch, runs the given set-up, and forks workers.

Importing torch takes seconds, a fork milliseconds. The fork server itself never runs a line of a
student's and holds nothing but Python, the packages and the set-up, so there is nothing in a worker
that it inherits. Each worker is a process of its own: another user (where the grader is root), with
limits of its own, and without a way to see, signal, or leave a message to another one.

The grader speaks to it over a socket: 4 bytes of length and JSON each way; with a fork go the two
ends of the worker's pipes. When the grader is gone, the socket ends, and so does everything here.
"""

import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Sequence

import torch

from gradebox.inside.confine import confine
from gradebox.inside.worker import Notebook, in_words, work

LENGTH = struct.Struct(">I")
STANDARD = (0, 1, 2)
PROCESS_CLOCK = 2  # Linux makes a clock's number of a process's and of this
# What many notebooks import, here once instead of in each worker; the last takes seconds, at the
# first step of every optimizer.
COMMON = ("matplotlib.pyplot", "torch._dynamo")


class GoneError(Exception):
    """The grader has closed the socket."""


def say(control: socket.socket, message: dict, handles: Sequence[int] = ()) -> None:
    """A message, and files with it."""
    text = json.dumps(message).encode()
    socket.send_fds(control, [LENGTH.pack(len(text))], handles)
    control.sendall(text)


def hear(control: socket.socket) -> tuple[dict, list[int]]:
    """A message, and the files that came with it."""
    start, handles, _, _ = socket.recv_fds(control, LENGTH.size, 2)
    if not start:
        raise GoneError
    start += exactly(control, LENGTH.size - len(start))
    (size,) = LENGTH.unpack(start)
    return json.loads(exactly(control, size)), list(handles)


def exactly(control: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = control.recv(min(size, 2**20))
        if not part:
            raise GoneError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main() -> None:
    """Set up once, then fork and reap until the grader goes."""
    torch.set_num_threads(1)
    tempfile.tempdir = "/tmp"  # libraries ask for its name; where nothing can be written, in vain
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    notebook = Notebook()
    children: set[int] = set()
    message, _ = hear(control)
    try:
        for name in COMMON:
            importlib.import_module(name)
        notebook.set_up(message["sources"])
    except BaseException as error:
        say(control, {"error": in_words(error)})
        return
    say(control, {})
    gc.freeze()  # what is here stays: workers need not look through it
    try:
        while True:
            message, handles = hear(control)
            if message["do"] == "fork":
                pid = os.fork()
                if pid == 0:
                    children.clear()  # the others are no worker's business
                    begin_worker(control, handles, message["confine"], notebook)
                children.add(pid)
                for handle in handles:
                    os.close(handle)
                say(control, {"pid": pid})
            elif message["pid"] not in children:
                say(control, {})
            elif message["do"] == "clock":
                say(control, {"cpu_s": processor_time(message["pid"])})
            else:
                children.discard(message["pid"])
                say(control, reap(message["pid"]))
    except GoneError:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def begin_worker(
    control: socket.socket, handles: list[int], limits: dict | None, notebook: Notebook
) -> None:
    """In the new process: nothing stays open but its own pipes, then it gives up its rights."""
    try:
        os.setsid()  # the system shares its time between sessions, however many threads they have
        control.detach()
        for number in STANDARD:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        for number in range(3, 1024):
            if number not in handles:
                os.closerange(number, number + 1)
        if limits is not None:
            confine(limits)
        requests, replies = handles
        work(requests, replies, notebook)
    finally:
        os._exit(1)


def processor_time(pid: int) -> float:
    """Seconds of the processor that a child has used, all its threads together; where only Linux
    knows, those of the clock."""
    if sys.platform != "linux":
        return time.monotonic()
    return time.clock_gettime(~pid << 3 | PROCESS_CLOCK)


def reap(pid: int) -> dict:
    """End a worker; gives what it used, as the kernel counted."""
    os.kill(pid, signal.SIGKILL)
    _, _, used = os.wait4(pid, 0)
    return {"memory_kb": used.ru_maxrss, "cpu_s": used.ru_utime + used.ru_stime}
