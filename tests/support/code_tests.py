"""Tests of programs: assertions and calls."""

from rlvr_jax.sandbox import Limits

LIMITS = Limits(wall_seconds=10.0, cpu_seconds=1.0)  # wall time is ample for a busy machine


def asserts(*codes, **fields):
    return [{"kind": "assert", "code": code, **fields} for code in codes]


def call(function, args, value, **fields):
    return {"kind": "call", "function": function, "args": args, "value": value, **fields}
