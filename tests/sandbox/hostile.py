"""Hostile programs, as data: what each tries, which layers stop it, and how its success is seen.

Every layer that is named stops the program alone, so it succeeds only where all of them are off.
What destroys is in small form: no more than a few hundred megabytes, processes or files, and no
victim but the ones that `suite` starts. Programs find those in `HOST`:

  port, udp: of listeners on 127.0.0.1; unix, datagrams: paths of sockets; abstract: a name of one;
  secret: a file that is not theirs to read; package: one of an installed package;
  target: a folder that is not theirs to write, with the file `precious`;
  victim: a process that sleeps, with the secret at `address` and in its environment;
  mark: a name for processes that outlive the run.
"""

import textwrap
from dataclasses import dataclass

WON = "ESCAPED"
SECRET = "a secret of the host"
MARK = "hostile_orphan"  # at most 15 characters: the name of a process
# Small, so that passing them is a small thing.
LIMITS = {
    "wall_seconds": 4.0,
    "cpu_seconds": 1.0,
    "memory_mb": 96,
    "processes": 8,
    "disk_mb": 4,
    "file_mb": 2,
    "open_files": 32,
    "output_bytes": 2**16,
}

PRELUDE = f"""
import ctypes, errno, fcntl, gc, json, mmap, os, platform, resource, signal, socket, struct
import select, subprocess, sys, threading, time
HOST = json.loads(sys.argv[1])
SECRET = {SECRET!r}
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"

def won(when=True):
    if when:
        os.write(1, b"{WON}")

def call(x86, arm, *arguments):
    ctypes.set_errno(0)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(x86 if X86 else arm), *wide)

def permitted(*unlike):
    return ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES, *unlike)

def children(number, work):
    for _ in range(number):
        if os.fork() == 0:
            try:
                work()
            finally:
                os._exit(0)

def stay():
    os.write(READY[1], b"x")
    os.close(READY[0])
    waiting = select.poll()
    waiting.register(READY[1], 0)
    waiting.poll(60000)  # until the first process has ended

def all_ready(number):
    os.close(READY[1])
    while number:
        if not os.read(READY[0], 1):
            return False
        number -= 1
    time.sleep(0.1)
    return not number

READY = os.pipe()
"""


@dataclass(frozen=True)
class Hostile:
    """One program.

    Fields:
      name: of its own.
      kind: of attack.
      layers: each of which stops it; "wall" and "output" are limits.
      source: what it does, behind `PRELUDE`.
      sign: how its success is seen: "said", it prints `WON`; "heard", a datagram arrives at the
        host; "wrote", the target folder is not what it was; "killed", the victim is gone;
        "outlived", a process named `MARK` is there after the run; "flooded", its output is beyond
        the limit; "forged", the outcome says that it ended well, or tells nothing about it.
      root: it can succeed only where it is started as root.
    """

    name: str
    kind: str
    layers: tuple[str, ...]
    source: str
    sign: str = "said"
    root: bool = False


def _hostile(name, kind, layers, source, sign="said", root=False) -> Hostile:
    return Hostile(name, kind, tuple(layers.split()), textwrap.dedent(source), sign, root)


