"""Calls of one episode: whatever one of them does, the next one reads what it made and is heard."""

import pytest

from rlvr_jax.sandbox import Limits
from rlvr_jax.tools import ToolError, code_steps, python

LIMITS = Limits(wall_seconds=20.0)
"""Ample, for a busy machine."""

ENDS = [
    # what a call does, and what it shows; `print(x)` of the next call shows 5
    ("import sys; x = 5; print(1); sys.exit()", "1"),
    (
        "def main():\n    print(1)\nx = 5\nif __name__ == '__main__':\n    main(); exit(0)",
        "1",
    ),
    ("x = 5; import sys; sys.exit('sorry')", "sorry"),
    ("x = 5; quit(3)", ""),
    ("x = 5; raise SystemExit", ""),
    ("x = 5; raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("x = 5; raise GeneratorExit('early')", "GeneratorExit: early"),
    ("x = 5\nclass End(BaseException): pass\nraise End('mine')", "End: mine"),
    ("import os; x = 5; print(1); os._exit(0)", "1"),
    ("import os; x = 5; print(1, end=''); os._exit(7)", "1"),
    ("x = 5\ndef f(n): return f(n + 1)\nf(0)", "RecursionError: maximum recursion depth exceeded"),
    ("import sys; x = 5; print(1); sys.stdout.close()", "1"),
    ("import io, sys; x = 5; sys.stdout = io.StringIO(); print(1)", ""),
    ("import os; x = 5; os.write(1, b'1\\n'); os.close(1); os.close(2)", "1"),
    ("import atexit; x = 5; _ = atexit.register(print, 'bye')", "bye"),
    ("import threading as t; x = 5; t.Thread(target=print, args=[1]).start()", "1"),
]

KILLS = [
    "import os; os.kill(os.getpid(), 9)",
    "import os; os.abort()",
    "import ctypes; ctypes.string_at(0)",
    "import signal; signal.raise_signal(15)",
    "import os; os.kill(os.getpid(), 11)",
]

REPEATS = [
    "import random; x = random.random()",
    "import random; random.seed(); x = random.getrandbits(64)",
    "import random; x = random.Random().random(), random.SystemRandom().random()",
    "import os, secrets, uuid; x = os.urandom(8), secrets.token_hex(8), uuid.uuid4()",
    "import tempfile; x = tempfile.mkdtemp()",
    "import time; x = time.time(), time.time_ns(), time.perf_counter(), time.process_time()",
    "import time; x = time.clock_gettime(0), time.clock_gettime_ns(time.CLOCK_MONOTONIC)",
    "import time; a = time.monotonic(); time.sleep(.1); x = time.monotonic() - a",
    "import time; x = 0; a = time.time()\nwhile time.time() < a + .1: x += 1",
    "from datetime import date, datetime; x = datetime.now(), datetime.utcnow(), date.today()",
    "import datetime as d; x = d.datetime.now(d.timezone.utc).isoformat()",
    "import time; x = time.ctime(), time.strftime('%X'), time.localtime(), time.asctime()",
    "x = {'a', 'b', 'c', 'd'}",
    "open('a', 'a').write('x'); x = open('a').read()",
]


def said(*calls):
    """What each of some calls of one episode shows."""
    tool, state, texts = python(limits=LIMITS), None, []
    for code in calls:
        state, text = tool.run({"code": code}, state)
        texts.append(text)
    return texts


@pytest.mark.thorough
@pytest.mark.parametrize(("code", "shown"), ENDS)
def test_a_call_that_ends_leaves_its_names_and_silences_nothing(code, shown):
    assert said(code, "print(x)", "x + 1") == [shown, "5", "6"]


@pytest.mark.parametrize("code", KILLS)
def test_a_call_that_kills_its_interpreter_is_told_and_has_not_been(code):
    first, killed, *rest = said("x = 5", f"y = 6; {code}", "x", "y")
    assert first == "" and "The interpreter ended with status" in killed
    assert rest == ["5", "NameError: name 'y' is not defined"]


def test_a_call_that_passes_a_limit_has_not_been():
    tool = python(limits=Limits(wall_seconds=1.0, cpu_seconds=1.0))
    state, _ = tool.run({"code": "x = 5"}, None)
    with pytest.raises(ToolError, match="stopped"):
        tool.run({"code": "while True: pass"}, state)
    assert tool.run({"code": "x"}, state)[1] == "5"


@pytest.mark.thorough
@pytest.mark.parametrize("code", REPEATS)
def test_a_call_that_is_run_again_reads_what_it_read(code):
    sleep = "import time; time.sleep(.1)"
    first, _, again, later = said(f"{code}\nprint(x)\nexit()", sleep, "print(x)", "print(x)")
    assert first and first == again == later


def test_numbers_of_numpy_are_read_again():
    tool = python(limits=Limits(wall_seconds=30.0, memory_mb=1024, packages=("numpy",)))
    code = "import numpy as np\nx = np.random.rand(), np.random.default_rng().random()\nprint(x)"
    state, first = tool.run({"code": code}, None)
    assert first == tool.run({"code": "print(x)"}, state)[1] != ""


def test_two_episodes_differ_in_their_random_numbers_only_if_they_begin_otherwise():
    code = "import random; print(random.random())"
    assert said(code) == said(code) != said(f"{code} # another")


def test_times_are_those_of_the_day_and_dates_are_dates():
    code = """
import datetime, time
before, now, after = time.time(), datetime.datetime.now(), time.time()
class Own(datetime.datetime): pass
print(before - 1e-6 <= now.timestamp() <= after, type(now).__name__, isinstance(now, datetime.date))
print(isinstance(now.date(), datetime.date), isinstance(now, Own), isinstance(Own.now(), Own))
print(repr(now.replace(year=2000, month=1, day=2, hour=3, minute=4, second=5, microsecond=6)))
print(now - datetime.timedelta(1) < now, issubclass(datetime.datetime, datetime.date))
print(0 <= time.process_time() < 5, time.gmtime(0).tm_year, isinstance(3, datetime.date))
"""
    shown = [
        "True datetime True",
        "True False True",
        "datetime.datetime(2000, 1, 2, 3, 4, 5, 6)",
        "True True",
        "True 1970 False",
    ]
    assert said(code)[0].splitlines() == shown


@pytest.mark.parametrize(
    "code",
    [
        "import gc\nfor o in gc.get_objects():\n"
        "    if type(o).__name__ == 'Clock': o.record[:] = [['x', None], 3]",
        "import gc\nfor o in gc.get_objects():\n"
        "    if type(o).__name__ == 'Clock': o.record = {'a': 1}",
        "import gc\nfor o in gc.get_objects():\n"
        "    if type(o).__name__ == 'Session': o._job['mark'] = 'x'",
        "import time\nfor _ in range(10 ** 5): time.time()",
    ],
)
def test_a_call_that_spoils_its_record_spoils_no_later_call(code):
    assert said(code, "print(5)", "print(6)")[1:] == ["5", "6"]


def test_steps_with_code_are_heard_behind_an_end():
    world = code_steps(limits=LIMITS)
    for code in ("print(1); import sys; sys.exit()", "print(1)\nimport os; os._exit(0)"):
        reply = world.reply(world.start(None)[0], f"<code>\n{code}<end_of_code>")
        assert reply.text == "\n<output>1<end_of_output>\n" and not reply.info["tool_errors"]
    reply = world.reply(world.start(None)[0], "<code>\nraise KeyboardInterrupt<end_of_code>")
    assert "KeyboardInterrupt" in reply.text and reply.info["tool_errors"] == 1
