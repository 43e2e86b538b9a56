"""Programs start anew with huge pages, once, and only as programs."""

import importlib
import os
import sys
from pathlib import Path

import pytest

import experiments


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Asks for huge pages as an import by `python -m` does; gives the processes asked for."""
    pages = tmp_path / "enabled"
    pages.write_text("always [madvise] never\n")
    calls = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "experiments.train", "--steps", "3"])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)

    def start(argument="-m", setting=None):
        monkeypatch.setattr(sys, "argv", [argument, "--steps", "3"])
        if setting:
            pages.write_text(setting)
        monkeypatch.setattr(experiments, "_PAGES", pages)
        experiments._use_huge_pages()
        return calls

    return start


def test_the_same_command_is_started_with_the_setting(started):
    ((program, arguments, environment),) = started()
    assert program == arguments[0] == sys.executable
    assert arguments[1:] == ["-m", "experiments.train", "--steps", "3"]
    assert environment == os.environ | {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def test_an_import_does_not_replace_the_process(started):
    calls = started("/usr/bin/pytest")
    importlib.reload(experiments)
    assert calls == []


@pytest.mark.parametrize("setting", ["[always] madvise never", "always madvise [never]"])
def test_where_it_changes_nothing_nothing_is_started(started, setting):
    assert started(setting=setting) == []


def test_who_has_settings_keeps_them(started, monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=1")
    assert started() == []


def test_no_other_system_is_asked(started, monkeypatch):
    monkeypatch.setattr(experiments, "_PAGES", Path("/nowhere"))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert started() == []
