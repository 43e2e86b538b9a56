"""Writes names.md, the list of the names that four packages export, with their first sentences.

python docs/names_page.py
"""

import ast
import importlib
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "names.md"
PACKAGES = {
    "rlvr_jax": "the names of most programs",
    "rlvr_jax.objectives": "the parts of a loss, and statistics for new parts",
    "rlvr_jax.experience": "the parts that make a batch, and rewards of its rows",
    "rlvr_jax.training": "the update of a policy",
}
_HEAD = """# Names to import

This page lists all names that `rlvr_jax`, `rlvr_jax.objectives`, `rlvr_jax.experience` and
`rlvr_jax.training` export. Import them from the package, not from its modules:

```python
from rlvr_jax import exact_gradient, methods
from rlvr_jax.objectives import group_normalized, masked_mean, objective, part
```

Other packages are in the API reference of the site. `python docs/names_page.py` writes this page.
"""


def names_page() -> str:
    """The page: a table for each package, and for each folder of a large one."""
    lines = [_HEAD]
    lines += [f"- [{name}](#{name.replace('.', '')}): {text}" for name, text in PACKAGES.items()]
    for package in PACKAGES:
        lines += ["", f"## {package}"]
        groups = _groups(package)
        for folder, rows in groups.items():
            lines += ["", f"### {folder}"] if len(groups) > 1 else []
            lines += ["", "| name | description |", "|---|---|", *rows]
    return "\n".join([*lines, ""])


def _groups(package: str) -> dict[str, list[str]]:
    """The rows of a package's names, by the folder or file that defines them."""
    module = importlib.import_module(package)
    constants = _constants(package)
    groups: dict[str, list[str]] = {}
    for name in module.__all__:
        if name == "__version__":
            continue
        value = getattr(module, name)
        folder, text = constants.get(name) or ("", "")
        if inspect.isclass(value) or inspect.isfunction(value):
            folder, text = _folder(package, value.__module__), inspect.getdoc(value) or ""
        first = " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")
        groups.setdefault(folder, []).append(f"| `{name}` | {first} |")
    return dict(sorted(groups.items()))


def _folder(package: str, module: str) -> str:
    """The heading of a name: its folder below the package, if the package has folders."""
    if package in ("rlvr_jax", "rlvr_jax.training"):
        return ""
    folder, _, file = module.removeprefix(f"{package}.").partition(".")
    return folder if module.startswith(package) and file else "general"


def _constants(package: str) -> dict[str, tuple[str, str]]:
    """Constants and types of functions, with their folder and the text below them."""
    found = {}
    folder = ROOT.joinpath(*package.split("."))
    for path in sorted(folder.rglob("*.py")) if package != "rlvr_jax" else []:
        module = ".".join([package, *path.relative_to(folder).with_suffix("").parts])
        found |= {
            name: (_folder(package, module), text)
            for name, text in _described(ast.parse(path.read_text()).body)
        }
    return found


def _described(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, below in itertools.pairwise(body):
        constant = below.value if isinstance(below, ast.Expr) else None
        if isinstance(node, ast.Assign) and isinstance(constant, ast.Constant):
            yield ast.unparse(node.targets[0]), str(constant.value)


if __name__ == "__main__":
    PAGE.write_text(names_page())
