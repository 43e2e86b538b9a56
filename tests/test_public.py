"""The names that subpackages export are those that the docs use."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import rlvr_jax
from docs.names_page import PACKAGES, PAGE, names_page
from rlvr_jax import methods
from rlvr_jax.arguments import annotations_of, documented, hints_of

ROOT = Path(__file__).parents[1]
OF_OBJECTIVES = sorted(
    f"objectives.{path.name}" for path in (ROOT / "rlvr_jax/objectives").iterdir() if path.is_dir()
)
OF_OBJECTIVES = [name for name in OF_OBJECTIVES if "__" not in name]
# The kernels are a folder that a link leads to, and its files are what is imported.
SUBPACKAGES = [subpackage for subpackage in rlvr_jax._SUBPACKAGES if subpackage != "kernels"]


@pytest.mark.parametrize("subpackage", [*SUBPACKAGES, *OF_OBJECTIVES])
def test_a_subpackage_says_what_it_hands_out(subpackage):
    module = importlib.import_module(f"rlvr_jax.{subpackage}")
    names = module.__all__
    assert names and len(set(names)) == len(names)
    modules = {name for name in names if isinstance(getattr(module, name), ModuleType)}
    # Two subpackages are known by the names of their files.
    assert modules <= {"lora", "stages", "curricula", "draws"}


OF_EXPERIENCE = ["experience.draws", "experience.draws.trees", "experience.curricula"]


@pytest.mark.parametrize("subpackage", [*OF_OBJECTIVES, *OF_EXPERIENCE])
def test_an_overview_names_what_is_there(subpackage):
    module = importlib.import_module(f"rlvr_jax.{subpackage}")
    named = set(re.findall(r"`([a-zA-Z]\w*)`", module.__doc__ or ""))
    assert named <= set(dir(module)) | {"penalty", "term", "History"}


def test_objectives_hand_out_their_parts_and_nothing_that_they_import():
    from rlvr_jax import objectives

    assert {"ppo_clip", "group_normalized", "objective", "Spec"} <= set(objectives.__all__)
    imported = {"public_names", "jnp", "np", "jax", "dataclass", "field", "partial", "Callable"}
    assert not imported & set(objectives.__all__)


def programs():
    """Every block of Python in README, docs and notebooks."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            yield str(page.relative_to(ROOT)), block
    for page in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(page.read_text())["cells"]:
            if cell["cell_type"] == "code":
                yield page.name, "".join(cell["source"])


def test_what_docs_import_is_handed_out():
    found, missing = 0, []
    for page, block in programs():
        for node in ast.walk(ast.parse(block)):
            if not isinstance(node, ast.ImportFrom) or not node.module.startswith("rlvr_jax"):
                continue
            module = importlib.import_module(node.module)
            handed = getattr(module, "__all__", None)
            for alias in node.names:
                found += 1
                is_subpackage = node.module == "rlvr_jax" and alias.name in rlvr_jax._SUBPACKAGES
                if handed is not None and alias.name not in handed and not is_subpackage:
                    missing.append(f"{page}: {node.module}.{alias.name}")
    assert found > 20 and missing == []


def test_the_page_of_names_is_that_of_the_code():
    assert names_page() == PAGE.read_text(), "python docs/names_page.py"


@pytest.mark.parametrize("package", PACKAGES)
def test_docs_describe_every_name_that_is_handed_out(package):
    described = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", names_page(), re.MULTILINE))
    names = {name for name in importlib.import_module(package).__all__ if name[0] != "_"}
    assert names <= set(described)
    assert [name for name in names if len(described[name]) < 10] == []


def with_its_arguments(function):
    """The function below decorators whose arguments a caller writes (`arguments_of` adds some)."""
    return inspect.unwrap(function, stop=lambda each: "__signature__" in vars(each))


def exported_functions(least):
    """Functions with at least so many arguments that a subpackage exports, by their name."""
    for subpackage in SUBPACKAGES:
        module = importlib.import_module(f"rlvr_jax.{subpackage}")
        for name in module.__all__:
            function = with_its_arguments(getattr(module, name))
            if inspect.isfunction(function):
                arguments = list(inspect.signature(function).parameters)
                if len(arguments) >= least:
                    yield f"{subpackage}.{name}", function, arguments


def has_words(text):
    """Whether a description is more than a symbol, a range or a shape."""
    return re.search(r"[a-z]{3}", text) is not None


def undescribed(function, arguments):
    """Arguments that neither the `Args` of a function nor their types describe in words."""
    typed = {
        name
        for name, hint in hints_of(function).items()
        if any(isinstance(each, str) for each in annotations_of(hint))
    }
    known = {name for name, text in documented(function).items() if has_words(text)} | typed
    return [name for name in arguments if name not in known]


def public_functions(subpackage, least):
    """Functions with at least so many arguments of all modules of a subpackage, by their name."""
    package = importlib.import_module(f"rlvr_jax.{subpackage}")
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        for name, found in vars(module).items():
            function = with_its_arguments(found) if callable(found) else found
            if inspect.isfunction(function) and function.__module__ == info.name and name[0] != "_":
                arguments = list(inspect.signature(function).parameters)
                if len(arguments) >= least:
                    yield f"{info.name}.{name}", function, arguments


def without_description(found):
    missing = {name: undescribed(function, arguments) for name, function, arguments in found}
    return {name: names for name, names in missing.items() if names}


def test_exported_functions_describe_all_their_arguments():
    found = list(exported_functions(4))
    assert len(found) > 80
    assert without_description(found) == {}


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_public_functions_describe_all_their_arguments(subpackage):
    assert without_description(public_functions(subpackage, 4)) == {}


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_descriptions_of_arguments_have_words(subpackage):
    wordless = {
        name: [argument for argument, text in documented(function).items() if not has_words(text)]
        for name, function, _ in public_functions(subpackage, 1)
    }
    assert {name: found for name, found in wordless.items() if found} == {}


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_args_name_no_argument_that_is_gone(subpackage):
    stale = {
        name: documented(function).keys() - set(arguments)
        for name, function, arguments in public_functions(subpackage, 0)
    }
    assert {name: found for name, found in stale.items() if found} == {}


def test_hyperparameters_of_all_methods_are_described():
    recipes = {name: methods.method(name).recipe for name in methods.names()}
    found = ((name, own, list(inspect.signature(own).parameters)) for name, own in recipes.items())
    assert without_description(found) == {}
