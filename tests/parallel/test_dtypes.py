"""The faster dtype of this machine: measured once and kept."""

import jax
import pytest

from rlvr_jax.parallel import faster_dtype

MODULE = "rlvr_jax.parallel.dtypes"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file of the result, in an empty cache, on a machine without an accelerator."""
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setattr(f"{MODULE}.has_accelerator", lambda: False)
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path / f"bfloat16_is_faster-{jax.__version__}.txt"
    jax.config.update("jax_compilation_cache_dir", before)


def of_products(monkeypatch, float32, bfloat16):
    seconds = {"float32": float32, "bfloat16": bfloat16}
    monkeypatch.setattr(f"{MODULE}._seconds", seconds.__getitem__)


@pytest.mark.parametrize(("float32", "wanted"), [(2.0, "bfloat16"), (1.2, "float32")])
def test_bfloat16_must_pay_for_its_roundings(kept, monkeypatch, float32, wanted):
    of_products(monkeypatch, float32, 1.0)
    assert faster_dtype() == wanted
    of_products(monkeypatch, 1 / float32, 1.0)  # kept, not measured again
    assert faster_dtype() == wanted
    kept.write_text("half a")  # a file that another process has damaged
    assert faster_dtype() == "float32"


def test_an_accelerator_is_not_measured(monkeypatch):
    monkeypatch.setattr(f"{MODULE}.has_accelerator", lambda: True)
    monkeypatch.setattr(f"{MODULE}._seconds", None)
    assert faster_dtype() == "bfloat16"


def test_the_products_of_this_machine_are_measured(kept):
    assert faster_dtype() in ("float32", "bfloat16")
    assert kept.is_file()
