"""Prints tasks: prompts, verifier, settings, requirements, and the grades of known answers.

python -m rlvr_jax.tasks                       all built-in tasks
python -m rlvr_jax.tasks brackets jsonl:FILE   the named tasks
python -m rlvr_jax.tasks reasoning_gym         all data sets of the package (takes minutes)
"""

import sys
import textwrap
from collections.abc import Sequence

from rlvr_jax.pipes import quiet_pipe
from rlvr_jax.tasks import load, module_of, names
from rlvr_jax.tasks.catalogue import entry, needs_of
from rlvr_jax.tasks.gym.reasoning_gym import data_sets
from rlvr_jax.tools.slips import own_place, sentence

_PACKAGE = "reasoning_gym"


def main(arguments: Sequence[str]) -> None:
    """Prints the entry of each task as soon as the task is made."""
    if {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return
    for name in arguments or names():
        for one in _generated() if name == _PACKAGE else [name]:
            try:
                print(entry(one, load, module_of(one)), flush=True)
            except Exception as error:
                if own_place(error) is None:
                    raise
                sys.exit(f"error: {sentence(error)}")
    if not arguments:
        listed = ", ".join(one.partition(":")[2] for one in _generated())
        command = needs_of("rlvr_jax.tasks.gym.reasoning_gym")["reasoning-gym"]
        listed = (
            f"{_PACKAGE}:NAME, of {listed or f'the package, which is not installed: {command}'}"
        )
        print(textwrap.fill(listed, 100, subsequent_indent="  "))


def _generated() -> list[str]:
    """The data sets of reasoning-gym as names of tasks; none without the package."""
    try:
        return [f"{_PACKAGE}:{name}" for name in data_sets()]
    except ModuleNotFoundError:
        return []


if __name__ == "__main__":
    with quiet_pipe():
        main(sys.argv[1:])
