"""What student's code can and cannot do in each sandbox."""

import contextlib
import ctypes
import errno
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from gradebox.inside.clock import over
from gradebox.process import BrokenError, LateError, LostError
from gradebox.sandbox import Limits, NoSandboxError, Sandbox, find_sandbox
from gradebox.session import Session

from gradebox import sandbox as sandboxes
from tools import sandbox as tool
from vitcheck.cases import Case

# What starts a grader in a process of its own, or waits: behind Landlock in test-deep
FIRST = ["bubblewrap", pytest.param("landlock", marks=pytest.mark.deep)]
SET_UP = ["import torch\nimport matplotlib.pyplot as plt"]
FOUND = Case("found", "value", "found", None, 1, is_value=True)


@pytest.fixture
def session(sandbox):
    with Session(sandbox, Limits(memory_mb=512), SET_UP) as found:
        yield found


@pytest.fixture
def pair(sandbox):
    """Two workers, of which the first runs."""
    with Session(sandbox, Limits(), SET_UP) as first, Session(sandbox, Limits(), SET_UP) as second:
        assert look(first, "found = 1") == 1
        yield first, second


def look(session, source):
    """Run a cell, and give what it left under `found`, or its error."""
    error, _ = session.cell(source, 60)
    return error or session.call(FOUND).value


