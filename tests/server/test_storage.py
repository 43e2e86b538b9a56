"""Files of the server: whole after a kill, and read as they were written."""

import os

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.server import Refused
from rlvr_jax.server.storage import (
    Log,
    Record,
    named_arrays,
    read_about,
    read_arrays,
    read_log,
    tree_of,
    write_arrays,
)

RECORDS = [
    Record(0, "create_model", b"{}"),
    Record(1, "optim_step", b"x" * 1000),
    Record(2, "a", b""),
]


def test_a_log_is_read_as_it_was_written(tmp_path):
    log = Log(tmp_path / "log")
    log.append(*RECORDS[:2])
    log.close()
    again = Log(tmp_path / "log")
    again.append(RECORDS[2])
    again.close()
    assert list(read_log(tmp_path / "log")) == RECORDS


@pytest.mark.parametrize("lost", [1, 20, 60])
def test_a_record_that_is_cut_off_is_left_out_and_written_over(tmp_path, lost):
    log = Log(tmp_path / "log")
    log.append(*RECORDS[:2])
    log.close()
    whole = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(whole[:-lost])
    assert list(read_log(tmp_path / "log")) == RECORDS[:1]
    again = Log(tmp_path / "log")
    again.append(RECORDS[1])
    again.close()
    assert (tmp_path / "log").read_bytes() == whole


def test_a_record_with_another_byte_ends_the_log(tmp_path):
    log = Log(tmp_path / "log")
    log.append(*RECORDS)
    log.close()
    content = bytearray((tmp_path / "log").read_bytes())
    content[200] ^= 1
    (tmp_path / "log").write_bytes(content)
    assert list(read_log(tmp_path / "log")) == RECORDS[:1]


def test_arrays_keep_their_names_shapes_and_types(tmp_path):
    tree = {"a": [jnp.arange(6).reshape(2, 3), jnp.float32(2.0)], "b": jnp.ones((0, 2))}
    write_arrays(tmp_path / "deep" / "file", named_arrays("tree", tree), {"number": 3})
    assert read_about(tmp_path / "deep" / "file") == {"number": 3}
    found = tree_of("tree", read_arrays(tmp_path / "deep" / "file"), tree)
    for name, array in named_arrays("", found).items():
        np.testing.assert_array_equal(array, named_arrays("", tree)[name])
        assert array.dtype == named_arrays("", tree)[name].dtype
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


def test_arrays_of_another_shape_are_refused():
    arrays = named_arrays("tree", {"a": jnp.ones(3)})
    for like in ({"a": jnp.ones(4)}, {"b": jnp.ones(3)}):
        with pytest.raises(Refused, match=r"the stored tree\['.'\] must have the shape"):
            tree_of("tree", arrays, like)


def test_a_log_on_a_full_disk_is_as_before(tmp_path, monkeypatch):
    log = Log(tmp_path / "log")
    log.append(RECORDS[0])
    write = os.write
    monkeypatch.setattr(os, "write", lambda number, content: write(number, content[:30]))
    with pytest.raises(OSError, match="No space left on device"):
        log.append(RECORDS[1])
    monkeypatch.undo()
    log.append(RECORDS[2])
    log.close()
    assert list(read_log(tmp_path / "log")) == [RECORDS[0], RECORDS[2]]
