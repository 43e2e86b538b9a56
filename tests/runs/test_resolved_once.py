"""From a command line to the first step, no function of runs/ is entered twice for a run."""

import inspect
import io
import sys
from functools import cached_property
from pathlib import Path

import pytest
import training_runs
from rich.console import Console

import rlvr_jax.runs
from rlvr_jax.experience import Sampler
from rlvr_jax.runs import TrainConfig, command, parse_config, train
from rlvr_jax.runs.config import GROUPS
from rlvr_jax.runs.loading import LoadedPolicy
from rlvr_jax.runs.resolved import ResolvedRun
from rlvr_jax.runs.run import Run
from rlvr_jax.tasks import Task
from rlvr_jax.types import Recipe

ROOM = str(Path(rlvr_jax.runs.__file__).parent)
OF_A_RUN = (TrainConfig, *GROUPS.values(), ResolvedRun, Run, LoadedPolicy, Sampler, Task, Recipe)
"""Whatever a function knows of a run is in one of these, or is its directory."""


class SetUp(Exception):
    """The run is set up."""


def properties():
    """The code of attributes that are computed, which a reader cannot tell from stored ones."""
    attributes = [each for kind in OF_A_RUN for each in vars(kind).values()]
    cached = {each.func.__code__ for each in attributes if isinstance(each, cached_property)}
    return cached | {each.fget.__code__ for each in attributes if isinstance(each, property)}


def entered(function, run_dir):
    """The calls of functions of `runs/` about a run while a function runs: (code, arguments)."""
    calls, attributes = [], properties()

    def profile(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOM) or code in attributes:
            return
        if code.co_flags & inspect.CO_GENERATOR:  # it is entered again whenever it goes on
            return
        further = bool(code.co_flags & inspect.CO_VARARGS) + bool(
            code.co_flags & inspect.CO_VARKEYWORDS
        )
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + further]
        own = {name: frame.f_locals.get(name) for name in names}
        paths = [value for value in own.values() if isinstance(value, Path)]
        if any(isinstance(value, OF_A_RUN) for value in own.values()) or run_dir in paths:
            calls.append((code, own))

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def same(one, other):
    """Whether two calls have the same arguments, where all settings are of the same run."""
    plain = (str, int, float, tuple, dict, type(None), Path)
    pairs = ((one[name], other[name]) for name in one)
    return all(
        a is b or isinstance(a, OF_A_RUN) or (isinstance(a, plain) and a == b) for a, b in pairs
    )


@pytest.mark.thorough
@pytest.mark.parametrize("adapters", [{}, {"lora_rank": 2}])
def test_a_run_is_resolved_once(model, tmp_path, monkeypatch, adapters):
    def stop(*_):
        raise SetUp

    monkeypatch.setattr(command, "train_steps", stop)
    line = training_runs.arguments(training_runs.settings(model, tmp_path / "run", **adapters))

    def set_up():
        with pytest.raises(SetUp):
            train(parse_config(line), Console(file=io.StringIO()))

    calls = entered(set_up, tmp_path / "run")
    assert {"resolve", "load_policy", "make_run", "check_config"} <= {c.co_name for c, _ in calls}
    twice = {
        code.co_qualname
        for number, (code, own) in enumerate(calls)
        for other, theirs in calls[:number]
        if code is other and same(own, theirs)
    }
    assert twice == set()
