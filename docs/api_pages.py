"""The pages of the API: a table of public names per subpackage, and a page per module."""

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def api_index(subpackages: Mapping[str, str]) -> str:
    """The first page: what each subpackage is for."""
    lines = ["# API reference", ""]
    lines += ["Every public module has a page. Begin with the table of its subpackage.", ""]
    lines += ["| subpackage | purpose |", "|---|---|"]
    lines += [
        f"| [`rlvr_jax.{name}`]({name}/index.md) | {text} |" for name, text in subpackages.items()
    ]
    return "\n".join([*lines, "", "## rlvr_jax", "", *_exports("rlvr_jax", "")])


def api_pages(name: str, text: str) -> dict[str, str]:
    """The pages of a subpackage by address: its tables, and its modules."""
    package = f"rlvr_jax.{name}"
    own = dict(_modules(name))
    about = inspect.getdoc(importlib.import_module(package)) or text
    lines = [f"# {package}", "", *about.splitlines(), ""]
    if names := _exports(package, name):
        lines += ["## Names to import from here", "", *names, ""]
    lines += ["## Modules", "", "| module | purpose |", "|---|---|"]
    lines += [f"| [`{module}`]({module}.md) | {first} |" for module, first in own.items()]
    pages = {f"api/{name}/index.md": "\n".join(lines)}
    for module in own:
        shown = _collected(f"{package}.{module}")
        pages[f"api/{name}/{module}.md"] = f"# {package}.{module}\n\n::: {shown}\n"
    return pages


def _modules(name: str) -> Iterator[tuple[str, str]]:
    """Public modules of a subpackage and their first lines; papers have pages of their own."""
    folder = ROOT / "rlvr_jax" / name
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        private = any(part.startswith("_") for part in parts)
        if not private and not (name == "methods" and len(parts) > 1):
            words = ast.get_docstring(ast.parse(path.read_text())) or ""
            yield ".".join(parts), _cell(words)


def _exports(package: str, name: str) -> list[str]:
    """A table of the names that a package exports, with links to the modules that define them."""
    found = importlib.import_module(package)
    rows = []
    for public in getattr(found, "__all__", []):
        value = getattr(found, public)
        module = getattr(value, "__module__", "") or ""
        if inspect.ismodule(value) or not module.startswith("rlvr_jax."):
            continue
        _, subpackage, *rest = module.split(".")
        page = f"{'' if name else subpackage + '/'}{'.'.join(rest)}.md"
        linked = subpackage == (name or subpackage) and rest and not rest[-1].startswith("_")
        defined = getattr(value, "__name__", public)
        shown = f"[`{public}`]({page}#{_collected(module)}.{defined})" if linked else f"`{public}`"
        rows.append(f"| {shown} | {_cell(inspect.getdoc(value) or '')} |")
    return ["| name | purpose |", "|---|---|", *rows] if rows else []


def _collected(module: str) -> str:
    """The name by which mkdocstrings finds a module: it does not follow the link of kernels/."""
    return module.removeprefix("rlvr_jax.") if module.startswith("rlvr_jax.kernels") else module


def _cell(words: str) -> str:
    """The first sentence of a docstring, as a cell of a table."""
    return " ".join(words.split("\n\n")[0].split()).replace("|", "\\|")
