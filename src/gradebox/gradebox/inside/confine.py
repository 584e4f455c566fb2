"""What a worker gives up before it runs a line of a student's: its rights, its size, its time.

Called from inside, once, on Linux. What it takes away cannot be taken back by the process.
`libseccomp` is the C library of that name, which Debian, Ubuntu and Fedora always have.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import signal

ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NOT_EQUAL, AT_LEAST, MASKED = 1, 5, 7  # libseccomp's comparisons
INT = 0xFFFFFFFF  # the part of an argument that the kernel reads as an int
# fcntl duplicates handles and says whether they wait. Its other commands lock files, leave hints at
# them, tell of readers and send signals: ways to another process.
FCNTL_OTHERS = (*range(5, 64), *range(1024, fcntl.F_DUPFD_CLOEXEC))
# futex on a file's memory wakes and counts whoever waits there; libraries add FUTEX_PRIVATE. At the
# end of a thread the kernel wakes at any address that the thread has named, past every filter, so
# nobody may wait there. Who joins a thread waits without FUTEX_PRIVATE; EAGAIN has it look again.
FUTEX_REALTIME = 256
FUTEX_WAKES = (1, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13)
FUTEX_WAITS = (0, 9)
# Memory that is shared with nobody: unmapped in part, all of it is kept, and no limit counts it.
SHARED_MEMORY = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
CLONE_FILES, CLOSE_RANGE_UNSHARE = 0x00000400, 2  # threads share their handles, and so their limit
IOC_WRITE = 0x40000000  # the part of an ioctl's number that says: it gives the kernel something
# Calls that came after Linux 5.11; as on an older one they are not there, whatever libseccomp knows
# of them. Landlock's hold memory that no limit counts, file_setattr changes what belongs to a file.
NEW_CALLS = range(442, 512)
OF_A_PROCESS = 0x80000000  # the number of a clock: processor time of any process
CLOCKS = ("clock_gettime", "clock_getres", "clock_nanosleep", "timer_create")
CLONE_THREAD = 0x00010000
PDEATHSIG, NO_NEW_PRIVS, THP_DISABLE = 1, 38, 41  # prctl
SCHED_CORE, SET_PTRACER = 62, 0x59616D61  # prctl, too: they say whether a process is there
# Calls that somebody may make about itself; of others they say whether these are there.
OF_ITSELF = ("prlimit64", "sched_getaffinity", "sched_getscheduler", "sched_getparam")
# What a process that marks answers never needs, and what it could do harm with.
REFUSED = {
    "start another process": "fork vfork execve execveat",
    "signal, trace, read or slow one": """ptrace process_vm_readv process_vm_writev
        process_madvise kcmp tkill pidfd_open pidfd_send_signal pidfd_getfd rt_sigqueueinfo
        rt_tgsigqueueinfo setpriority sched_setaffinity sched_setscheduler sched_setparam
        sched_setattr ioprio_set""",
    "speak to one, here or elsewhere": """socket socketpair io_uring_setup io_uring_enter
        io_uring_register msgget semget shmget mq_open inotify_init inotify_init1 fanotify_init""",
    "leave word where one looks, or count them": """flock sysinfo mincore cachestat fadvise64
        futex_wait futex_wake futex_requeue futex_waitv setsid setpgid getpgid getsid getpriority
        ioprio_get get_robust_list sched_getattr sched_rr_get_interval capget move_pages
        migrate_pages process_mrelease""",
    "take of what all processes share": """io_setup io_destroy io_submit io_cancel io_getevents
        io_pgetevents""",
    "make, change or remove a file": """creat mkdir mkdirat mknod mknodat symlink symlinkat link
        linkat rename renameat renameat2 unlink unlinkat rmdir truncate""",
    "hold memory that no limit counts": "memfd_create memfd_secret vmsplice splice tee",
    "push on the number that the next pipe of anybody gets": "pipe pipe2",
    "change what belongs to a file": """chmod fchmod fchmodat fchmodat2 chown fchown lchown
        fchownat utime utimes utimensat futimesat setxattr lsetxattr fsetxattr setxattrat
        removexattr lremovexattr fremovexattr removexattrat""",
    "change the machine": """mount umount2 pivot_root chroot unshare setns move_mount open_tree
        fsopen fsmount fsconfig fspick mount_setattr open_by_handle_at name_to_handle_at
        init_module finit_module delete_module kexec_load kexec_file_load quotactl quotactl_fd
        acct swapon swapoff reboot syslog sethostname setdomainname settimeofday clock_settime
        adjtimex clock_adjtime iopl ioperm modify_ldt personality""",
    "go deep into the kernel": "bpf userfaultfd perf_event_open add_key keyctl request_key",
}


class Comparison(ctypes.Structure):
    """libseccomp's ``struct scmp_arg_cmp``."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def confine(spec: dict) -> None:
    """Give up what ``spec`` says: ``uid`` (or None), ``readable`` paths for Landlock (or None),
    ``seccomp``, ``memory_mb`` above what is in use, ``cpu_s``, ``threads`` (or None), ``core`` to
    stay on (or None).

    Raises:
        OSError: the kernel or libseccomp refuses; no student's code may run then.
    """
    if spec["uid"] is not None:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    if spec["core"] is not None:
        os.sched_setaffinity(0, {spec["core"]})
    libc = ctypes.CDLL(None, use_errno=True)
    # no huge pages: unmapped in part, all of one is kept, and no limit counts it
    for option, value in ((PDEATHSIG, signal.SIGKILL), (NO_NEW_PRIVS, 1), (THP_DISABLE, 1)):
        _check(libc.prctl(option, int(value), 0, 0, 0), "prctl")
    if spec["readable"] is not None:
        read_only(libc, spec["readable"])
    limit(spec["memory_mb"], spec["cpu_s"], spec["threads"])
    if spec["seccomp"]:
        refuse_system_calls()


