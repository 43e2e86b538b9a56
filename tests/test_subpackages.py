"""Who may import whom: the subpackages of the library form an order, and imports go down it."""

import ast
import functools
import graphlib
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

import pytest

import rlvr_jax

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rlvr_jax"

# From the bottom to the top; each subpackage may import itself and those after it in its entry.
TABLE = {
    "keys": set(),
    "public": set(),
    "ranges": set(),
    "arguments": {"ranges"},
    "types": {"arguments", "ranges"},
    "own": set(),
    "connections": set(),
    "console": {"own"},
    "laws": set(),
    "pipes": set(),
    "sandbox": {"pipes"},
    "verifiers": {"sandbox"},
    "tools": {"arguments", "own", "ranges", "sandbox", "verifiers"},
    "kernels": {"types"},
    "objectives": {"arguments", "keys", "kernels", "laws", "public", "types"},
    "judges": {"arguments", "connections", "verifiers", "types"},
    "analysis": {"arguments", "ranges", "types"},
    "policy": {"types", "kernels"},
    "parallel": {"types", "policy"},
    "tasks": {"arguments", "laws", "own", "pipes", "ranges", "verifiers", "tools"},
    "rollout": {"arguments", "connections", "types", "keys", "kernels", "objectives", "policy"},
}
TABLE["training"] = {*TABLE["rollout"], "parallel", "rollout"}
TABLE["experience"] = {*TABLE} - {"kernels", "own", "pipes"}
TABLE["methods"] = {*TABLE} - {"analysis", "public", "sandbox"}
TABLE["runs"] = set(TABLE)
# What is done with runs; none imports another.
TABLE |= {subpackage: set(TABLE) for subpackage in ("boards", "diagnosis", "pods", "server")}
EXPERIMENTS = set(TABLE)
# They are also a subpackage of the package, so that the wheel has them.
TABLE["experiments"] = EXPERIMENTS
TABLE["__main__"] = {"methods", "pipes", "tasks"}
# Documented names of commands that stand elsewhere; nothing imports them.
COMMANDS = {
    "rlvr_jax/parallel/compile.py": {"pods"},
}


MOST_FILES = 40
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
}


def code(tree: ast.AST, typed: bool = False) -> Iterator[ast.AST]:
    """All nodes of a file, in functions too; what only a type checker reads if it is asked for."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        unread = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
        if typed or not unread:
            yield from code(child, typed)


@functools.cache
def imports(source: str, package: str = "", typed: bool = False) -> list[tuple[int, str]]:
    """Lines and full names of what a file imports, `from a import b` as "a.b"."""
    found = []
    for node in code(ast.parse(source), typed):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Attribute) and _names(node.value, "rlvr_jax"):
            found.append((node.lineno, f"rlvr_jax.{node.attr}"))  # it loads subpackages when asked
    return found


def _names(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def subpackage_of(name: str) -> str | None:
    """The subpackage of a full name, None if it is none of ours."""
    top, _, rest = name.partition(".")
    if top != "rlvr_jax" or not rest or rest.startswith("__"):
        return None
    return rlvr_jax._PUBLIC.get(rest, rest).split(".")[0]


def files(subpackage: str) -> list[Path]:
    path = PACKAGE / subpackage
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def package_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts[:-1])


def against(allowed: set[str], paths: list[Path]) -> list[str]:
    """The imports of these files that are not of the allowed subpackages."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in paths
        for line, name in imports(path.read_text(), package_of(path))
        if subpackage_of(name)
        not in {None, *allowed, *COMMANDS.get(str(path.relative_to(ROOT)), ())}
    ]


def test_every_subpackage_stands_in_the_table():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert folders | modules == set(TABLE)


def test_the_table_has_no_circle():
    assert list(graphlib.TopologicalSorter(TABLE).static_order())


@pytest.mark.parametrize("subpackage", TABLE)
def test_a_subpackage_imports_only_what_stands_behind_it(subpackage):
    assert files(subpackage)
    assert against(TABLE[subpackage] | {subpackage}, files(subpackage)) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_imports_a_command(command):
    name = command.removesuffix(".py").replace("/", ".")
    everything = [*PACKAGE.rglob("*.py"), *(ROOT / "experiments").glob("*.py")]
    found = [imports(path.read_text(), package_of(path)) for path in everything]
    assert not any(other.startswith(name) for lines in found for _, other in lines)


def test_the_package_itself_imports_no_subpackage():
    assert against(set(), [PACKAGE / "__init__.py"]) == []


def test_no_files_import_each_other_in_a_circle():
    """What only a type checker reads counts: it ties two files all the same."""
    graph = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[module] = set()
        for _, name in imports(path.read_text(), package_of(path), typed=True):
            while name not in MODULES and "." in name:
                name = name.rpartition(".")[0]
            # A package loads its modules, and these see one another through it.
            if name in MODULES and not f"{module}.".startswith(f"{name}."):
                graph[module].add(name)
    assert list(graphlib.TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("top", ["rlvr_jax", "kernels", "experiments"])
def test_no_folder_is_a_hall_of_a_hundred_doors(top):
    folders = {path.parent for path in (ROOT / top).rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    large = {name for name, size in sizes.items() if size > MOST_FILES}
    assert large <= {"rlvr_jax/methods"}


def test_experiments_import_subpackages():
    # A benchmark may take the clock of another one.
    allowed = {*EXPERIMENTS, "experiments"}
    assert against(allowed, sorted((ROOT / "experiments").rglob("*.py"))) == []


@pytest.mark.parametrize("forbidden", ["experiments", "kernels", "tests"])
def test_nobody_imports_from_beside_the_package(forbidden):
    """`kernels` at the top is another project's name; ours is `rlvr_jax.kernels`."""
    paths = [*(path for subpackage in TABLE for path in files(subpackage)), PACKAGE / "__init__.py"]
    paths += sorted((ROOT / "experiments").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in paths
        for line, name in imports(path.read_text(), package_of(path))
        if name.split(".")[0] == forbidden
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "subpackages"),
    [
        ("import rlvr_jax.runs.loop", ["runs"]),
        ("from rlvr_jax import policy, token_stats", ["policy", "kernels"]),
        ("def f():\n    from rlvr_jax.tasks import Task", ["tasks"]),
        ("import rlvr_jax\nrlvr_jax.objective(), rlvr_jax.__version__", ["objectives"]),
        ("from ..training import loop", ["training"]),
        ("from . import masked", ["objectives"]),
        ("if TYPE_CHECKING:\n    from rlvr_jax.types import Recipe", []),
        ("import jax, rlvr_jax_other.training", []),
    ],
)
def test_imports_are_found_wherever_they_stand(source, subpackages):
    found = [subpackage_of(name) for _, name in imports(source, "rlvr_jax.objectives")]
    assert [subpackage for subpackage in found if subpackage] == subpackages