# A file that every worker may read, mapped as others can map it; and the C library's functions.
TOOLS = """
import ctypes, fcntl, mmap, os, resource, time
library = os.open(torch.__file__, os.O_RDONLY)
pages = mmap.mmap(library, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
shared = ctypes.c_void_p(torch.frombuffer(pages, dtype=torch.uint8).data_ptr())
def libc(name, *given):
    given = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in given]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*given) < 0:
        raise OSError(ctypes.get_errno(), name)
"""
# Numbers of system calls.
CALLS = {
    "x86_64": {"futex": 202, "io_setup": 206, "timer_create": 222, "prctl": 157}
    | {"move_pages": 279, "migrate_pages": 256},
    "aarch64": {"futex": 98, "io_setup": 0, "timer_create": 107, "prctl": 167}
    | {"move_pages": 239, "migrate_pages": 238},
}[platform.machine()]
FIEMAP = bytes(8) + b"\xff" * 8 + bytes(16)  # for FS_IOC_FIEMAP: where the whole file lies
REFUSED = {
    "a file of the grader": "open({here!r})",
    "a folder of the grader": "os.listdir({folder!r})",
    "what lies beside a package": "open({beside!r})",
    "who has an account": "open('/etc/passwd')",
    "processes": "open('/proc/1/cmdline')",
    "a file of its own": "open('/tmp/x', 'w')",
    "a folder": "os.mkdir('/tmp/x')",
    "a link": "os.symlink('/', '/tmp/x')",
    "a package changed": "open(torch.__file__, 'r+')",
    "a process": "os.fork()",
    "a program": "os.execv({python!r}, ['python'])",
    "a socket": "__import__('socket').socket()",
    "a pair of sockets": "__import__('socket').socketpair()",
    "a signal to the fork server": "os.kill(os.getppid(), 9)",
    "a signal to all": "os.kill(-1, 9)",
    "a signal by way of a pipe": "__import__('fcntl').fcntl(0, 8, 1)",  # F_SETOWN
    "a lock on a file": "fcntl.flock(library, fcntl.LOCK_SH)",
    "a lock on a part of a file": "fcntl.lockf(library, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "a lock of an open file": "fcntl.fcntl(library, 37, bytes(32))",  # F_OFD_SETLK
    "news of a folder": "fcntl.fcntl(os.open('/usr/lib', os.O_RDONLY), 1026, 1)",  # F_NOTIFY
    "a hint at a file": "fcntl.fcntl(library, 1035, bytes(8))",  # F_GET_RW_HINT
    "waking those who wait at a file": "libc('syscall', {futex}, shared, 1, 99, 0, 0, 0)",
    "counting those who wait at a file": "libc('syscall', {futex}, shared, 3, 0, 0, shared, 0)",
    "how many processes there are": "libc('sysinfo', bytes(256))",
    "what of a file is in memory": "libc('mincore', shared, 4096, bytes(8))",
    "a page of a file if it is in memory": "os.preadv(library, [bytearray(1)], 0, os.RWF_NOWAIT)",
    "a clock of another process": "time.clock_gettime((~os.getppid() << 3) | 2)",
    "a group of its own": "os.setpgid(0, 0)",
    "a file emptied": "os.open('/dev/null', os.O_RDONLY | os.O_TRUNC)",
    "events, of which all have so many": "libc('syscall', {io_setup}, 1, (ctypes.c_long * 1)(0))",
    "priority": "os.setpriority(os.PRIO_PROCESS, 0, -5)",
    "another user": "os.setuid(0)",
    "another root": "os.chroot('/tmp')",
    "rights of a file": "os.chmod(torch.__file__, 0o777)",
    "more memory": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "memory nobody counts": "os.memfd_create('x')",
    "memory that is shared": "mmap.mmap(-1, 4096)",
    "memory that is shared, to read": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ)",
    "huge pages": "libc('prctl', 41, 0, 0, 0, 0)",  # PR_SET_THP_DISABLE
    "memory in a pipe": "libc('vmsplice', 1, (ctypes.c_long * 2)(0, 0), 1, 0)",
    "a pipe, whose number is after that of anybody's last": "os.pipe()",
    "rules of Landlock": "libc('syscall', 444, (ctypes.c_ulong * 3)(0, 3, 0), 16, 0)",
    "a question to a file system": "fcntl.ioctl(library, 0xC020660B, {fiemap!r})",
    "a call of Linux 6.17": "libc('syscall', 468, -100, b'/usr/lib', bytes(24), 24, 0)",
    "a timer, of which all have so many": "libc('syscall', {timer_create}, 1, 0, bytes(8))",
    "handles beyond the limit": "libc('close_range', 900, 901, 2)",  # CLOSE_RANGE_UNSHARE
    "how often a core was idle": "os.listdir('/sys/devices/system/cpu/cpu0/cpuidle')",
    "a great deal of memory": "[b'x' * 2**28 for _ in range(4)]",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(session, name):
    paths = {"here": __file__, "folder": os.path.dirname(__file__)}
    paths["python"] = os.path.realpath(sys.executable)
    paths["beside"] = str(sandboxes.folder_of("gradebox").parent / "pyproject.toml")
    source = REFUSED[name].format(fiemap=FIEMAP, **paths, **CALLS)
    said = look(session, f"{TOOLS}\nfound = {source}")
    assert re.search("(Permission|FileNotFound|OS|BlockingIO|Memory|Value)Error", str(said)), said
    assert look(session, "found = 3") == 3  # and the worker is still there


@pytest.mark.parametrize("option", [1, 1 + 2**32])
def test_a_worker_cannot_outlive_the_grader(session, option):
    """PR_SET_PDEATHSIG; of the option the kernel reads the lower half."""
    source = f"""
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall({CALLS["prctl"]}, ctypes.c_ulong({option}), 0, 0, 0, 0)
found = ctypes.get_errno()
"""
    assert look(session, TOOLS + source) == errno.EPERM


HUGE = """
import contextlib, mmap, resource
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, pages = most(), mmap.mmap(-1, 128 * 2**20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
with contextlib.suppress(OSError):  # a kernel without huge pages
    pages.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, len(pages), 2**21):
    pages[at] = 1
found = most() - before
"""


def test_a_worker_has_no_huge_pages(session):
    """Of one that is unmapped in part all is kept, past the limit of memory. 64 pages are touched
    here: 128 MB if they are huge."""
    assert look(session, HUGE) < 16


