"""The package as others get it: cheap to import, whole in a wheel, installed in any way."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import rlvr_jax

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rlvr_jax"
FOLDERS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_")
SUBPACKAGES = [
    name for name in FOLDERS if name != "experiments"
]  # commands, which hand out nothing
PACKAGES = sorted(
    {".".join(path.parent.relative_to(PACKAGE).parts) for path in PACKAGE.glob("*/**/__init__.py")}
    | set(FOLDERS)  # the kernels have no `__init__.py`
)

# What must hold wherever the package lies: run in a fresh interpreter, far from the checkout.
LOOK = """
import importlib, importlib.util, pathlib, sys
import rlvr_jax
for subpackage in sys.argv[1:]:
    importlib.import_module(f"rlvr_jax.{subpackage}")
import rlvr_jax.kernels.token_stats
package = pathlib.Path(rlvr_jax.__file__).parent
print(package)
print(len(list((package / "tasks/base_models").glob("*/config.json"))))
print(len(list((package / "analysis").glob("*.html"))))
print(importlib.util.find_spec("kernels"))
"""


def python(*arguments: str | Path, interpreter: str | Path = sys.executable, **options) -> str:
    """Runs an interpreter and returns what it prints; its errors become this test's."""
    command = [interpreter, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, **options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def shipped(package: Path) -> set[str]:
    """All files of the package, those behind the link to the kernels included."""
    names = {
        Path(folder, name).relative_to(package.parent).as_posix()
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
    }
    return {name for name in names if "__pycache__" not in name}


def test_importing_the_package_loads_nothing_heavy():
    code = """
import sys
before = set(sys.modules)
import rlvr_jax
print(*set(sys.modules) - before)
"""
    modules = {module.partition(".")[0] for module in python("-c", code, cwd=ROOT).split()}
    assert "rlvr_jax" in modules
    assert modules - {"rlvr_jax"} <= sys.stdlib_module_names


@pytest.mark.parametrize("name", rlvr_jax.__all__)
def test_a_public_name_can_be_used(name):
    assert getattr(rlvr_jax, name) is not None
    assert name in dir(rlvr_jax)


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_a_subpackage_can_be_used_and_hands_out_what_it_names(subpackage):
    module = getattr(rlvr_jax, subpackage)
    assert subpackage in dir(rlvr_jax)
    for name in getattr(module, "__all__", ()):
        assert hasattr(module, name), name


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = rlvr_jax.no_such_name


def test_the_kernels_are_a_subpackage_and_not_a_package_of_their_own():
    assert (PACKAGE / "kernels").readlink() == Path("../kernels")
    assert not (ROOT / "kernels/__init__.py").exists()
    module = importlib.import_module("rlvr_jax.kernels.token_stats")
    assert Path(module.__file__) == PACKAGE / "kernels/token_stats.py"


def test_the_setup_names_every_subpackage_and_the_subpackages_in_it():
    listed = re.search(r"SUBPACKAGES = \[(.*?)\]", (ROOT / "setup.py").read_text(), re.DOTALL)
    assert re.findall(r'"([\w.]+)"', listed[1]) == PACKAGES


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what is needed to build, as building writes beside the sources."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, copy)
    for name in ("experiments", "kernels", "rlvr_jax"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignore)
    return copy


@pytest.fixture(scope="module")
def isolation() -> list[str]:
    """Builds with the setuptools that is here, if it is new enough; else pip gets one."""
    try:
        enough = int(metadata.version("setuptools").partition(".")[0]) >= 77
    except metadata.PackageNotFoundError:
        enough = False
    return ["--no-build-isolation"] if enough else []


def check_installation(interpreter: str | Path, tmp_path: Path, **environment) -> tuple[Path, str]:
    """Imports everything in `tmp_path`; returns where the package lies and what `kernels` is."""
    # What stands on the path of the tests' own process would hide what was installed.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"cwd": tmp_path, "env": inherited | environment}
    out = python("-W", "ignore", "-c", LOOK, *PACKAGES, interpreter=interpreter, **options)
    package, models, pages, kernels = out.splitlines()[-4:]
    assert int(models) == len(list((PACKAGE / "tasks/base_models").glob("*/config.json"))) > 0
    assert int(pages) == len(list((PACKAGE / "analysis").glob("*.html"))) > 0
    return Path(package), kernels


def test_the_experiments_are_a_subpackage_too():
    assert (PACKAGE / "experiments").readlink() == Path("../experiments")


@pytest.mark.slow  # builds, and imports everything in a fresh interpreter
def test_a_wheel_holds_the_package_alone_and_whole(checkout, isolation, tmp_path):
    pip = ["-m", "pip", "wheel", "--quiet", "--no-deps", *isolation]
    python(*pip, "--wheel-dir", tmp_path, checkout)
    (path,) = tmp_path.glob("*.whl")
    assert path.name.startswith(f"rlvr_jax-{rlvr_jax.__version__}-py3-none-any")
    site = tmp_path / "site"
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(site)
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == shipped(checkout / "rlvr_jax")
    assert {"rlvr_jax/py.typed", "rlvr_jax/kernels/py.typed"} <= names
    package, kernels = check_installation(sys.executable, tmp_path, PYTHONPATH=str(site))
    assert package == site / "rlvr_jax"
    assert kernels == "None"
    empty = tmp_path / "empty"
    empty.mkdir()
    inherited = os.environ | {"PYTHONPATH": str(site)}
    line = ["-m", "rlvr_jax", "quickstart", "--steps", "2"]
    shown = python(*line, cwd=empty, env=inherited)
    assert "report: runs/quickstart/report.html" in shown
    assert "python -m rlvr_jax train --method dapo" in shown
    assert (empty / "runs/quickstart/clip_cov/policy/README.md").is_file()


@pytest.mark.slow  # builds, and imports everything in a fresh interpreter
@pytest.mark.parametrize("mode", ["lenient", "strict", "compat"])
def test_an_editable_installation_finds_the_kernels(checkout, isolation, tmp_path, mode):
    python("-m", "venv", "--without-pip", tmp_path / "environment")
    interpreter = tmp_path / "environment/bin/python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(python("-c", code, interpreter=interpreter).strip())
    # Only the folder is added: what is installed as editable here stays unknown there.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    pip = ["-m", "pip", "--python", interpreter, "install", "--quiet", "--no-deps", *isolation]
    settings = ["--config-settings", f"editable_mode={mode}"]
    python(*pip, *settings, "--editable", checkout)
    package, kernels = check_installation(interpreter, tmp_path)
    assert package.is_relative_to(checkout)
    # "compat" puts the whole checkout on the path, as running from its root does.
    assert kernels == "None" or mode == "compat"
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for line in (["-m", "rlvr_jax"], [interpreter.with_name("rlvr-jax")]):
        shown = python(*line, "train", "--help", interpreter=interpreter, cwd=empty, env=inherited)
        assert "--run-dir" in shown
