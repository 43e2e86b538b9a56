"""One-token mutations of a Python function, for tests of what grades programs."""

import ast
import io
import tokenize
from collections.abc import Iterator

# What becomes what; mistakes that people make, in the order in which they are tried.
SWAPS = (
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("==", "!="),
    ("!=", "=="),
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("/", "*"),
    ("//", "*"),
    ("%", "//"),
    ("**", "*"),
    ("+=", "-="),
    ("-=", "+="),
    ("*=", "+="),
    ("and", "or"),
    ("or", "and"),
    ("True", "False"),
    ("False", "True"),
    ("min", "max"),
    ("max", "min"),
    ("any", "all"),
    ("all", "any"),
    ("lower", "upper"),
    ("upper", "lower"),
    ("swapcase", "upper"),
    ("startswith", "endswith"),
    ("sorted", "list"),
    ("set", "list"),
    ("int", "str"),
    ("len", "max"),
    ("in", "is"),
    ("None", "True"),
    ("''", "' '"),
    (">", "<"),
    ("<", ">"),
)


def mutants(source: str, function: str) -> Iterator[tuple[int, str, str]]:
    """Programs that compile and differ in one token of the body of a function.

    Returns:
      (line of the body, what was changed, source): by the order of `SWAPS`, then integers, then
      names of other functions of the program.
    """
    lines = source.splitlines(keepends=True)
    first = first_line(source, function)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    others = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    changes = [(token, new) for old, new in SWAPS for token in tokens if token.string == old]
    changes += [(t, str(int(t.string) + 1)) for t in tokens if t.string.isdecimal()]
    changes += [(token, "str") for token in tokens if token.string in others - {function}]
    for token, new in changes:
        row, start = token.start
        changed = [*lines]
        changed[row - 1] = lines[row - 1][:start] + new + lines[row - 1][token.end[1] :]
        mutant = "".join(changed)
        if row >= first and differs(mutant, source):
            yield row - first + 1, f"{token.string} → {new}", mutant


def first_line(source: str, function: str) -> int:
    """Where the body of a function begins, behind its description."""
    body = next(
        node.body
        for node in reversed(ast.parse(source).body)
        if isinstance(node, ast.FunctionDef) and node.name == function
    )
    text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1 if text else 0].lineno


def differs(mutant: str, source: str) -> bool:
    """Whether a program compiles and is another one."""
    try:
        return ast.dump(ast.parse(mutant)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
