"""The forms of `token_stats` that every test of its mathematics runs over."""

import pytest

from rlvr_jax.kernels import plan


@pytest.fixture(params=["reference", "xla", "xla in tiles"])
def form(request, monkeypatch):
    """Name of an implementation; the tiled form gets tiles small enough for small arrays."""
    if request.param == "xla in tiles":
        small = [
            sizes._replace(forward=(8, 16), backward=(8, 16), wave=(16 * 40, 16))
            for sizes in plan.TILES
        ]
        monkeypatch.setattr(plan, "TILES", tuple(small))
        monkeypatch.setattr(plan, "AT_ONCE_VOCABULARY", 0)
    return request.param.split()[0]
