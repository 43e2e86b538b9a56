"""A function takes six values by position at most; values that travel together are a record."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST = 6
FILES = [*(ROOT / "rlvr_jax").rglob("*.py"), *(ROOT / "kernels").rglob("*.py")]
# Their arguments are settings, which users give by name.
MADE = {"Recipe", "Task"}


def is_maker(function):
    """Whether it makes a part, a recipe or a task."""
    decorators = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    made = function.returns and ast.unparse(function.returns)
    return made in MADE or "part" in map(ast.unparse, decorators)


def functions(tree, inside=None):
    """Every function of a file, with the class that it is a method of."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, inside
            yield from functions(node)
        else:
            yield from functions(node, node if isinstance(node, ast.ClassDef) else inside)


def too_long(source):
    """Names of the functions with more arguments by position."""
    for function, inside in functions(ast.parse(source)):
        static = "staticmethod" in map(ast.unparse, function.decorator_list)
        given = function.args.posonlyargs + function.args.args
        count = len(given) - (inside is not None and not static)
        if count > MOST and not is_maker(function):
            yield f"{function.name}({', '.join(one.arg for one in given)})"


@pytest.mark.thorough
@pytest.mark.parametrize("room", sorted({path.relative_to(ROOT).parts[:-1][:2] for path in FILES}))
def test_a_function_takes_few_values_by_position(room):
    own = [path for path in FILES if path.relative_to(ROOT).parts[:-1][:2] == room]
    found = {str(path): [*too_long(path.read_text())] for path in own}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("def f(a, b, c, d, e, f, g): ...", True),
        ("def f(a, b, c, d, e, f=1, /, g=2): ...", True),
        ("class A:\n def f(self, a, b, c, d, e, f, g): ...", True),
        ("def f():\n def g(a, b, c, d, e, f, g): ...", True),
        ("def f(a, b, c, d, e, f, *, g): ...", False),
        ("class A:\n def f(self, a, b, c, d, e, f): ...", False),
        ("@part(writes={'mask'})\ndef f(a, b, c, d, e, f, g): ...", False),
        ("def f(a, b, c, d, e, f, g) -> Recipe: ...", False),
    ],
)
def test_what_is_refused(source, refused):
    assert bool([*too_long(source)]) == refused
