"""`python -m course.teacher.sandbox.isolation`: run `worker` with as few rights as the system allows.

On Linux the worker has no network, starts no process that outlives it, cannot read the teacher's files, and can write
only to a private folder, which is deleted at the end. Two features of the kernel do this, and neither needs privileges:
namespaces (https://man7.org/linux/man-pages/man7/namespaces.7.html) and Landlock
(https://docs.kernel.org/userspace-api/landlock.html). A container may refuse namespaces, and an old kernel has no
Landlock. On other systems only the POSIX resource limits apply, if there are any.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path

# bytes: in all files, in one, of memory; and CPU time
DISK = 256 << 20
FILE = 64 << 20
MEMORY = 4 << 30
SECONDS = 600
NETWORK = "the network"
FILES = "your files"
PROCESSES = "running on when its time is over"
SPACE = f"filling more than {DISK >> 20} MB of disk"
LIMITS = f"more than {MEMORY >> 30} GB of memory, {FILE >> 20} MB in a file and {SECONDS} s of computing in one process"
PROTECTIONS = (NETWORK, FILES, PROCESSES, SPACE, LIMITS)


def confine(home: str, readable: list[str]) -> list[str]:
    """Give up, permanently and for all child processes, the rights that a worker does not need. Return the PROTECTIONS.

    On Linux this returns in a new process, a descendant of the caller's. The processes above it wait for its end.
    """
    found = []
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if enter_namespaces(libc):
            found += [NETWORK, PROCESSES] + [SPACE] * mount_tmpfs(libc, home)
            guard_children()
        else:
            libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become children of the guard
            found.append(PROCESSES)
        guard_children()  # in a namespace this guard is process 1: when it ends, the kernel ends all others
        with contextlib.suppress(OSError):  # if memory runs out, the kernel should end this process first
            Path("/proc/self/oom_score_adj").write_text("1000")
        os.chdir(home)
        found += [FILES] * landlock(libc, home, readable)
    with contextlib.suppress(ImportError):
        import resource

        limits = {"DATA": MEMORY, "FSIZE": FILE, "CPU": SECONDS, "CORE": 0}
        limits |= {"NPROC": 4096} if NETWORK in found else {}  # otherwise the user's other processes count, too
        for name, most in limits.items():
            with contextlib.suppress(ValueError, OSError):  # a lower limit holds already, or there is none
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        found.append(LIMITS)
    return found


def enter_namespaces(libc) -> bool:
    """Enter new namespaces (users, mounts, processes, IPC, no network), as the same user. Return whether it worked."""
    user = os.getuid()
    group = os.getgid()
    if libc.unshare(0x10000000 | 0x00020000 | 0x20000000 | 0x08000000 | 0x40000000):
        return False
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", file).write_text(text)
    return True


def mount_tmpfs(libc, home: str) -> bool:
    """Mount a tmpfs of limited size on `home`; it exists only in this namespace. Return whether it worked."""
    no_devices = 2 | 4  # MS_NOSUID, MS_NODEV
    return not libc.mount(b"tmpfs", os.fsencode(home), b"tmpfs", no_devices, f"size={DISK},mode=700".encode())


def guard_children() -> None:
    """Fork, and return in the child. The parent waits for its end or for SIGTERM, ends all that is left, and exits."""
    child = os.fork()
    if not child:
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    os.closerange(0, 2)  # so that the pipes are closed when the child closes them
    status = 0
    pid = 0
    try:
        while pid != child:
            pid, status = os.wait()
    finally:
        with contextlib.suppress(OSError):
            while left := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                for each in map(int, left):
                    os.kill(each, signal.SIGKILL)
                    os.waitpid(each, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)


class Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scope", ctypes.c_uint64)]


class PathBeneath(ctypes.Structure):
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def landlock(libc, home: str, readable: list[str]) -> bool:
    """Allow reading only beneath these paths, writing only in `home`, no connections, no signals to the outside.

    Connections are restricted from version 4 of Landlock on, signals from version 6. Return whether it worked.
    """
    version = libc.syscall(444, None, 0, 1)
    if version < 1:
        return False
    everything = (1 << min(13 + version - 1, 15)) - 1  # all rights for files: versions 2 and 3 added one each
    # execute, read, list; execute, write, read, truncate
    read = 1 | 4 | 8
    of_a_file = 1 | 2 | 4 | 1 << 14
    rules = Ruleset(everything, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    fence = libc.syscall(444, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    for path, allowed in [(home, everything), (os.devnull, of_a_file), *((path, read) for path in readable)]:
        with contextlib.suppress(OSError):
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed &= everything if os.path.isdir(path) else everything & of_a_file
            libc.syscall(445, fence, 1, ctypes.byref(PathBeneath(allowed, folder)), 0)
            os.close(folder)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which Landlock requires
    done = libc.syscall(446, fence, 0)
    os.close(fence)
    return done == 0


def main(level: str, home: str, *readable: str) -> None:
    copy = Path(__file__).parents[3]  # setup's .pth file puts the project with the solutions on sys.path
    sys.path[:] = [path for path in sys.path if path == str(copy) or not Path(path, "solutions").exists()]
    print(json.dumps(confine(home, list(readable))), flush=True)
    # Only now, because its imports may start threads, and a fork does not copy threads.
    from course.teacher.sandbox import worker

    worker.main(level)


if __name__ == "__main__":
    main(*sys.argv[1:])
