"""Examples in docstrings print what they show."""

import ast
import doctest
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[1]
NAMED = (ast.FunctionDef, ast.ClassDef)


def _examples():
    for folder in ("rlvr_jax", "kernels"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if (
                "kernels" in path.parts[:-1] and folder != "kernels"
            ) or ">>> " not in path.read_text():
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                text = ast.get_docstring(node) if isinstance(node, NAMED) else None
                if text and ">>> " in text:
                    yield pytest.param(text, id=f"{path.relative_to(ROOT)}:{node.name}")


@pytest.mark.parametrize("text", list(_examples()))
def test_an_example_prints_what_it_shows(text):
    example = doctest.DocTestParser().get_doctest(text, {}, "example", None, None)
    printed: list[str] = []
    # JAX as readers have it.
    with (
        jax.enable_x64(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        failed = doctest.DocTestRunner().run(example, out=printed.append).failed
    assert not failed, "".join(printed)
