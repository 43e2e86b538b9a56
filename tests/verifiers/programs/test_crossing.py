"""Values between two processes: what is sent is what arrives, and what is no message is none."""

import contextlib
import json
import math
import socket
import threading

import pytest

from rlvr_jax.verifiers.programs.python.crossing import MOST_BYTES, Gone, Peer, Values


def nothing_there(kind, number):
    raise AssertionError((kind, number))


def crossed(value):
    """A value as the other side has it."""
    text = json.dumps(Values(nothing_there).encode(value))
    return Values(nothing_there).decode(json.loads(text))


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            False,
            0,
            -1,
            2**53,
            -(2**53),
            10**400,
            0.1,
            -0.0,
            math.inf,
            "",
            "a\n\ud800",
        ),
        *(1j, b"\xff", bytearray(b"a"), range(1, 9, 2), [], [[1], (2, [3])], (), {1, "a"}),
        *(
            frozenset([(1, 2)]),
            {},
            {(1, 2): {"a": {None}}, True: 1.0},
            {"int": "0x9"},
            {"yours": 0},
        ),
    ],
    ids=lambda value: type(value).__name__,  # how a set is written depends on the process
)
def test_built_in_values_arrive_with_their_types(value):
    found = crossed(value)
    assert (type(found), found) == (type(value), value)
    assert f"{found!r:.99}" == f"{value!r:.99}"  # also within


def test_subclasses_arrive_as_what_they_derive_from():
    class Odd(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

        def __int__(self):
            return 0

    class Pair(tuple):
        def __iter__(self):
            return iter([0])

    found = crossed([Odd(7), Pair([1, 2])])
    assert (type(found[0]), found[0]) == (int, 7)
    assert (type(found[1]), found[1]) == (tuple, (1, 2))


def test_objects_do_not_cross():
    for value in (object(), [object()], memoryview(b"a"), {1: object()}):
        with pytest.raises(TypeError, match="is not a built-in value"):
            Values(nothing_there).encode(value)


def test_a_handle_comes_back_as_what_it_is_on():
    def function():
        return 1

    here = Values(nothing_there)
    there = Values(lambda kind, number: [kind, number])
    standin = there.decode(here.encode(function))
    assert standin == ["function", 0]
    # A list would cross as a copy; what stands for a function is never one.
    stands = Values(lambda kind, number: type("Stand", (), {})())
    assert here.decode(stands.encode(stands.decode(here.encode(function)))) is function


@pytest.mark.parametrize(
    "found",
    [
        *(
            {},
            {"tuple": [], "set": []},
            {"tuple": 3},
            {"set": [[]]},
            {"dict": [1]},
            {"dict": [[[], 1]]},
        ),
        *({"int": 7}, {"int": "x"}, {"bytes": "g"}, {"range": [1, 2, 0]}, {"complex": ["a", "b"]}),
        *({"yours": 0}, {"yours": "a"}, {"function": "a"}, {"class": 1}, {"__class__": []}),
    ],
    ids=str,
)
def test_what_is_not_written_so_is_no_value(found):
    with pytest.raises(Gone):
        Values(nothing_there).decode(found)


@pytest.mark.parametrize(
    "line",
    [b"", b"3\n", b"[]\n", b"{\n", b"\xff\n", b"[" * 99_999 + b"\n", b"x" * (MOST_BYTES + 2**17)],
    ids=["end", "number", "list", "open", "bytes", "deep", "long"],
)
def test_what_is_no_message_is_the_end(line):
    ours, theirs = socket.socketpair()

    def send():
        # The reader may have gone before it has all of a long line.
        with theirs, contextlib.suppress(BrokenPipeError):
            theirs.sendall(line)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(Gone):
        Peer(ours, dict).query({"do": "call"})
    ours.close()
    sender.join()


def test_both_sides_may_ask_while_they_wait():
    ours, theirs = socket.socketpair()

    def doubled(question):
        more = there.query({"do": "more"})["value"] if question["n"] else 0
        return {"value": 2 * question["n"] + more}

    here = Peer(ours, lambda question: {"value": here.query({"do": "n", "n": 0})["value"] + 100})
    there = Peer(theirs, doubled)

    def serve():
        with pytest.raises(Gone):
            there.serve()

    server = threading.Thread(target=serve)
    server.start()
    assert here.query({"do": "n", "n": 4}) == {"value": 108}
    ours.close()
    server.join()
    theirs.close()