INSTEAD = """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
begin, size = ctypes.c_ulong({begin}), ctypes.c_ulong({size})
assert libc.munmap(begin, size) == 0
found = []
try:
    for _ in range({size} // 2**20 + 512):
        found.append(mmap.mmap(-1, 2**20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
except OSError:
    pass
found = len(found)
"""
LARGEST = """
import ctypes
class Segment(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32)]
    _fields_ += [(name, ctypes.c_uint64) for name in ("at", "begin", "_", "file", "size", "step")]
class Library(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_uint64), ("name", ctypes.c_char_p)]
    _fields_ += [("segments", ctypes.POINTER(Segment)), ("number", ctypes.c_uint16)]
found = []
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p)
def see(library, *_):
    library = library.contents
    for segment in library.segments[: library.number]:
        if segment.kind == 1 and segment.flags == 4:  # to be read only
            found.append((segment.size, library.begin + segment.begin))
    return 0
ctypes.CDLL(None).dl_iterate_phdr(see, None)
size, begin = max(found)
begin, size = -(-begin // 4096) * 4096, size // 4096 * 4096 - 4096
found = [begin, size]
"""


def test_in_the_place_of_a_library_there_is_no_memory(session):
    """A worker that unmapped those it does not need took 4 GB of its 2."""
    begin, size = look(session, LARGEST)
    assert size > 32 * 2**20, "there is no large library to try it with"
    assert look(session, INSTEAD.format(begin=begin, size=size)) <= 512 + 16


WAITS = """
import struct
number, moment = struct.unpack("I", pages[:4])[0], struct.pack("qq", 0, 50_000_000)
try:
    libc("syscall", {futex}, shared, {command}, number, moment, 0, {bits})
except OSError as error:
    found = error.errno
"""


@pytest.mark.parametrize("command", [0, 9, 9 + 256])  # FUTEX_WAIT, _BITSET, by another clock
def test_nobody_waits_at_a_file(session, command):
    """The kernel itself wakes there at a thread's end, whatever is refused; unrefused, it times
    out."""
    waits = WAITS.format(futex=CALLS["futex"], command=command, bits=2**32 - 1)
    assert look(session, TOOLS + waits) == errno.EAGAIN