_NETWORK = [
    _hostile(
        "connects by TCP",
        "tcp",
        "net landlock seccomp",
        """
        socket.create_connection(("127.0.0.1", HOST["port"]), 1)
        won()
        """,
    ),
    _hostile(
        "connects from a child interpreter",
        "tcp",
        "net landlock seccomp",
        """
        code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 1)"
        won(subprocess.run([sys.executable, "-S", "-c", code, str(HOST["port"])]).returncode == 0)
        """,
    ),
    _hostile(
        "connects while sending, by fast open",
        "tcp",
        "net seccomp",
        """
        stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        stream.sendto(b"x", 0x20000000, ("127.0.0.1", HOST["port"]))
        won()
        """,
    ),
    _hostile(
        "sends a datagram",
        "tcp",
        "net seccomp",
        """
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", HOST["udp"]))
        """,
        "heard",
    ),
    _hostile(
        "connects to a socket by its path",
        "unix path",
        "root seccomp",
        """
        socket.socket(socket.AF_UNIX).connect(HOST["unix"])
        won()
        """,
    ),
    _hostile(
        "connects by a path from its folder",
        "unix path",
        "root seccomp",
        """
        os.chdir(os.path.dirname(HOST["unix"]))
        socket.socket(socket.AF_UNIX).connect(os.path.basename(HOST["unix"]))
        won()
        """,
    ),
    _hostile(
        "sends from a pair to a path",
        "unix path",
        "root seccomp",
        """
        ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.sendto(b"x", HOST["datagrams"])
        """,
        "heard",
    ),
    _hostile(
        "connects to an abstract socket",
        "unix abstract",
        "net landlock seccomp",
        """
        socket.socket(socket.AF_UNIX).connect("\\0" + HOST["abstract"])
        won()
        """,
    ),
    _hostile(
        "sends to an abstract socket",
        "unix abstract",
        "net landlock seccomp",
        """
        name = "\\0" + HOST["abstract"] + "-datagrams"
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", name)
        """,
        "heard",
    ),
    _hostile(
        "sends from a pair to an abstract socket",
        "unix abstract",
        "net landlock seccomp",
        """
        ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.sendto(b"x", "\\0" + HOST["abstract"] + "-datagrams")
        """,
        "heard",
    ),
    _hostile(
        "makes a vsock",
        "vsock",
        "seccomp",
        """
        socket.socket(40, socket.SOCK_STREAM)
        won()
        """,
    ),
    _hostile(
        "makes a vsock of packets",
        "vsock",
        "seccomp",
        """
        won(call(41, 198, 40, socket.SOCK_SEQPACKET, 0) >= 0)
        """,
    ),
    _hostile(
        "listens on a vsock",
        "vsock",
        "seccomp",
        """
        listener = socket.socket(40, socket.SOCK_STREAM)
        listener.bind((0xFFFFFFFF, 0xFFFFFFFF))
        listener.listen()
        won()
        """,
    ),
]

_FILES = [
    _hostile(
        "reads a file",
        "reading",
        "root landlock",
        """
        won(SECRET in open(HOST["secret"]).read())
        """,
    ),
    _hostile(
        "reads a file by many dots",
        "reading",
        "root landlock",
        """
        won(SECRET in open("../" * 40 + HOST["secret"][1:]).read())
        """,
    ),
    _hostile(
        "reads a file by calling the kernel",
        "reading",
        "root landlock",
        """
        handle = call(257, 56, -100, os.fsencode(HOST["secret"]), 0, 0)
        won(SECRET.encode() in mmap.mmap(handle, 0, prot=mmap.PROT_READ)[:])
        """,
    ),
    _hostile(
        "reads installed packages",
        "reading",
        "root landlock",
        """
        won(len(open(HOST["package"], "rb").read()))
        """,
    ),
    _hostile(
        "makes a file",
        "writing",
        "root landlock",
        """
        open(HOST["target"] + "/new", "w").write("x")
        """,
        "wrote",
    ),
    _hostile(
        "cuts a file",
        "writing",
        "root landlock",
        """
        open(HOST["target"] + "/precious", "r+").truncate(0)
        """,
        "wrote",
    ),
    _hostile(
        "cuts a file by its name",
        "writing",
        "root landlock seccomp",
        """
        os.truncate(HOST["target"] + "/precious", 0)
        """,
        "wrote",
    ),
    _hostile(
        "closes a file to its owner",
        "writing",
        "root seccomp uid",
        """
        os.chmod(HOST["target"] + "/precious", 0)
        """,
        "wrote",
    ),
    _hostile(
        "sets the time of a file",
        "writing",
        "root seccomp uid",
        """
        os.utime(HOST["target"] + "/precious", (0, 0))
        """,
        "wrote",
    ),
    _hostile(
        "moves its work out",
        "writing",
        "root landlock",
        """
        open("mine", "w").write("x")
        os.rename("mine", HOST["target"] + "/precious")
        """,
        "wrote",
    ),
    _hostile(
        "opens the standard library for writing",
        "writing",
        "root landlock uid",
        """
        open(os.__file__, "r+b").close()
        won()
        """,
        root=True,
    ),
    _hostile(
        "reads through a link",
        "symlinks",
        "root landlock",
        """
        os.symlink(HOST["secret"], "link")
        won(SECRET in open("link").read())
        """,
    ),
    _hostile(
        "writes through a link",
        "symlinks",
        "root landlock",
        """
        os.symlink(HOST["target"], "link")
        open("link/new", "w").write("x")
        """,
        "wrote",
    ),
    _hostile(
        "reads through the link to its root",
        "symlinks",
        "root landlock",
        """
        won(SECRET in open("/proc/self/root" + HOST["secret"]).read())
        """,
    ),
]

