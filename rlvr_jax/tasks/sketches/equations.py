r"""Equations: an equation for generated data, by an agent with two tools.

    prompt    x1,x2?
    response  <look>x1</look>            the reply: <shown>+9</shown>, 10 times the correlation
              <try>c1*x1+c2</try>        the reply: <shown>12</shown>, an error in percent
              <try>c1*x1*x2+c2</try>     the reply: <shown>0</shown>
              <answer>c1*x1*x2+c2</answer>

`look` analyses an input or a term. `try` fits the constants of an equation to the train part of the
data, and measures the mean relative error there, at most 99 percent. A response has at most 20
calls. `rlvr_jax.verifiers.programs.symbolic_regression` grades the answer by its error on held-out
data; the outcome is between 0 and 1.

The base model tries random terms and mostly answers with the best of its equations.
"""

from functools import cache
from random import Random

import numpy as np

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.sketches.words import BASE_MODEL
from rlvr_jax.tools import Tool, ToolError, tags, toolbox
from rlvr_jax.tools.toolbox import Toolbox
from rlvr_jax.verifiers.programs.expressions import Unreadable
from rlvr_jax.verifiers.programs.symbolic_regression import held_out_error

__all__ = ["TERMS", "equation_of", "equations"]

TERMS = ("x1", "x2", "x1*x2", "x1*x1", "x2*x2", "sin(x1)", "sqrt(x2)", "x1+x2")
MOST_CALLS = 20
_POINTS = 24


@generated(response_tokens=96, size=320, test_size=40)
def equations() -> Generated:
    """Data sets of each term, in equal numbers: y = a · term + b with random a and b.

    Metrics: unreadable (1 for an equation outside of the grammar).
    """
    return Generated(
        _prompt,
        TERMS,
        verify=verifier_of("rlvr_jax.verifiers.programs.symbolic_regression"),
        base_model=BASE_MODEL,
        answers=True,
        environment=_environment(),
    )


def equation_of(term: str) -> str:
    """The equation with one term and two constants."""
    return f"c1*({term})+c2" if "+" in term else f"c1*{term}+c2"


def _values(term: str, x: np.ndarray) -> np.ndarray:
    known = {"x1": x[:, 0], "x2": x[:, 1]}
    known |= {"sin(x1)": np.sin(x[:, 0]), "sqrt(x2)": np.sqrt(x[:, 1])}
    known |= {"x1*x2": x[:, 0] * x[:, 1], "x1*x1": x[:, 0] ** 2, "x2*x2": x[:, 1] ** 2}
    return (known | {"x1+x2": x[:, 0] + x[:, 1]})[term]


def _prompt(random: Random, term: str) -> tuple[str, Prompt]:
    seed = random.randrange(10**6)
    data = np.random.default_rng(seed)
    x = data.uniform(0.5, 4, (2 * _POINTS, 2)).round(3)
    y = (data.uniform(1, 3) * _values(term, x) + data.uniform(3, 6)).round(6)
    parts = {"x_train": x[:_POINTS], "x_test": x[_POINTS:]}
    parts |= {"y_train": y[:_POINTS], "y_test": y[_POINTS:]}
    answer = {name: values.tolist() for name, values in parts.items()}
    gold = f"<answer>{equation_of(term)}</answer>"
    return str(seed), Prompt(f"x1,x2?{seed}", answer, term, gold)


class _Data(Toolbox):
    """A toolbox whose tools have the data of the prompt as their state."""

    def start(self, prompt: Prompt):
        (calls, states), messages = super().start(prompt)
        return (calls, dict.fromkeys(states, prompt.answer)), messages


@cache
def _environment() -> Toolbox:
    schema = {"text": {"type": "string"}}
    looks = Tool("look", "Ten times the correlation of a term with y.", schema, _look)
    tries = Tool("try", "The error of an equation on the data, in percent.", schema, _try)
    style = tags({"look": "look", "try": "try"}, reply="shown")
    box = toolbox(looks, tries, style=style, most=MOST_CALLS, describe=False)
    return _Data(**{**vars(box), "label": "equations()"})


def _look(arguments, data):
    term = str(arguments["text"])
    if term not in TERMS:
        raise ToolError(f"the term must be one of {', '.join(TERMS)}")
    values = _values(term, np.array(data["x_train"]))
    return data, f"{round(10 * np.corrcoef(values, data['y_train'])[0, 1]):+d}"


def _try(arguments, data):
    x, y = np.array(data["x_train"]), np.array(data["y_train"])
    try:
        error = held_out_error(str(arguments["text"]), x, y, x, y)
    except Unreadable as reason:
        raise ToolError(str(reason)) from None
    return data, str(min(round(100 * error), 99)) if np.isfinite(error) else "99"