def limit(memory_mb: int, cpu_s: int, threads: int | None) -> None:
    """Memory, processor time, files, threads. Threads are counted by user: where that is somebody's
    who runs many, a worker can make none. It needs none."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    caps = {
        resource.RLIMIT_AS: in_use(resource.RLIMIT_AS) + memory_mb * 2**20,
        # in the place of a library that is unmapped, there may be no memory
        resource.RLIMIT_DATA: in_use(resource.RLIMIT_DATA) + memory_mb * 2**20,
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + 1 + cpu_s,
        resource.RLIMIT_FSIZE: 16 * 2**20,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 0,  # timers, too: of all that a user has, they are counted
    }
    if threads is not None:
        caps[resource.RLIMIT_NPROC] = threads
    for what, cap in caps.items():
        resource.setrlimit(what, (cap, cap))


def in_use(what: int) -> int:
    """Bytes of address space, or of memory that can be written, in use, found without /proc: the
    limit at which a page more fails."""
    _, hard = resource.getrlimit(what)
    low, high = 0, 2**47
    while high - low > 2**20:
        middle = (low + high) // 2
        resource.setrlimit(what, (middle, hard))
        try:
            mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            high = middle
        except (OSError, MemoryError):
            low = middle
    resource.setrlimit(what, (hard, hard))
    return high


def refuse_system_calls() -> None:
    """A seccomp filter: whatever REFUSED names fails with EPERM, from now on, in every thread."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(ALLOW)))
    me = os.getpid()

    def refuse(name: str | int, *comparisons: Comparison, code: int = errno.EPERM) -> None:
        number = name
        if isinstance(name, str):
            number = lib.seccomp_syscall_resolve_name(name.encode())
        if number == -1:
            return  # this libseccomp does not know it
        array = (Comparison * max(1, len(comparisons)))(*comparisons)
        action = ctypes.c_uint32(REFUSE | code)
        done = lib.seccomp_rule_add_array(context, action, number, len(comparisons), array)
        if done not in (0, -errno.EDOM, -errno.EEXIST):  # not on this architecture; refused before
            raise OSError(-done, f"seccomp refuses the rule for {name}")

    for name in " ".join(REFUSED.values()).split():
        refuse(name)
    for number in NEW_CALLS:
        refuse(number, code=errno.ENOSYS)
    refuse("clone3", code=errno.ENOSYS)  # the C library then takes clone, whose flags can be seen
    refuse("clone", Comparison(0, MASKED, CLONE_THREAD, 0))  # threads, but no processes
    refuse("clone", Comparison(0, MASKED, CLONE_FILES, 0))
    refuse("close_range", Comparison(2, MASKED, CLOSE_RANGE_UNSHARE, CLOSE_RANGE_UNSHARE))
    refuse("ioctl", Comparison(1, MASKED, IOC_WRITE, IOC_WRITE))
    for name, flags in (("open", 1), ("openat", 2)):  # for reading only, and O_TRUNC empties a file
        for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC):
            refuse(name, Comparison(flags, MASKED, flag, flag))
    refuse("openat2", code=errno.ENOSYS)  # its flags cannot be seen
    refuse("preadv2", code=errno.ENOSYS)  # it tells what of a file is in memory; preadv does not
    refuse("mmap", Comparison(3, MASKED, SHARED_MEMORY, SHARED_MEMORY))
    refuse("kill", Comparison(0, NOT_EQUAL, me))
    refuse("tgkill", Comparison(0, NOT_EQUAL, me))
    for name in OF_ITSELF:
        refuse(name, Comparison(0, NOT_EQUAL, 0))
    for option in (PDEATHSIG, THP_DISABLE, SCHED_CORE, SET_PTRACER):
        refuse("prctl", Comparison(0, MASKED, INT, option))
    for command in FCNTL_OTHERS:
        refuse("fcntl", Comparison(1, MASKED, INT, command))
    refuse("fcntl", Comparison(1, AT_LEAST, fcntl.F_DUPFD_CLOEXEC + 1))
    for command in FUTEX_WAKES:
        refuse("futex", Comparison(1, MASKED, INT & ~FUTEX_REALTIME, command))
    for command in FUTEX_WAITS:
        waits = Comparison(1, MASKED, INT & ~FUTEX_REALTIME, command)
        refuse("futex", waits, code=errno.EAGAIN)
    for name in CLOCKS:
        refuse(name, Comparison(0, MASKED, OF_A_PROCESS, OF_A_PROCESS))
    done = lib.seccomp_load(context)
    if done:
        raise OSError(-done, "seccomp cannot be loaded")


def read_only(libc: ctypes.CDLL, readable: list[str]) -> None:
    """Landlock: from now on only ``readable`` files and folders can be opened, for reading."""
    create, add, restrict = 444, 445, 446  # the same numbers on every architecture
    version = libc.syscall(create, None, ctypes.c_size_t(0), 1)
    _check(version, "Landlock")
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    handled = (ctypes.c_uint64 * 3)(files, 3, 3)  # files; TCP; abstract sockets and signals
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = libc.syscall(create, handled, ctypes.c_size_t(size), 0)
    _check(ruleset, "Landlock")
    for path in readable:
        if os.path.exists(path):
            _readable(libc, add, ruleset, path)
    _check(libc.syscall(restrict, ruleset, 0), "Landlock")
    os.close(ruleset)


def _readable(libc: ctypes.CDLL, add: int, ruleset: int, path: str) -> None:
    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))

    read_file, read_folder = 4, 8
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = Beneath(read_file | (read_folder if os.path.isdir(path) else 0), handle)
    _check(libc.syscall(add, ruleset, 1, ctypes.byref(rule), 0), f"Landlock: {path}")
    os.close(handle)


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