_PROCESSES = [
    _hostile(
        "reads the environment of another",
        "proc",
        "root landlock user uid capabilities",
        """
        won(SECRET in open(f"/proc/{HOST['victim']}/environ").read())
        """,
    ),
    _hostile(
        "reads the command lines of all",
        "proc",
        "root landlock",
        """
        lines = [open(f"/proc/{n}/cmdline").read() for n in os.listdir("/proc") if n.isdigit()]
        won(any(HOST["mark"] in line for line in lines))
        """,
    ),
    _hostile(
        "reads through the root of another",
        "proc",
        "root landlock user uid capabilities",
        """
        won(SECRET in open(f"/proc/{HOST['victim']}/root{HOST['secret']}").read())
        """,
    ),
    _hostile(
        "reads the memory of another as a file",
        "proc",
        "root landlock user uid capabilities",
        """
        file = open(f"/proc/{HOST['victim']}/mem", "rb", buffering=0)
        file.seek(HOST["address"])
        won(SECRET.encode() in file.read(100))
        """,
    ),
    _hostile(
        "sets a switch of the kernel",
        "proc",
        "root landlock uid",
        """
        open("/proc/sys/kernel/core_pattern", "r+b", buffering=0).close()
        won()
        """,
        root=True,
    ),
    _hostile(
        "kills a process",
        "signals",
        "pid landlock seccomp uid",
        """
        os.kill(HOST["victim"], signal.SIGKILL)
        """,
        "killed",
    ),
    _hostile(
        "kills a process by a handle",
        "signals",
        "pid landlock seccomp uid",
        """
        signal.pidfd_send_signal(os.pidfd_open(HOST["victim"]), signal.SIGKILL)
        """,
        "killed",
    ),
    _hostile(
        "has a pipe kill a process",
        "signals",
        "pid landlock seccomp uid",
        """
        ends = os.pipe()
        fcntl.fcntl(ends[0], fcntl.F_SETOWN, HOST["victim"])
        fcntl.fcntl(ends[0], fcntl.F_SETFL, os.O_ASYNC)
        os.write(ends[1], b"x")
        """,
        "killed",
    ),
    _hostile(
        "sets the limits of a process",
        "signals",
        "pid seccomp uid",
        """
        resource.prlimit(HOST["victim"], resource.RLIMIT_NOFILE, (64, 64))
        won()
        """,
    ),
    _hostile(
        "traces its child",
        "ptrace",
        "seccomp",
        """
        if not (child := os.fork()):
            libc.ptrace(0, 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(0)
        won(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]) and libc.ptrace(7, child, 0, 0) == 0)
        """,
    ),
    _hostile(
        "traces another process",
        "ptrace",
        "pid landlock seccomp user uid capabilities",
        """
        won(libc.ptrace(0x4206, HOST["victim"], 0, 0) == 0)
        """,
    ),
    _hostile(
        "reads the memory of another",
        "ptrace",
        "pid landlock seccomp user uid capabilities",
        """
        text = ctypes.create_string_buffer(100)
        ours = struct.pack("QQ", ctypes.addressof(text), 100)
        theirs = struct.pack("QQ", HOST["address"], 100)
        call(310, 270, HOST["victim"], ours, 1, theirs, 1, 0)
        won(SECRET.encode() in text.raw)
        """,
    ),
    _hostile(
        "takes a handle from another",
        "ptrace",
        "pid landlock seccomp user uid capabilities",
        """
        won(call(438, 438, os.pidfd_open(HOST["victim"]), 0, 0) >= 0)
        """,
    ),
]

