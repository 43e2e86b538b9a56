"""Programs to test the sandbox: honest ones, which must succeed, and hostile ones.

Hostile programs print `ESCAPED` if they succeed. They take two arguments of this machine: the
number of a process, and the port of a listener on 127.0.0.1.
"""

from dataclasses import dataclass

ESCAPED = "ESCAPED"


@dataclass(frozen=True)
class Program:
    """A program: name, source, input, and for an honest one its output."""

    name: str
    source: str
    stdin: str = ""
    stdout: str = ""


HONEST = (
    Program("adds", "print(sum(map(int, input().split())))", "1 2 3", "6\n"),
    Program("sorts", "print(*sorted(open(0).read().split()))", "c a b", "a b c\n"),
    Program(
        "recurs",
        "import functools\n"
        "f = functools.cache(lambda n: n if n < 2 else f(n - 1) + f(n - 2))\n"
        "print(f(90))",
        stdout="2880067194370816120\n",
    ),
    Program(
        "sieves",
        "s = bytearray([1]) * 200000\n"
        "for i in range(2, 448):\n"
        "    if s[i]: s[i * i :: i] = bytes(len(s[i * i :: i]))\n"
        "print(sum(s) - 2)",
        stdout="17984\n",
    ),
    Program(
        "writes and reads a file",
        "open('a.txt', 'w').write('x' * 100000)\nprint(len(open('a.txt').read()))",
        stdout="100000\n",
    ),
    Program(
        "uses threads",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: print(sum(pool.map(abs, range(-50, 0))))",
        stdout="1275\n",
    ),
    Program(
        "awaits",
        "import asyncio\n"
        "async def f(n): await asyncio.sleep(0.001); return n\n"
        "async def g(): return sum(await asyncio.gather(*map(f, range(10))))\n"
        "print(asyncio.run(g()))",
        stdout="45\n",
    ),
    Program(
        "uses a database",
        "import sqlite3\nd = sqlite3.connect('d')\nd.execute('create table t(x)')\n"
        "d.executemany('insert into t values(?)', [(n,) for n in range(100)])\nd.commit()\n"
        "print(d.execute('select sum(x) from t').fetchone()[0])",
        stdout="4950\n",
    ),
    Program(
        "starts a child",
        "import subprocess, sys\n"
        "child = [sys.executable, '-S', '-c', 'print(1)']\n"
        "print(subprocess.run(child, capture_output=True).stdout)",
        stdout="b'1\\n'\n",
    ),
)

_START = f"""
import ctypes, mmap, os, signal, socket, sys, threading, time
pid, port = map(int, sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
def won(when=True):
    if when: os.write(1, b"{ESCAPED}")
"""

HOSTILE = tuple(
    Program(name, _START + source)
    for name, source in {
        "reads the users of the machine": "won(open('/etc/passwd').read())",
        "writes to a folder of all": "open('/var/tmp/hostile', 'w'); won()",
        "reads the environment of another process": "won(open(f'/proc/{pid}/environ').read())",
        "signals another process": "os.kill(pid, 0); won()",
        "traces another process": "won(libc.ptrace(0x4206, pid, 0, 0) == 0)",
        "connects by TCP": "socket.create_connection(('127.0.0.1', port), 1); won()",
        "makes a local socket": "socket.socket(socket.AF_UNIX); won()",
        "makes a namespace": "won(libc.unshare(0x10000000) == 0)",
        "sets up io_uring": "won(libc.syscall(425, 4, bytes(120)) >= 0)",
        "links out of its folder": "os.symlink('/etc', 'l'); won(open('l/passwd').read())",
        # Where nothing but a look every few milliseconds counts them, a busy machine may not have
        # looked yet when the last one has started; a moment later it has.
        "starts 60 processes": (
            "for _ in range(60):\n  if not os.fork(): time.sleep(5); os._exit(0)\n"
            "time.sleep(.2); won()"
        ),
        "starts 60 threads": (
            "for _ in range(60):\n"
            "  threading.Thread(target=time.sleep, args=[5], daemon=True).start()\n"
            "time.sleep(.2); won()"
        ),
        "takes a gigabyte": "x = bytearray(2**30); x[::4096] = x[::4096]; won()",
        "takes memory in children": (
            "ready, tell = os.pipe()\n"
            "for _ in range(6):\n"
            "  if not os.fork():\n"
            "    x = bytearray(100 * 2**20); x[::4096] = x[::4096]; os.write(tell, b'x')\n"
            "    time.sleep(5)\n"
            "os.close(tell)\n"
            "won(sum(len(os.read(ready, 1)) for _ in range(6)) == 6)"
        ),
        # Where the folder is on the disk it is looked at every few milliseconds, and a hundred MiB
        # came between two looks on a busy machine; a gigabyte takes ten times as long.
        "fills the disk": "for n in range(99): open(str(n), 'wb').write(bytes(10**7))\nwon()",
        "prints without end": "while True: print('x' * 1000)",
        "leaves a session behind": "if not os.fork(): os.setsid(); time.sleep(60)",
        "burns time": "while True: pass",
        "sleeps": "time.sleep(60)",
        "crashes": "ctypes.string_at(0)",
        "kills its parent": "os.kill(os.getppid(), 9); won(time.sleep(0.1))",
    }.items()
)