ALLOWED = {
    "threads": """
import threading
found = []
thread = threading.Thread(target=lambda: found.append(1))
thread.start()
thread.join()
""",
    "threads of the C library": """
import ctypes
libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
begun = libc.pthread_create(ctypes.byref(thread), None, libc.usleep, ctypes.c_void_p(200_000))
found = 1 if begun == 0 == libc.pthread_join(thread, None) else "no thread that can be joined"
""",
    "gradients": """
w = torch.ones(3, requires_grad=True)
(w * w).sum().backward()
found = w.grad.tolist()
""",
    "a figure": "fig, ax = plt.subplots()\nax.plot([1, 2])\nfig.canvas.draw()\nfound = 1",
    "vitbook": "import vitbook.layers.encoder, einops, numpy\nfound = 1",
    # loads a part of torch that asks where it may write
    "counting": """
from vitbook.models.cost import count_multiplies
found = count_multiplies(torch.nn.Linear(2, 3), torch.ones(4, 2))
""",
    "printing": "import sys\nprint('x', file=sys.stderr)\nsys.stdout.flush()\nfound = 1",
    "random numbers": "found = len(open('/dev/urandom', 'rb').read(4))",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_an_answer_may_do(session, name):
    said = look(session, ALLOWED[name])
    assert not isinstance(said, str), said


def test_nothing_of_the_grader_is_in_a_worker(session):
    said = look(session, "import os, sys\nfound = [str(sys.argv), str(dict(os.environ))]")
    assert "TOKEN" not in str(said)
    assert "zip" not in str(said)
    source = """
found = 0
for number in range(256):
    try:
        os.fstat(number)
        found += 1
    except OSError:
        pass
"""
    assert look(session, source) == 5  # nothing three times, and its own two pipes


def test_in_bubblewrap_the_machine_has_no_name(bubblewrap):
    with Session(bubblewrap, Limits(), SET_UP) as session:
        assert look(session, "import os\nfound = os.uname().nodename") == "sandbox"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each worker a user of its own")
def test_as_root_each_worker_is_a_user_of_its_own(sandbox):
    users = set()
    for _ in range(2):
        with Session(sandbox, Limits(), SET_UP) as session:
            users.add(look(session, "import os\nfound = os.getuid()"))
    assert len(users) == 2
    assert min(users) >= 2**30


@pytest.mark.parametrize(("user", "threads"), [(0, 16), (1000, 64)])  # 64: all workers together
def test_every_users_worker_has_a_limit_of_threads(monkeypatch, user, threads):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert Sandbox("bubblewrap").confinement(Limits())["threads"] == threads
    assert Sandbox("unsafe").confinement(Limits())["threads"] is None


# What the kernel says of a worker, whatever else would stop it: each layer holds by itself.
LIMITS = {
    "cpu time": range(120, 200),  # 120, and what is used already
    "open files": [64],
    "core file size": [0],
    "locked memory": [0],
    "pending signals": [0],
    "msgqueue size": [0],
    "file size": [16 * 2**20],
    "processes": [16 if os.geteuid() == 0 else 64],
}


@pytest.fixture
def worker(session):
    """Where the kernel says what a worker is."""
    session.fresh()
    return Path("/proc", str(session.worker.seen))


def test_the_kernel_itself_limits_a_worker(worker):
    limits = (worker / "limits").read_text()
    for what, allowed in LIMITS.items():
        soft, hard = re.search(rf"^Max {what} +(\d+) +(\d+)", limits, re.M).groups()
        assert int(soft) == int(hard) in allowed, what


def test_a_worker_has_no_rights_and_is_nobody(worker):
    status = dict(line.split(":", 1) for line in (worker / "status").read_text().splitlines())
    assert (status["CapEff"].strip("\t0"), status["NoNewPrivs"].strip()) == ("", "1")
    if os.geteuid() == 0:
        assert all(int(one) >= 2**30 for one in (status["Uid"] + status["Gid"]).split())


ALONE = """
import os
from gradebox.inside.confine import confine
os.setgroups([4])
alone = {"uid": 2**30, "core": None, "readable": None, "seccomp": False, "threads": None}
confine({**alone, "memory_mb": 1000, "cpu_s": 9})
print(os.getgroups(), os.getgid())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its groups")
def test_a_worker_leaves_the_groups_of_root():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.stdout == f"[] {2**30}\n", done.stderr


def test_in_bubblewrap_a_worker_shares_nothing_with_the_machine(bubblewrap):
    with Session(bubblewrap, Limits(), SET_UP) as session:
        session.fresh()
        worker = Path("/proc", str(session.worker.seen))
        for kind in ("pid", "net", "ipc", "uts", "mnt"):
            assert os.readlink(worker / "ns" / kind) != os.readlink(f"/proc/self/ns/{kind}"), kind
        mounts = [line.split() for line in (worker / "mountinfo").read_text().splitlines()]
    writable = {mount[4] for mount in mounts if "ro" not in mount[5].split(",")}
    assert writable <= {"/tmp", *sandboxes.DEVICES}  # where a worker, who is nobody, cannot write


BEHIND_LANDLOCK = """
import os, sys
from gradebox.inside.confine import confine
confine({
    "uid": None, "core": None, "readable": ["/usr", "/lib", "/lib64", sys.argv[1]],
    "seccomp": False, "memory_mb": 1000, "cpu_s": 9, "threads": None,
})
assert os.listdir(sys.argv[1]) == ["here"]
for attempt in (
    lambda: open(sys.argv[1] + "/here", "r+"),
    lambda: os.remove(sys.argv[1] + "/here"),
    lambda: os.mkdir(sys.argv[1] + "/there"),
    lambda: os.listdir(os.path.dirname(sys.argv[1])),
):
    try:
        attempt()
        sys.exit("allowed")
    except PermissionError:
        pass
"""


def test_landlock_alone_lets_nobody_write_where_anybody_may_read(landlock, tmp_path):
    (tmp_path / "here").write_text("kept")
    command = [sys.executable, "-c", BEHIND_LANDLOCK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here").read_text() == "kept"


# What Docker's default profile of seccomp refuses, by its documentation, as far as libseccomp and
# both architectures have it; and what gets past a look at arguments.
OF_CONTAINERS = """acct add_key bpf clock_adjtime clock_settime delete_module finit_module
    init_module kcmp kexec_file_load kexec_load keyctl mount move_pages name_to_handle_at
    open_by_handle_at perf_event_open personality pivot_root process_vm_readv process_vm_writev
    ptrace quotactl reboot request_key setns settimeofday swapon swapoff umount2 unshare
    userfaultfd openat2 preadv2 clone3"""
REFUSES = """
import ctypes
libc, found = ctypes.CDLL(None, use_errno=True), {{}}
for name, number in {numbers}.items():
    ctypes.set_errno(0)
    libc.syscall(number, *[ctypes.c_ulong(2**64 - 1)] * 6)
    found[name] = ctypes.get_errno()
"""


def test_what_containers_are_refused_a_worker_is_refused_before_its_arguments_are_read(session):
    number = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name
    numbers = {name: number(name.encode()) for name in OF_CONTAINERS.split()}
    said = look(session, REFUSES.format(numbers=numbers))
    assert {name for name, code in said.items() if code not in (errno.EPERM, errno.ENOSYS)} == set()


@pytest.mark.parametrize(
    "name", ["ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA"]
)
def test_of_the_graders_environment_a_worker_has_the_instruction_sets_alone(monkeypatch, name):
    monkeypatch.setenv(name, "default")
    monkeypatch.setenv("GRADER_TOKEN", "secret")
    found = sandboxes.environment()
    assert found.pop(name) == "default"
    assert "GRADER_TOKEN" not in found


def test_workers_have_a_core_each_while_there_are_enough(sandbox):
    ours = os.sched_getaffinity(0)
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(Session(sandbox, Limits(), SET_UP)) for _ in ours]
        source = "import os\nfound = list(os.sched_getaffinity(0))"
        cores = [look(session, source) for session in sessions]
    assert [len(one) for one in cores] == [1] * len(ours)
    assert {core for one in cores for core in one} == ours


def test_each_worker_has_a_session_of_its_own_between_which_the_system_shares_its_time(pair):
    """On one core, a neighbour with 16 threads left a twentieth of it, and cells took too long."""
    assert look(pair[1], "found = 1") == 1
    family = descendants(pair[0].worker.server.process.pid)
    stats = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in family]
    assert sum(stat[3] == str(pid) for pid, stat in zip(family, stats, strict=True)) >= 2


def test_workers_cannot_reach_each_other(pair):
    source = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
for pid in range(os.getpid() - 30, os.getpid() + 30):
    if pid > 1 and pid != os.getpid():
        for call in (lambda: os.kill(pid, 9), lambda: os.pidfd_open(pid)):
            try:
                call()
                found.append(pid)
            except OSError:
                pass
        if libc.ptrace(16, pid, 0, 0) == 0:
            found.append(pid)
"""
    assert look(pair[1], source) == []
    assert look(pair[0], "found = 2") == 2


# Calls with the number of a process: -1 and why, or what it gives.
ASKING = {
    "its cores": "libc.sched_getaffinity(pid, 128, bytes(128))",
    "its scheduler": "libc.sched_getscheduler(pid)",
    "its priority there": "libc.sched_getparam(pid, bytes(8))",
    "its rights": "libc.capget((ctypes.c_uint32 * 2)(0x20080522, pid), bytes(24))",
    "its group": "libc.getpgid(pid)",
    "its session": "libc.getsid(pid)",
    "its limits": "libc.prlimit(pid, 7, 0, bytes(16))",
    "a signal that is none": "libc.kill(pid, 0)",
    "where its pages are": "libc.syscall({move_pages}, pid, 0, 0, 0, 0, 0)",
    "its pages elsewhere": "libc.syscall({migrate_pages}, pid, 0, 0, 0)",
    "leave to be traced by it": "libc.prctl(0x59616D61, pid, 0, 0, 0)",
    "to share its core": "libc.prctl(62, 1, pid, 0, 0)",
    "what the fork server knew": "sorted(main.f_locals['children'])",
}
ASK = """
import ctypes, os, sys
libc, main = ctypes.CDLL(None, use_errno=True), sys._getframe()
while main.f_code.co_name != "main":
    main = main.f_back
def ask(pid):
    ctypes.set_errno(0)
    return {call}, ctypes.get_errno()
here = os.getpid()
found = [str(ask(pid)) for pid in (1, os.getppid(), *range(max(2, here - 9), here), 2**22 - 2)]
"""


@pytest.mark.parametrize("what", ASKING)
def test_a_worker_does_not_learn_who_else_is_there(pair, what):
    said = look(pair[1], ASK.format(call=ASKING[what].format(**CALLS)))
    assert isinstance(said, list), said
    assert len(set(said)) == 1, said  # the same of somebody and of nobody
    assert said[0] in ("(-1, 1)", "([], 0)")


DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        while True:
            time.sleep(1)
    except BaseException:
        pass
"""


def test_a_lost_worker_costs_one_request_and_its_successor_stands_where_it_stood(bubblewrap):
    with Session(bubblewrap, Limits(call_s=2, cell_s=2), SET_UP) as session:
        session.cell("kept = 5", 2)
        for source in ("import os\nos._exit(0)", DEAF):
            with pytest.raises(LostError):
                session.cell(source, 2)
        assert look(session, "found = kept + 1") == 6
        assert session.used.restarts == 2
        session.fresh()
        assert "NameError" in look(session, "found = kept")


def test_a_submission_has_so_much_time_and_so_many_processes(bubblewrap):
    with Session(bubblewrap, Limits(restarts=1), SET_UP) as session:
        for words in ("ended the process", "ended the process", "too many processes"):
            with pytest.raises(LostError, match=words):
                session.cell("import os\nos._exit(0)", 2)
    with Session(bubblewrap, Limits(total_s=2), SET_UP) as session:
        session.cell(BURN.format(seconds=1.9), 10)
        for words in ("in time", "too long"):
            with pytest.raises(LostError, match=words):
                session.cell(BURN.format(seconds=3), 10)


FORGES = """
import os, struct
for number in range(3, 64):
    try:
        os.write(number, struct.pack(">II", 2, 0) + b"{}")
    except OSError:
        pass
"""


def test_a_reply_bears_the_number_of_its_request_and_is_not_too_large(bubblewrap):
    with Session(bubblewrap, Limits(reply_mb=1), SET_UP) as session:
        with pytest.raises(LostError, match="another request"):
            session.cell(FORGES, 9)
        with pytest.raises(LostError, match="too large"):
            look(session, "found = torch.zeros(2**19)")


BURN = """
import time
end = time.process_time() + {seconds}
while time.process_time() < end:
    pass
"""
SPIN = "while True: pass"
WORK = f"""
def work(seconds):
{textwrap.indent(BURN.format(seconds="seconds"), "    ")}
    return seconds
"""


@pytest.mark.deep
def test_work_is_in_time_at_a_load_of_twelve_and_stopped_when_it_is_not(sandbox):
    """Limits count seconds of the processor: by the clock this takes several times as long."""
    with Session(sandbox, Limits(call_s=1), SET_UP) as session:
        session.fresh()
        alone = {"start_new_session": True}  # the system shares its time between sessions
        burners = [subprocess.Popen([sys.executable, "-c", SPIN], **alone) for _ in range(12)]
        try:
            began = time.monotonic()
            assert session.cell(BURN.format(seconds=0.7) + WORK, 1) == (None, [])
            assert session.call(Case("work", "", "work", None, 1, args=(0.7,))).value == 0.7
            assert time.monotonic() - began > 2  # so a limit by the clock would have stopped both
            error, stopped = session.cell(BURN.format(seconds=3), 1)
            assert "because a cell has 1 s" in error
            assert stopped == [2]  # the loop
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()


def test_what_sleeps_is_stopped_by_the_clock(session):
    began = time.monotonic()
    error, _ = session.cell("import time\ntime.sleep(60)", 1)
    assert "because a cell has 1 s" in error
    assert 2 <= time.monotonic() - began < 40


NAPS = """
import time
while True:
    end = time.process_time() + 0.001
    while time.process_time() < end:
        pass
    time.sleep(0.024)
"""
OVER = {  # processor, clock, waited; is a limit of 1 s over?
    "it has run so long": (1, 1, 0, True),
    "it sleeps": (0, 2, 0, True),
    "it naps": (0.1, 2.1, 0, True),
    "it waits for its turn": (0.1, 9, 8, False),
    "it waits and sleeps": (0.1, 9, 6, True),
    "ten times as long": (0.1, 10, 9.9, True),
    "nobody knows, and it hardly runs": (0.01, 2, None, True),
    "nobody knows, and it may have waited": (0.2, 9, None, False),
}


@pytest.mark.parametrize("what", OVER)
def test_who_sleeps_is_told_from_who_waits_for_its_turn(what):
    *used, ended = OVER[what]
    assert over(1, *used) is ended


@pytest.mark.parametrize("sandbox", FIRST, indirect=True)
def test_who_naps_is_stopped_as_who_sleeps(session):
    """By the clock alone it would be after 10 s."""
    session.fresh()
    if session.worker.waited_s is None:
        pytest.skip("this system does not say who waits for the processor")

    def napped():
        return session.used.clock_s - session.used.cpu_s - session.used.waited_s

    before = napped()
    with contextlib.suppress(LateError):  # the worker's own limit is by the clock
        session.cell(NAPS, 1)
    assert napped() - before < 8


GRADER = """
from gradebox.process import fork_server_for
from gradebox.sandbox import Limits, Sandbox
from gradebox.session import Session
session = Session(Sandbox({name!r}), Limits(cell_s=600), ["import torch"])
session.fresh()
print(fork_server_for(session.sandbox, session.set_up, 1).process.pid, flush=True)
session.cell("while True: pass", 600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", FIRST, indirect=True)
def test_when_the_grader_is_killed_nothing_goes_on(sandbox):
    command = [sys.executable, "-c", GRADER.format(name=sandbox.name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as grader:
        server = int(grader.stdout.readline())
        family = {server, *descendants(server)}
        grader.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in family if alive(pid)]
    assert len(family) >= 2


def descendants(pid):
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [found for child in children for found in (int(child), *descendants(child))]
    return []


def alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def in_memory(handle):
    """Is a file's first page there? Skips where the system does not tell."""
    try:
        return os.preadv(handle, [bytearray(1)], 0, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except OSError as error:
        pytest.skip(f"this file system does not tell what is in memory: {error}")


@pytest.mark.parametrize("root", [True, False])
def test_what_an_earlier_run_read_can_be_forgotten(tmp_path, monkeypatch, root):
    drop = tmp_path / ("drop_caches" if root else "not for us/drop_caches")
    monkeypatch.setattr(sandboxes, "DROP_CACHES", drop)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a file").write_bytes(bytes(4096))
    (tmp_path / "in/to nothing").symlink_to(tmp_path / "nothing")
    monkeypatch.setattr(sandboxes, "readable", lambda: (str(tmp_path / "in"), "/nothing"))
    with open(tmp_path / "in/a file", "r+b") as file:
        for _ in range(50):  # a page that the system is about to write down stays once in a while
            os.fsync(file.fileno())
            os.pread(file.fileno(), 1, 0)
            assert in_memory(file.fileno())
            assert sandboxes.forget() is root
            if not (there := in_memory(file.fileno())):
                break
            time.sleep(0.01)
        assert there is root  # here nobody reads what is written there
    assert not root or drop.read_text() == "3"  # pages and names


@pytest.fixture
def complaints(monkeypatch):
    """What each sandbox complains of; nothing is known from before, nor afterwards."""
    found = {name: f"no {name}" for name in ("bubblewrap", "landlock")}
    monkeypatch.setattr(Sandbox, "complaint", lambda self: found.get(self.name))
    find_sandbox.cache_clear()
    yield found
    find_sandbox.cache_clear()


def test_without_a_sandbox_it_refuses_and_says_what_would_help(complaints):
    with pytest.raises(NoSandboxError) as caught:
        find_sandbox()
    for words in ("no bubblewrap", "no landlock", "apt install bubblewrap", "--unsafe"):
        assert words in str(caught.value)
    assert find_sandbox("unsafe").name == "unsafe"
    with pytest.raises(ValueError, match="one of auto"):
        find_sandbox("docker")
    complaints["landlock"] = None
    assert find_sandbox().name == "landlock"  # the second, where the first does not work


def test_a_missing_program_is_the_complaint(monkeypatch):
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    assert "bwrap is not installed" in Sandbox("bubblewrap").complaint()


def test_a_chroot_is_told_by_its_root_folder(tmp_path):
    mounts = tmp_path / "mountinfo"
    assert tool.in_chroot(mounts)  # no /proc
    mounts.write_text("36 35 98:0 /d /work rw - ext4 /dev/a rw\n")
    assert tool.in_chroot(mounts)
    mounts.write_text("36 35 98:0 / / rw - ext4 /dev/a rw\n36 35 98:0 /d /work rw - ext4 a rw\n")
    assert not tool.in_chroot(mounts)


def test_a_project_below_tmp_is_seen(bubblewrap, monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        lesson = Path(folder, "lesson.py")
        lesson.write_text("print('seen')")
        with_it = (*sandboxes.readable(), str(lesson))
        monkeypatch.setattr(sandboxes, "readable", lambda: with_it)
        command = sandboxes.bubblewrap([os.path.realpath(sys.executable), "-I", str(lesson)])
        told = subprocess.run(command, capture_output=True, text=True)
    assert told.stdout == "seen\n", told.stderr


def test_when_the_sandbox_itself_ends_every_submission_in_it_hears_so(bubblewrap):
    sessions = [Session(bubblewrap, Limits(), []) for _ in range(2)]
    for session in sessions:
        session.fresh()
    sessions[0].worker.server.close()  # as the first that notices does
    for session in sessions:
        with pytest.raises(BrokenError, match="the sandbox ended"):
            session.fresh()


MARKED_ON = """
from gradebox.sandbox import Limits, find_sandbox
from gradebox.session import Session
from vitcheck.cases import Case

with Session(find_sandbox({name!r}), Limits(memory_mb=512), ["import torch"]) as session:
    session.cell("found = torch.backends.cpu.get_cpu_capability()", 60)
    print(session.call(Case("found", "value", "found", None, 1, is_value=True)).value)
"""


@pytest.mark.parametrize("sandbox", FIRST, indirect=True)
def test_a_notebook_is_marked_on_the_instruction_set_it_ran_on(sandbox):
    """In a process of its own: a sandbox is started once, with the variables of that moment."""
    command = [sys.executable, "-c", MARKED_ON.format(name=sandbox.name)]
    env = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["DEFAULT"], done.stderr