_KERNEL = [
    _hostile(
        "makes a user namespace",
        "namespaces",
        "seccomp",
        """
        won(libc.unshare(0x10000000) == 0)
        """,
    ),
    _hostile(
        "is born in namespaces",
        "namespaces",
        "seccomp",
        """
        child = call(56, 220, 0x10000000 | 0x40000000 | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        won(child > 0)
        """,
    ),
    _hostile(
        "is born in namespaces by the later call",
        "namespaces",
        "seccomp",
        """
        arguments = struct.pack("8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
        child = call(435, 435, arguments, 64)
        if child == 0:
            os._exit(0)
        won(child > 0)
        """,
    ),
    _hostile(
        "mounts in namespaces of its own",
        "namespaces",
        "seccomp landlock",
        """
        won(libc.unshare(0x10020000) == 0 and libc.mount(b"x", b".", b"tmpfs", 0, None) == 0)
        """,
    ),
    _hostile(
        "sets up io_uring",
        "io_uring",
        "seccomp rlimits",
        """
        won(call(425, 425, 4, ctypes.create_string_buffer(120)) >= 0)
        """,
    ),
    _hostile(
        "enters io_uring",
        "io_uring",
        "seccomp",
        """
        call(426, 426, -1, 1, 0, 0, 0, 0)
        won(permitted())
        """,
    ),
    _hostile(
        "registers with io_uring",
        "io_uring",
        "seccomp",
        """
        call(427, 427, -1, 0, 0, 0)
        won(permitted())
        """,
    ),
    _hostile(
        "leaves a key",
        "keyctl",
        "seccomp",
        """
        won(call(248, 217, b"user", b"left", b"x", 1, -2) > 0)
        """,
    ),
    _hostile(
        "joins a keyring",
        "keyctl",
        "seccomp",
        """
        won(call(250, 219, 1, b"ring", 0, 0, 0) > 0)
        """,
    ),
    _hostile(
        "asks for a key",
        "keyctl",
        "seccomp",
        """
        call(249, 218, b"user", b"another", 0, 0)
        won(permitted())
        """,
    ),
    _hostile(
        "makes a map of bpf",
        "bpf",
        "seccomp capabilities user uid",
        """
        won(call(321, 280, 0, struct.pack("5I", 2, 4, 8, 1, 0) + bytes(100), 120) >= 0)
        """,
        root=True,
    ),
    _hostile(
        "loads a program of bpf",
        "bpf",
        "seccomp capabilities user uid",
        """
        code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
        licence = ctypes.create_string_buffer(b"GPL")
        fields = struct.pack("IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(licence))
        won(call(321, 280, 5, fields + bytes(96), 120) >= 0)
        """,
        root=True,
    ),
    _hostile(
        "lists the programs of bpf",
        "bpf",
        "seccomp capabilities user uid",
        """
        call(321, 280, 11, bytes(120), 120)
        won(permitted())
        """,
        root=True,
    ),
    _hostile(
        "adds swap",
        "kernel",
        "seccomp capabilities user uid",
        """
        call(167, 224, b"/nowhere", 0)
        won(permitted())
        """,
        root=True,
    ),
    _hostile(
        "counts its own performance",
        "kernel",
        "seccomp",
        """
        attributes = struct.pack("IIQ", 1, 128, 0) + bytes(24) + struct.pack("Q", 0x60) + bytes(80)
        won(call(298, 241, attributes, 0, -1, -1, 0) >= 0)
        """,
    ),
    _hostile(
        "handles its own page faults",
        "kernel",
        "seccomp",
        """
        won(call(323, 282, 1) >= 0)
        """,
    ),
    _hostile(
        "gives in to an old way to call",
        "kernel",
        "seccomp",
        """
        # mov eax, 47 (getgid of i386); int 0x80; ret
        code = bytes.fromhex("b82f000000cd80c3")
        page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
        page.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        won(not X86 or ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getgid())
        """,
    ),
]

