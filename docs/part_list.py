"""Writes the lists of parts in experience.md from the first lines of their docstrings.

python docs/part_list.py
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "experience.md"
_KINDS = {
    "Curriculum": "Curricula",
    "Draw": "Samplers",
    "Stage": "Batch transforms",
    "View": "Views",
}
_FOLDERS = ("experience", "methods")
_MOST = 4  # methods that a row names
_BEGIN, _END = "<!-- made by docs/part_list.py -->", "<!-- end of the list -->"


def part_list() -> str:
    """The lists: a table for each kind, first the parts that several methods share."""
    package = ROOT / "rlvr_jax"
    paths = [path for folder in _FOLDERS for path in sorted((package / folder).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    methods = {path.stem: _names(tree) for path, tree in trees.items() if _is_method(tree)}
    lines = []
    for kind, title in _KINDS.items():
        lines += [f"### {title}", "", "| part | description | methods |", "|---|---|---|"]
        for path, tree in trees.items():
            lines += (_row(path, node, methods) for node in _makers(tree, kind))
        lines.append("")
    return "\n".join(lines)


def _is_method(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Assign) and _targets(node) == ["METHOD"] for node in tree.body)


def _targets(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _names(tree: ast.Module) -> set[str]:
    """Functions of the library that a file imports, and its own."""
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    library = [node for node in imports if (node.module or "").startswith("rlvr_jax.")]
    return own | {alias.name for node in library for alias in node.names}


def _makers(tree: ast.Module, kind: str) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name):
            made = any("part" in ast.unparse(one) for one in node.decorator_list)
            if node.returns.id == kind and made and not node.name.startswith("_"):
                yield node


def _row(path: Path, node: ast.FunctionDef, methods: dict[str, set[str]]) -> str:
    text = (ast.get_docstring(node) or "").split("\n\n")[0]
    # The link leads to the file; a reference to another name of that file is left out.
    text = re.sub(r"; see `\w+`\.$|; see `\w+`(?=\.)", ".", " ".join(text.split()))
    users = sorted(name for name, names in methods.items() if node.name in names)
    named = [f"`{name}`" for name in users[:_MOST]]
    more = [f"{len(users) - _MOST} more"] if len(users) > _MOST else []
    link = f"[`{node.name}`](../{path.relative_to(ROOT)})"
    return f"| {link} | {text.replace('|', chr(92) + '|')} | {', '.join([*named, *more])} |"


def with_list(page: str) -> str:
    """The page with the lists between the two marks."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{part_list()}\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_list(PAGE.read_text()))
