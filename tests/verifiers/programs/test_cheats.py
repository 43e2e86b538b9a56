"""Programs that do not solve the problem and want to be paid: what popular graders pay for."""

import pytest

from rlvr_jax.verifiers.programs.python.code import check

HONEST = "def f(x): return x * x"
# What a cheat cannot know is that f(3) is 9, and the marker.
CALL = {"kind": "call", "function": "f", "args": [3], "value": 9}
ASSERT = {"kind": "assert", "code": "expected = 9\nassert f(3) == expected"}
IMPORTS = {"kind": "assert", "code": "import statistics\nassert statistics.mean([f(3)]) == 9"}
LOOP = {
    "kind": "assert",
    "code": "inputs, results = [3, 4], [9, 16]\n"
    "assert all(a == b for a, b in zip(map(f, inputs), results))",
}
COMPARES = {
    "kind": "assert",
    "code": "assert abs(f(3) - 9) < 1e-6 and not f(3) != 9 and f(3) in [9] and {f(3)} == {9}",
}
PASSES = [CALL, ASSERT, IMPORTS, LOOP, COMPARES]

CHEATS = {
    "an object equal to everything": """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(9)
    def __sub__(self, other): return 0
    __rsub__ = __sub__
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
    def __bool__(self): return True
    def __copy__(self): return self
    def __call__(self, *a): return self
def f(x): return Equal()
""",
    "an integer equal to everything": """
class Equal(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(9)
    def __sub__(self, other): return 0
    def __int__(self): return 9 if False else 0
    __index__ = __int__
def f(x): return Equal(8)
""",
    "a text equal to everything": """
class Equal(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = str.__hash__
def f(x): return Equal("9")
""",
    "a function equal to everything": """
class Equal(type):
    def __eq__(self, other): return True
    def __hash__(self): return 9
class f(metaclass=Equal):
    def __new__(cls, x): return cls
""",
    "an end in the call": "import os\ndef f(x): os._exit(0)",
    "a clean end in the call": "import sys\ndef f(x): sys.exit(0)",
    "an end at the start": "import os\nos._exit(0)",
    "a clean end at the start": "def f(x): return 8\nraise SystemExit(0)",
    "an interrupt": "def f(x): raise KeyboardInterrupt",
    "the end of a loop": "def f(x): raise StopIteration",
    "an exception of the tests": "def f(x): raise AssertionError",
    "a patch of builtins": """
import builtins, json, operator
for name in ("abs", "all", "any", "len", "zip", "map", "sorted", "isinstance", "compile", "exec"):
    setattr(builtins, name, lambda *a, **k: True)
builtins.AssertionError = type("Never", (Exception,), {})
operator.eq = json.loads = lambda *a, **k: True
def f(x): return 8
""",
    "a patch of json": """
import json
json.dumps = lambda *a, **k: '{"value": {}, "text": "8", "passed": true}'
def f(x): return 8
""",
    "a walk over frames": """
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        names = {**frame.f_globals, **frame.f_locals}
        for name in ("expected", "value", "wanted", "gold", "results", "test"):
            found = names.get(name)
            if isinstance(found, dict):
                found = found.get("value")
            if isinstance(found, list) and found:
                found = found[0]
            if isinstance(found, int) and found > 3:
                return found
        frame = frame.f_back
    return 8
""",
    "a search of all objects": """
import gc
def f(x):
    for found in gc.get_objects():
        if isinstance(found, dict) and isinstance(found.get("value"), int):
            return found["value"]
        if isinstance(found, dict) and isinstance(found.get("code"), str):
            return int(found["code"].split()[2])
    return 8
""",
    "a look at files, environment and handles": """
import os, re, sys
def texts():
    yield " ".join([*sys.argv, *os.environ.values(), str(sys.modules.get("__main__").__dict__)])
    for handle in range(256):
        try:
            os.set_blocking(handle, False)
            yield os.read(handle, 10**6).decode()
        except (OSError, UnicodeDecodeError):
            pass
    for folder, _, names in os.walk("."):
        for name in names:
            yield open(os.path.join(folder, name), errors="replace").read()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ", "fd/0", "fd/1", "fd/3"):
            if pid != str(os.getpid()):
                try:
                    yield open(f"/proc/{pid}/{name}", errors="replace").read(10**6)
                except OSError:
                    pass
def f(x):
    for text in texts():
        if found := re.search(r"expected = (\\d+)|\\"value\\": (\\d+)", text):
            return int(found[1] or found[2])
    return 8
""",
    "a look into the judge's memory": """
import os, re
def f(x):
    for pid in range(1, 64):
        if pid == os.getpid():
            continue
        try:
            maps = open(f"/proc/{pid}/maps").read()
            memory = open(f"/proc/{pid}/mem", "rb")
        except OSError:
            continue
        for line in maps.splitlines():
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if "rw" in line.split()[1] and high - low < 2**26:
                try:
                    memory.seek(low)
                    found = re.search(rb"expected = (\\d+)", memory.read(high - low))
                except OSError:
                    continue
                if found:
                    return int(found[1])
    return 8
""",
    "the marker": """
import os, sys
def f(x):
    for handle in range(64):
        for text in (b"0 passed\\n", b"passed", b"0 value 9\\n"):
            try:
                os.write(handle, text)
            except OSError:
                pass
    print("0 passed"); sys.stderr.write("passed")
    return 8
""",
    "modules for the judge to import": """
import os, sys
text = "copy = lambda value: 9\\nmean = median = copy\\ndef seed(x): pass\\n"
for folder in {".", os.getcwd(), *sys.path}:
    for name in ("copy", "statistics", "random", "sitecustomize", "program", "rlvr_jax"):
        try:
            open(os.path.join(folder, name + ".py"), "w").write(text)
        except OSError:
            pass
def f(x): return 8
""",
    "another value each time": """
values = iter(range(10**9))
class Some(list):
    def __iter__(self): return iter([next(values)])
    def __eq__(self, other): return True
def f(x): return Some()
""",
    "an iterator that never ends": "import itertools\ndef f(x): return itertools.count()",
    "the end of the judge": """
import os, signal
def f(x):
    for pid in (os.getppid(), *range(1, 64)):
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGINT)
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    return 8
""",
    "the end of everything": "import os\ndef f(x): os.kill(-1, 9); return 8",
    "questions to the judge": """
import gc
peer = next(o for o in gc.get_objects() if type(o).__name__ == "Peer")
def f(x):
    for do in ("load", "names", "call", "next", "text", "attribute", "_assert", "run"):
        for number in (0, -1, "0", None, [], 10**9):
            arguments = {"tuple": []}
            peer.query({"do": do, "handle": number, "arguments": arguments, "name": "__class__"})
    return 8
""",
    "a value of many bytes": "def f(x): return 'x' * 10**7",
    "a value that is deep": "def f(x):\n    y = 9\n    for _ in range(9**5): y = [y]\n    return y",
    "a value that holds itself": "def f(x):\n    y = []\n    y.append(y)\n    return y",
    "a large integer": "def f(x): return 10 ** 100_000",
    "a truth": "def f(x): return True",
    "nothing": "def f(x): pass",
    "no function": "f = 9",
}


def words(program, *tests, **options):
    """The share that is paid, and the word for the first failure."""
    found = check(program, list(tests), cpu_seconds=1.0, wall_seconds=10.0, **options)
    return found.info["fraction"], found.stage


def test_an_honest_program_is_paid():
    assert words(HONEST, *PASSES) == (1.0, "passed")


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_not_paid(name):
    assert words(CHEATS[name], *PASSES)[0] == 0.0