_LIMITS = [
    _hostile(
        "forks",
        "forks",
        "rlimits watch",
        """
        children(30, lambda: time.sleep(1.5))
        time.sleep(0.2)
        won()
        """,
    ),
    _hostile(
        "starts interpreters",
        "forks",
        "rlimits watch",
        """
        sleeps = [sys.executable, "-S", "-c", "import time; time.sleep(1.5)"]
        started = [subprocess.Popen(sleeps) for _ in range(15)]
        time.sleep(0.2)
        won(all(child.poll() is None for child in started))
        """,
    ),
    _hostile(
        "forks in a tree",
        "forks",
        "rlimits watch",
        """
        top = os.getpid()
        for _ in range(4):
            os.fork()
        if os.getpid() != top:
            stay()
        won(all_ready(15))
        """,
    ),
    _hostile(
        "starts threads",
        "threads",
        "rlimits watch",
        """
        for _ in range(30):
            threading.Thread(target=time.sleep, args=[3], daemon=True).start()
        time.sleep(0.1)
        won(threading.active_count() > 30)
        """,
    ),
    _hostile(
        "starts threads without a trace",
        "threads",
        "rlimits watch",
        """
        import _thread
        _thread.stack_size(2**16)
        for _ in range(30):
            _thread.start_new_thread(time.sleep, (1,))
        time.sleep(0.1)
        won()
        """,
    ),
    _hostile(
        "starts threads in many processes",
        "threads",
        "rlimits watch",
        """
        def threads():
            for _ in range(6):
                threading.Thread(target=time.sleep, args=[3], daemon=True).start()
            stay()
        children(5, threads)
        won(all_ready(5))
        """,
    ),
    _hostile(
        "takes memory",
        "memory of one",
        "rlimits memory watch",
        """
        held = bytearray(200 * 2**20)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(0.1)
        won()
        """,
    ),
    _hostile(
        "takes memory bit by bit",
        "memory of one",
        "rlimits memory watch",
        """
        held = [bytearray(2**16) for _ in range(3200)]
        for part in held:
            part[::4096] = b"x" * 16
        time.sleep(0.1)
        won()
        """,
    ),
    _hostile(
        "maps memory",
        "memory of one",
        "rlimits memory watch",
        """
        held = mmap.mmap(-1, 200 * 2**20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(0.1)
        won()
        """,
    ),
    _hostile(
        "takes memory in children",
        "memory in sum",
        "memory watch",
        """
        def take():
            held = b"x" * (60 * 2**20)
            stay()
        children(4, take)
        won(all_ready(4))
        """,
    ),
    _hostile(
        "takes memory in sessions of their own",
        "memory in sum",
        "memory watch",
        """
        def take():
            os.setsid()
            if os.fork() == 0:
                held = b"x" * (60 * 2**20)
                stay()
        children(3, take)
        won(all_ready(3))
        """,
    ),
    _hostile(
        "takes memory in processes whose first thread has ended",
        "memory in sum",
        "memory watch",
        """
        def take():
            held = b"x" * (60 * 2**20)
            stay()
        def threads():
            threading.Thread(target=take, daemon=True).start()
            call(60, 93, 0)
        children(3, threads)
        won(all_ready(3))
        """,
    ),
    _hostile(
        "takes memory that nobody maps",
        "memory in sum",
        "memory seccomp",
        """
        def take():
            held = mmap.mmap(-1, 60 * 2**20)
            for at in range(0, len(held), 4096):
                held[at] = 1
            held.madvise(mmap.MADV_DONTNEED)
            stay()
        children(4, take)
        won(all_ready(4))
        """,
    ),
    _hostile(
        "takes memory as files",
        "memory in sum",
        "memory seccomp",
        """
        def take():
            for _ in range(20):
                os.write(os.memfd_create("held"), bytes(2**21))
            stay()
        children(4, take)
        won(all_ready(4))
        """,
    ),
    _hostile(
        "takes memory by segments",
        "memory in sum",
        "memory seccomp",
        """
        libc.shmat.restype = ctypes.c_void_p
        def take():
            for _ in range(6):
                segment = libc.shmget(0, 10 * 2**20, 0o1600)
                address = ctypes.c_void_p(libc.shmat(segment, None, 0))
                libc.shmctl(segment, 0, None)
                ctypes.memset(address, 1, 10 * 2**20)
            stay()
        if (first := libc.shmget(0, 4096, 0o1600)) < 0:
            sys.exit(1)
        libc.shmctl(first, 0, None)
        children(4, take)
        won(all_ready(4))
        """,
    ),
    _hostile(
        "writes one large file",
        "disk",
        "root rlimits watch",
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open("large", "wb", buffering=0) as file:
            for _ in range(8):
                file.write(bytes(2**20))
        time.sleep(0.2)
        won(os.path.getsize("large") == 2**23)
        """,
    ),
    _hostile(
        "writes many files",
        "disk",
        "root watch",
        """
        for number in range(10):
            open(str(number), "wb").write(bytes(2**20))
        time.sleep(0.2)
        won()
        """,
    ),
    _hostile(
        "makes files without end",
        "disk",
        "root watch",
        """
        for number in range(2500):
            os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
        time.sleep(0.2)
        won()
        """,
    ),
    _hostile(
        "writes files that are gone",
        "disk",
        "root",
        """
        held = []
        for number in range(10):
            held.append(open(str(number), "wb"))
            os.unlink(str(number))
            held[-1].write(bytes(2**20))
        won()
        """,
    ),
    _hostile(
        "prints without end",
        "output",
        "output",
        """
        for _ in range(16):
            os.write(1, b"x" * 2**16)
        """,
        "flooded",
    ),
    _hostile(
        "complains without end",
        "output",
        "output",
        """
        for _ in range(16):
            os.write(2, b"\\xff" * 2**16)
        """,
        "flooded",
    ),
    _hostile(
        "has its children print",
        "output",
        "output",
        """
        children(4, lambda: [os.write(1, b"x" * 2**16) for _ in range(4)])
        for _ in range(4):
            os.wait()
        """,
        "flooded",
    ),
    _hostile(
        "opens files",
        "descriptors",
        "rlimits",
        """
        held = [open("/dev/null") for _ in range(100)]
        won()
        """,
    ),
    _hostile(
        "opens pipes",
        "descriptors",
        "rlimits",
        """
        held = [os.pipe() for _ in range(50)]
        won()
        """,
    ),
    _hostile(
        "copies a handle to a high number",
        "descriptors",
        "rlimits",
        """
        won(os.dup2(1, 500) == 500)
        """,
    ),
    _hostile(
        "leaves a session",
        "orphans",
        "pid tree",
        """
        if not os.fork():
            os.setsid()
            libc.prctl(15, HOST["mark"].encode(), 0, 0, 0)
            for number in (0, 1, 2):
                os.close(number)
            time.sleep(5)
        time.sleep(0.1)
        """,
        "outlived",
    ),
    _hostile(
        "leaves a daemon that hears no signal",
        "orphans",
        "pid tree",
        """
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            libc.prctl(15, HOST["mark"].encode(), 0, 0, 0)
            os.closerange(0, 3)
            time.sleep(5)
        os.wait()
        time.sleep(0.1)
        """,
        "outlived",
    ),
    _hostile(
        "runs away by forking",
        "orphans",
        "pid tree",
        """
        if not os.fork():
            libc.prctl(15, HOST["mark"].encode(), 0, 0, 0)
            os.closerange(0, 3)
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                if os.fork():
                    os._exit(0)
                os.setsid()
            os._exit(0)
        time.sleep(0.1)
        """,
        "outlived",
    ),
    _hostile(
        "lets cores be dumped",
        "cores",
        "rlimits",
        """
        resource.setrlimit(resource.RLIMIT_CORE, (2**20, 2**20))
        won()
        """,
    ),
    _hostile(
        "dumps the core of its child",
        "cores",
        "rlimits",
        """
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (2**20 if most else 0, most))
        child = os.fork()
        if not child:
            ctypes.string_at(0)
        won(os.WCOREDUMP(os.waitpid(child, 0)[1]))
        """,
    ),
    _hostile(
        "says what a core is to hold",
        "cores",
        "root landlock",
        """
        open("/proc/self/coredump_filter", "w").close()
        won()
        """,
    ),
    _hostile(
        "sets the clock to what it is",
        "clock",
        "seccomp capabilities user uid",
        """
        time.clock_settime(time.CLOCK_REALTIME, time.time())
        won()
        """,
        root=True,
    ),
    _hostile(
        "burns time",
        "clock",
        "rlimits watch",
        """
        while time.process_time() < 1.4:
            pass
        won()
        """,
    ),
    _hostile(
        "burns time, hears no signal and has no name",
        "clock",
        "watch",
        """
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        libc.prctl(15, b"\\xff) Z (", 0, 0, 0)  # a name that is no text
        while time.process_time() < 1.4:
            pass
        won()
        """,
    ),
    _hostile(
        "burns time in children",
        "clock",
        "watch",
        """
        def burn():
            while time.process_time() < 0.45:
                pass
        children(3, burn)
        for _ in range(3):
            os.wait()
        won()
        """,
    ),
    _hostile(
        "sleeps",
        "clock",
        "wall",
        """
        time.sleep(4.5)
        won()
        """,
    ),
    _hostile(
        "makes up arguments",
        "arguments",
        "rlimits memory watch",
        """
        sys.argv += ["x" * 2**20 for _ in range(200)]
        time.sleep(0.1)
        won()
        """,
    ),
    _hostile(
        "hides its arguments",
        "arguments",
        "seccomp",
        """
        size = ctypes.c_uint()
        won(libc.prctl(35, 15, ctypes.byref(size), 0, 0) == 0)
        """,
    ),
    _hostile(
        "prints the arguments of its children",
        "arguments",
        "output",
        """
        code = "import os, sys; [os.write(1, a.encode()) for a in sys.argv]"
        for _ in range(2):
            subprocess.run([sys.executable, "-S", "-c", code, *["x" * 10000] * 40])
        """,
        "flooded",
    ),
    _hostile(
        "reports for itself",
        "tampering",
        "handles",
        """
        for handle in range(3, 32):
            try:
                os.write(handle, b"E" + bytes(4))
            except OSError:
                pass
        time.sleep(0.2)
        os._exit(7)
        """,
        "forged",
    ),
    _hostile(
        "kills its server",
        "tampering",
        "pid landlock seccomp",
        """
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(0.2)
        os._exit(7)
        """,
        "forged",
    ),
    _hostile(
        "ends its server by the number of a thread",
        "tampering",
        "pid landlock seccomp",
        """
        call(234, 131, os.getppid(), os.getppid(), signal.SIGTERM)
        time.sleep(0.2)
        os._exit(7)
        """,
        "forged",
    ),
    _hostile(
        "finds the server's channel among its objects",
        "tampering",
        "handles",
        """
        for thing in gc.get_objects():
            if isinstance(thing, socket.socket):
                try:
                    thing.sendall(b'{"status": 0, "reason": "", "seconds": 0.0}\\n')
                except OSError:
                    pass
        os._exit(7)
        """,
        "forged",
    ),
]

HOSTILE = [*_NETWORK, *_FILES, *_PROCESSES, *_KERNEL, *_LIMITS]
