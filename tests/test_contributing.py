"""The way that CONTRIBUTING.md shows is one that can be gone."""

import re
from pathlib import Path

import golden_vectors as golden
import numpy as np

from rlvr_jax import methods

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_file_of_the_page_is_a_method(tmp_path, monkeypatch):
    ((name, text),) = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    own = methods.method(name)
    assert own.recipe.__name__ == name and own.changes == "advantage, surrogate"
    done = golden.evaluate(own.recipe(), "a")
    assert np.isfinite(done.loss) and np.any(done.dlogits)
    plain = golden.evaluate(own.recipe(clip_high=0.2), "a")
    assert done.loss != plain.loss


def test_the_paths_of_the_page_are_there():
    paths = re.findall(r"`((?:tests|rlvr_jax|docs)/[\w/]*(?:\.py|\.md)?)`", PAGE)
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
