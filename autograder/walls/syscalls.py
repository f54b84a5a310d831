"""The few calls to the Linux kernel that Python's library has not: namespaces, mounts, capabilities, seccomp.

Every function raises OSError when the kernel refuses. Numbers and structures are those of the kernel's
headers (linux/sched.h, linux/mount.h, linux/capability.h, linux/seccomp.h, linux/audit.h).
"""

import ctypes
import errno
import os
import platform
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_CLONE_NEW = 0x7E020080  # all kinds of namespaces, with time and cgroup

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 1 << 18
_MNT_DETACH = 2
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAPBSET_DROP = 1, 4, 8, 24
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_CAPABILITY_VERSION_3 = 0x20080522
CAP_SYS_ADMIN = 21

# By machine: AUDIT_ARCH, and the numbers of calls. None: the machine has no such call.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_MOUNT_SETATTR = 442
_SYSTEM = {"pivot_root": (155, 41), "capset": (126, 91), "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198)}
_SYSTEM |= {"seccomp": (317, 277)}
_REFUSED = {
    # other processes and the kernel's insides
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "syslog": (103, 116),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # the machine
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    # memory that no limit of address space counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
_PROGRAMS = {"execve": (59, 221), "execveat": (322, 281)}
_REFUSED_TO_TESTS = _PROGRAMS | {
    # other processes
    "fork": (57, None),
    "vfork": (58, None),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    # the network
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
}
_SIGNAL = {"kill": (62, 129), "tgkill": (234, 131)}  # the first argument is the process
_CLONE_THREAD = 0x00010000
_LANDLOCK = 444  # and 445, 446, on all machines
_LANDLOCK_READ_FILE, _LANDLOCK_READ = 1 << 2, 1 << 2 | 1 << 3
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6: what the network namespace holds; AF_VSOCK, say, leaves it

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args) -> int:
    """A function of the C library that returns -1 and sets errno on failure."""
    function = getattr(_libc, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    ctypes.set_errno(0)
    result = function(*(ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def _number(pair: tuple[int | None, int | None]) -> int | None:
    if platform.machine() not in MACHINES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {platform.machine()}")
    return pair[MACHINES[platform.machine()][1]]


def unshare(flags: int) -> None:
    """Enter new namespaces (for CLONE_NEWPID: the next child does)."""
    _call("unshare", flags)


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace that the open file of /proc/<pid>/ns is."""
    _call("setns", descriptor, kind)


def mount_new(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a new file system of a kind, such as tmpfs or proc."""
    _call("mount", kind.encode(), os.fsencode(target), kind.encode(), flags, options.encode())


def bind(source: str, target: str) -> None:
    """Show a file or a folder, with what is mounted below it, in a second place."""
    _call("mount", os.fsencode(source), os.fsencode(target), None, _MS_BIND | _MS_REC, None)


def make_private(target: str = "/") -> None:
    """Let no mount below `target` be seen outside this mount namespace."""
    _call("mount", None, os.fsencode(target), None, _MS_REC | _MS_PRIVATE, None)


def make_read_only(target: str, devices: bool = False, recursive: bool = True) -> None:
    """Make a mount, with what is mounted below it, read-only and without setuid; without devices too."""
    attributes = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | (0 if devices else _MOUNT_ATTR_NODEV)
    wanted = ctypes.create_string_buffer(struct.pack("4Q", attributes, 0, 0, 0), 32)
    flags = _AT_RECURSIVE if recursive else 0
    _call("syscall", _MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, wanted, 32)


def change_root(target: str) -> None:
    """Make the mount `target` the root and let go of all that was there before (pivot_root(2))."""
    os.chdir(target)
    _call("syscall", _number(_SYSTEM["pivot_root"]), b".", b".")
    _call("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def die_with_parent(signal: int) -> None:
    """Get a signal when the thread that started this process ends."""
    _call("prctl", _PR_SET_PDEATHSIG, signal, 0, 0, 0)


def own_proc_files() -> None:
    """Make /proc/self this process' own again, which it is not after a change of uid."""
    _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)


def keep_capabilities(wanted: bool) -> None:
    """Whether the permitted capabilities outlive the change to another uid than root's."""
    _call("prctl", _PR_SET_KEEPCAPS, int(wanted), 0, 0, 0)


def set_capabilities(*capabilities: int) -> None:
    """Have these capabilities and no others."""
    bits = sum(1 << capability for capability in capabilities)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), 8)
    sets = ctypes.create_string_buffer(struct.pack("6I", low, low, 0, high, high, 0), 24)
    _call("syscall", _number(_SYSTEM["capset"]), header, sets)


def drop_bounding_set() -> None:
    """Let no program give a capability back."""
    for capability in range(64):
        try:
            _call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError as error:
            if error.errno == errno.EINVAL:  # past the last capability of this kernel
                return
            raise


def no_new_privileges() -> None:
    """Let no program that is started gain a privilege."""
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def see_only(paths: list[str]) -> bool:
    """Let this process read nothing but what is at or below these paths, and run no program; for good (Landlock).

    Returns:
        Whether the kernel can do that: Linux 5.13 or later, where it is not switched off.
    """
    try:
        ruleset = _call("syscall", _LANDLOCK, ctypes.create_string_buffer(struct.pack("Q", 1 | _LANDLOCK_READ), 8), 8, 0)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return False
        raise
    try:
        for path in paths:
            try:
                found = os.open(path, os.O_PATH)
            except OSError:  # what is not there needs no permission
                continue
            allowed = _LANDLOCK_READ if os.path.isdir(path) else _LANDLOCK_READ_FILE
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, found), 12)
            _call("syscall", _LANDLOCK + 1, ruleset, 1, rule, 0)
            os.close(found)
        _call("syscall", _LANDLOCK + 2, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def refuse_system_calls(tests: bool = False) -> None:
    """Let the kernel answer EPERM to system calls that no notebook needs; for good, and for all children.

    Args:
        tests: whether to refuse what tests do not need either: new processes and programs, signals to others, sockets.
    """
    _call("prctl", _PR_SET_SECCOMP, 2, _program(_filter(tests)), 0, 0)


def refuse_programs() -> None:
    """Let the kernel answer EPERM to the start of any program, in all threads of this process; for good, and for all children.

    It adds to the filter of `refuse_system_calls`, which must be there.
    """
    steps = [_step(_LOAD, _NUMBER)]
    steps += [_step(_EQUAL, _number(pair), 0, 1) + _refuse(errno.EPERM) for pair in _PROGRAMS.values()]
    program = _program(b"".join([*steps, _ALLOW]))
    if thread := _call("syscall", _number(_SYSTEM["seccomp"]), 1, _ALL_THREADS, program):
        raise OSError(errno.EPERM, f"thread {thread} has a filter of its own")


def _program(steps: bytes) -> ctypes.Array:
    """A struct sock_fprog of these steps."""
    code = ctypes.create_string_buffer(steps, len(steps))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps) // 8, ctypes.addressof(code)), 16)
    header.steps = code  # alive as long as the header
    return header


