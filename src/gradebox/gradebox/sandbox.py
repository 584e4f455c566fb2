"""Where a student's code may run: in bubblewrap, or where that is forbidden behind Landlock.

| a worker ... | bubblewrap | landlock | unsafe |
|---|---|---|---|
| reads no file but Python and its packages | there are no others | yes, but can guess names | no |
| writes, makes, changes or removes no file | yes | yes | no |
| has no network | there is none | it can make no socket | no |
| starts, signals no other process | yes | yes | no |
| sees no other process | there are none | no: that it is there, and whose | no |
| is a user of its own | as root | as root | no |
| has limits: memory, processor, open files | yes | yes | yes |
| has a limit of threads | yes | yes | no |
| has one core | yes | yes | yes |

Where the grader is not root, the worker is the grader's own user, in bubblewrap inside a user
namespace. Both need the C library libseccomp. Neither guards against a hole in the kernel.
"""

import functools
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("bubblewrap", "landlock", "unsafe")
BOOT = """
import json, sys
sys.path += json.loads(sys.argv.pop())["path"]
sys.orig_argv.clear()  # what a worker need not see
from gradebox.inside import fork_server
fork_server.main()
"""
TRIAL = """
import json, sys
spec = json.loads(sys.argv[1])
sys.path += spec["path"]
from gradebox.inside.confine import confine
confine(spec["confine"])
print("confined")
"""
ENVIRONMENT = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")},
    **{"HOME": "/tmp", "USER": "student", "MPLBACKEND": "agg", "LANG": "C.UTF-8"},
    **{"MPLCONFIGDIR": "/tmp", "TORCHINDUCTOR_CACHE_DIR": "/tmp"},  # there, so nobody makes it
}
# Which instructions torch, MKL and oneDNN use: what a notebook ran on, it is marked on.
INSTRUCTIONS = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
THREADS = 16  # at once, of a worker that is a user of its own
ALL_THREADS = 64  # of all workers together, where they are one user
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
CORES = "/sys/devices/system/cpu"  # not all of it: it counts how often each core was idle
PROCESSOR = (  # which instructions torch may use
    "/proc/cpuinfo",
    *(f"{CORES}/{name}" for name in ("kernel_max", "online", "possible", "present")),
)
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
HELP = """No sandbox works here, and students' code does not run outside of one.
  bubblewrap: {bubblewrap}
  landlock: {landlock}
On Debian or Ubuntu: sudo apt install bubblewrap libseccomp2. In a container without user
namespaces Landlock needs Linux 5.13 and libseccomp. --unsafe runs it unguarded: whoever wrote a
submission can then read and change whatever you can."""


class NoSandboxError(RuntimeError):
    """Nothing here confines a process; the message says why and what would help."""


def environment() -> dict[str, str]:
    """The variables that a confined Python sees."""
    return ENVIRONMENT | {name: os.environ[name] for name in INSTRUCTIONS if name in os.environ}


@dataclass(frozen=True)
class Limits:
    """What a submission may use. Seconds are the processor's (``inside.clock``)."""

    call_s: float = 5.0  # one call of an answer
    cell_s: float = 10.0  # one cell, each time that the notebook is run
    run_s: float = 60.0  # all cells together; when they are spent, each has a second
    start_s: float = 300.0  # Python, torch and the given set-up: once for all submissions
    total_s: float = 300.0  # the whole submission, after the first start
    cpu_s: int = 120  # one worker, as the kernel counts
    memory_mb: int = 2048  # beyond what torch itself takes
    lost_calls: int = 3  # after so many of one question its other calls are given up
    reply_mb: int = 32  # one result
    restarts: int = 40  # workers that a submission may use up


