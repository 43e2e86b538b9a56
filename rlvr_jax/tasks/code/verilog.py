"""Verilog: small combinational modules from a description, graded by equivalence.

    kinds: expression, table, arithmetic, selection, bits

A prompt names the ports. The answer must have them and be the same circuit
(`verifiers.programs.verilog_verifier`). Yosys proves this or Icarus Verilog simulates it, in the
sandbox. One of the two must be installed: `pip install pyosys`. `meta["level"]` counts the input
bits, four per level.
"""

from collections.abc import Sequence
from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.programs.verilog_verifier import installed

__all__ = ["verilog"]

INSTRUCTION = "Write the module in Verilog, in a ```verilog block. It must be combinational."
_Port = tuple[str, int]
# (description, inputs, outputs, body)
_Design = tuple[str, Sequence[_Port], Sequence[_Port], str]


@generated()
def verilog() -> Generated:
    """Modules of five kinds, the same number of each.

    Raises:
      ModuleNotFoundError: neither pyosys nor iverilog is installed.
    """
    if not installed():
        raise ModuleNotFoundError(
            "verilog: pyosys (pip install pyosys) or iverilog must be installed, got neither",
            name="pyosys",
        )

    def draw(random: Random, kind: str) -> Prompt:
        what, inputs, outputs, body = _DESIGNS[kind](random)
        module = _module(inputs, outputs, body)
        return Prompt(
            text=f"Module `top` has {_ports('input', inputs)} and {_ports('output', outputs)}."
            f" {what} {INSTRUCTION}",
            answer=module,
            kind=kind,
            gold=f"```verilog\n{module}\n```",
            meta={"level": 1 + sum(width for _, width in inputs) // 4},
        )

    return Generated(
        draw,
        list(_DESIGNS),
        verify=verifier_of(
            "rlvr_jax.verifiers.programs.verilog_verifier",
            reading={"tags": False},
            workers=0,  # the engines have the sandbox's limits
            threads=None,
        ),
        derived=("meta",),
    )


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _module(inputs: Sequence[_Port], outputs: Sequence[_Port], body: str) -> str:
    ports = [f"input {_range(w)}{name}" for name, w in inputs]
    ports += [f"output {_range(w)}{name}" for name, w in outputs]
    return f"module top({', '.join(ports)});\n  {body}\nendmodule"


def _ports(direction: str, ports: Sequence[_Port]) -> str:
    named = ", ".join(f"`{_range(width)}{name}`" for name, width in ports)
    return f"the {direction}{'s' if len(ports) > 1 else ''} {named}"


_OPERATORS = {"&": "and", "|": "or", "^": "xor"}


def _expression(random: Random) -> _Design:
    names = "abcd"[: random.randint(2, 4)]
    text, words = _leaf(random, names[0])
    for name in names[1:]:
        sign = random.choice([*_OPERATORS])
        leaf, called = _leaf(random, name)
        text, words = f"({text} {sign} {leaf})", f"({words} {_OPERATORS[sign]} {called})"
    if random.random() < 0.3:
        text, words = f"~{text}", f"not {words}"
    what = f"`y` is {words}."
    return what, [(name, 1) for name in names], [("y", 1)], f"assign y = {text};"


def _leaf(random: Random, name: str) -> tuple[str, str]:
    return (f"~{name}", f"not {name}") if random.random() < 0.4 else (name, name)


def _table(random: Random) -> _Design:
    width = random.choice((2, 3))
    ones = sorted(random.sample(range(2**width), random.randint(1, 2**width - 1)))
    terms = " | ".join(f"(x == {width}'d{value})" for value in ones)
    listed = ", ".join(map(str, ones))
    what = f"`y` is 1 exactly where the number `x` is one of {listed}."
    return what, [("x", width)], [("y", 1)], f"assign y = {terms};"


def _arithmetic(random: Random) -> _Design:
    width = random.randint(2, 6)
    constant = random.randint(1, 2**width - 1)
    what, body, out = random.choice(
        (
            (f"`y` is `a` plus {constant}, modulo {2**width}.", f"a + {width}'d{constant}", width),
            (f"`y` is `a` minus {constant}, modulo {2**width}.", f"a - {width}'d{constant}", width),
            (f"`y` is 1 where `a` is below {constant}, else 0.", f"a < {width}'d{constant}", 1),
            (f"`y` is 1 where `a` is above {constant}, else 0.", f"a > {width}'d{constant}", 1),
            (f"`y` is `a` times {constant}, modulo {2**width}.", f"a * {width}'d{constant}", width),
        )
    )
    return what, [("a", width)], [("y", out)], f"assign y = {body};"


def _selection(random: Random) -> _Design:
    width = random.randint(1, 6)
    names = random.sample("abdegh", 2)
    first, second = (
        random.choice(
            (
                (f"`{name}`", name),
                (f"the inverse of `{name}`", f"~{name}"),
                (f"`{name}` plus 1, modulo {2**width}", f"{name} + {width}'d1"),
            )
        )
        for name in names
    )
    what = f"`y` is {first[0]} where `s` is 0, and {second[0]} where it is 1."
    inputs = [*((name, width) for name in names), ("s", 1)]
    return what, inputs, [("y", width)], f"assign y = s ? {second[1]} : {first[1]};"


def _bits(random: Random) -> _Design:
    width = random.randint(3, 8)
    low = random.randint(0, width - 2)
    high = random.randint(low + 1, width - 1)
    shift = random.randint(1, width - 1)
    part = f"x[{high}:{low}]"
    reverse = ", ".join(f"x[{place}]" for place in range(width))
    turned = f"{{x[{width - 1 - shift}:0], x[{width - 1}:{width - shift}]}}"
    what, body, out = random.choice(
        (
            (f"`y` is the parity (xor) of the bits {high} to {low} of `x`.", f"^{part}", 1),
            (f"`y` is 1 where the bits {high} to {low} of `x` are all 1.", f"&{part}", 1),
            (f"`y` is 1 where any of the bits {high} to {low} of `x` is 1.", f"|{part}", 1),
            (f"`y` is the bits {high} to {low} of `x`.", part, high - low + 1),
            (f"`y` is `x` rotated to the left by {shift} bits.", turned, width),
            ("`y` is `x` with its bits in reverse order.", f"{{{reverse}}}", width),
        )
    )
    return what, [("x", width)], [("y", out)], f"assign y = {body};"


_DESIGNS = {
    "expression": _expression,
    "table": _table,
    "arithmetic": _arithmetic,
    "selection": _selection,
    "bits": _bits,
}