_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06  # of the kernel's BPF machine
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; the low half of the argument
_ALL_THREADS = 1  # SECCOMP_FILTER_FLAG_TSYNC


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(code: int) -> bytes:
    return _step(_ANSWER, 0x00050000 | code)  # SECCOMP_RET_ERRNO


_ALLOW = _step(_ANSWER, 0x7FFF0000)


def _filter(tests: bool) -> bytes:
    """The program of refuse_system_calls (struct sock_filter)."""
    steps = [
        _step(_LOAD, _MACHINE) + _step(_EQUAL, MACHINES[platform.machine()][0], 1) + _refuse(errno.EPERM),
        _step(_LOAD, _NUMBER) + _step(_AT_LEAST, 0x40000000, 0, 1) + _refuse(errno.EPERM),  # the x32 calls
        _step(_EQUAL, _number(_SYSTEM["clone3"]), 0, 1)
        + _refuse(errno.ENOSYS),  # its flags are out of sight; clone is tried next
    ]
    for pair in (_REFUSED | _REFUSED_TO_TESTS if tests else _REFUSED).values():
        if (refused := _number(pair)) is not None:
            steps.append(_step(_EQUAL, refused, 0, 1) + _refuse(errno.EPERM))

    def look(call: int, test: bytes) -> bytes:
        """Allow a call if `test`, which looks at its first argument, steps over the refusal."""
        return _step(_EQUAL, call, 0, 4) + _step(_LOAD, _FIRST_ARGUMENT) + test + _refuse(errno.EPERM) + _ALLOW

    threads = _step(_ANY_BIT, _CLONE_THREAD, 1, 0) if tests else _step(_ANY_BIT, _CLONE_NEW, 0, 1)
    steps.append(look(_number(_SYSTEM["clone"]), threads))
    if tests:
        for pair in _SIGNAL.values():
            steps.append(look(_number(pair), _step(_EQUAL, os.getpid(), 1, 0)))
        steps.append(_ALLOW)
        return b"".join(steps)
    steps.append(_step(_EQUAL, _number(_SYSTEM["socket"]), 1, 0) + _ALLOW + _step(_LOAD, _FIRST_ARGUMENT))
    steps += [_step(_EQUAL, family, 0, 1) + _ALLOW for family in _FAMILIES]
    steps.append(_refuse(errno.EAFNOSUPPORT))
    return b"".join(steps)