@dataclass(frozen=True)
class Sandbox:
    """One way to start a confined Python."""

    name: str

    def confinement(self, limits: Limits, core: int | None = None) -> dict | None:
        """What one worker has to give up; of the processor's cores all but ``core``."""
        if sys.platform != "linux":
            return None
        own_user = os.geteuid() == 0 and self.name != "unsafe"
        return {
            "uid": 2**30 + secrets.randbelow(2**29) if own_user else None,
            "readable": [*readable(), *PROCESSOR, *DEVICES] if self.name == "landlock" else None,
            "seccomp": self.name != "unsafe",
            "memory_mb": limits.memory_mb,
            "cpu_s": limits.cpu_s,
            "threads": THREADS if own_user else None if self.name == "unsafe" else ALL_THREADS,
            "core": core,
        }

    def start(self, boot: str, **streams: Any) -> subprocess.Popen:
        """A Python in the sandbox that runs ``boot``, in a session of its own."""
        spec = {"path": packages_path(), "confine": self.confinement(Limits())}
        command = [os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", boot, json.dumps(spec)]
        if self.name == "bubblewrap":
            command = bubblewrap(command)
        return subprocess.Popen(
            command, **streams, env=environment(), cwd="/", start_new_session=True
        )

    def complaint(self) -> str | None:
        """Why it does not work here, or None; a Python is started in it to see."""
        if sys.platform != "linux":
            return "works on Linux only"
        if self.name == "bubblewrap" and shutil.which("bwrap") is None:
            return "the program bwrap is not installed"
        try:
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            with self.start(TRIAL, **pipes) as process:
                said, errors = process.communicate(timeout=30)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"it does not start ({error})"
        if process.returncode == 0 and said.strip() == b"confined":
            return None
        lines = errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ends with {process.returncode}"


@functools.cache
def find_sandbox(name: str = "auto") -> Sandbox:
    """The sandbox of that name, or the first that works here.

    Raises:
        ValueError: there is no such name.
        NoSandboxError: it does not work here; "unsafe" has to be asked for by name.
    """
    if name not in ("auto", *NAMES):
        raise ValueError(f"a sandbox is one of auto, {', '.join(NAMES)}; got {name!r}")
    if name == "unsafe":
        return Sandbox(name)
    reasons = {"bubblewrap": "not asked for", "landlock": "not asked for"}
    for candidate in list(reasons) if name == "auto" else [name]:
        complaint = Sandbox(candidate).complaint()
        if complaint is None:
            return Sandbox(candidate)
        reasons[candidate] = complaint
    raise NoSandboxError(HELP.format(**reasons))


def bubblewrap(command: list[str]) -> list[str]:
    """``command`` inside bubblewrap. As root without a user namespace: there, "nobody" would be
    the machine's root in disguise and could write to kernel settings; each worker changes its user
    itself instead, before it runs anything."""
    words = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--new-session", "--hostname", "sandbox"]
    if os.geteuid() == 0:
        for right in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
            words += ["--cap-add", right]
    else:
        words += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    # for the given set-up, workers cannot write there; first, or it would hide a project below /tmp
    words += ["--tmpfs", "/tmp"]
    bound = readable()
    for folder in parents(
        [*bound, *PROCESSOR, *DEVICES]
    ):  # bwrap itself would make them unreadable
        words += ["--perms", "0755", "--dir", folder]
    for path in bound:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind", path, path]
    for path in PROCESSOR:
        words += ["--ro-bind-try", path, path]
    for path in DEVICES:
        words += ["--dev-bind", path, path]
    return [*words, "--remount-ro", "/", "--chdir", "/", "--", *command]


@functools.cache
def readable() -> tuple[str, ...]:
    """Python, its packages and the system's libraries: all that a worker needs to see."""
    python = Path(sys.executable).resolve()
    wanted = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", str(python)]
    wanted += [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    wanted += [str(path) for path in (python.parents[1] / "lib").glob("libpython*")]
    wanted += packages_path(folders=False)
    kept: list[str] = []
    for path in sorted({path for path in wanted if os.path.lexists(path)}):
        if not any(path.startswith(f"{folder}/") for folder in kept):
            kept.append(path)
    return tuple(kept)


def forget() -> bool:
    """Have the system forget what it holds of files: their pages, their names, and the names that
    were looked up in vain, each of them a word that one run could leave for the next. Did it? Names
    are forgotten for root alone, and in no container; pages of what workers may read always are."""
    try:
        DROP_CACHES.write_text("3")
        return True
    except OSError:
        forget_pages()
        return False


def forget_pages() -> None:
    """Drop from memory what it holds of the files that workers may read, but for what is in use."""
    for top in readable() if sys.platform == "linux" else ():
        if os.path.islink(top):
            continue
        for folder, _, names in os.walk(top) if os.path.isdir(top) else [("/", [], [top])]:
            for name in names:
                try:
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                    handle = os.open(os.path.join(folder, name), flags)
                except OSError:  # a link, or nothing that anybody may read
                    continue
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(handle)


@functools.cache
def packages_path(folders: bool = True) -> list[str]:
    """The folders in which Python finds torch, vitcheck and this package; not ``folders``: what to
    show of them, which for packages that lie in a checkout is only the packages."""
    sites = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    found = [path for path in sites if os.path.isdir(path)]
    for name in ("torch", "vitbook", "vitcheck", "gradebox"):
        package = folder_of(name)
        if str(package.parent) not in found:
            found.append(str(package.parent if folders else package))
    return found


def folder_of(name: str) -> Path:
    """Where a package lies, without importing it.

    Raises:
        NoSandboxError: it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise NoSandboxError(f"the package {name} is not installed")
    return Path(spec.origin).parent


def parents(paths: list[str]) -> list[str]:
    """All folders above ``paths``, from the top down."""
    return sorted({str(folder) for path in paths for folder in Path(path).parents} - {"/"})
