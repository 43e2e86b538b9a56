"""Command lines of README and docs are ones that can be typed: each is read, and those for a laptop
take a step."""

import argparse
import importlib
import inspect
import re
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest
import training_runs
import tyro

from experiments import compare
from rlvr_jax import __main__
from rlvr_jax.parallel.topologies import describe
from rlvr_jax.pods import papers
from rlvr_jax.runs import parse_config

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINE = re.compile(r"^    python -m ((?:experiments|rlvr_jax)[\w.]*)( .*)?$", re.MULTILINE)
# These have no options but names of what they show.
WITHOUT_OPTIONS = {"rlvr_jax", "rlvr_jax.tasks", "rlvr_jax.sandbox"}


def every_command():
    """Module and options of every command line, each once."""
    found = {}
    for page in PAGES:
        for module, options in LINE.findall(page.read_text().replace("\\\n", " ")):
            words = shlex.split(options.partition("  #")[0].partition(" > ")[0])
            if "certain_tokens" in words:
                continue  # the reader's own method, which test_contributing.py writes and trains
            if module == "rlvr_jax" and words and words[0] in __main__.COMMANDS:
                module, *words = f"experiments.{words[0]}", *words[1:]
            found[(module, *words)] = None
    return [(module, list(words)) for module, *words in found]


COMMANDS = every_command()
RUNS = [words for module, words in COMMANDS if module == "experiments.train"]
# What people bring themselves: a folder, questions, a judge.
THEIRS = ("FOLDER", "POLICY", "~/", "parquet:", "jsonl:", "verdicts:", "my_questions:", "gsm8k")
THEIRS += (".json",)
ON_A_LAPTOP = [
    words
    for words in RUNS
    if "--help" not in words and not any(x in word for word in words for x in THEIRS)
]


class Read(Exception):
    """A command line has been understood."""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The pages' own programs, in the current directory; they are forgotten afterwards."""
    written = []
    for page in PAGES:
        for name, text in re.findall(
            r"```python\n# (\w+)\.py(.*?)```", page.read_text(), re.DOTALL
        ):
            (tmp_path / f"{name}.py").write_text(text.partition("\n")[2])
            written.append(name)
    monkeypatch.chdir(tmp_path)
    yield
    for name in written:
        sys.modules.pop(name, None)


@pytest.fixture
def reading(programs, monkeypatch):
    """Programs stop behind their command line."""
    cli, parse = tyro.cli, argparse.ArgumentParser.parse_args

    def stops(read):
        def instead(*given, **named):
            read(*given, **named)
            raise Read

        return instead

    monkeypatch.setattr(tyro, "cli", stops(cli))

    def explained(parser, *given):
        parse(parser, *given)
        assert [action.dest for action in parser._actions if not action.help] == []

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stops(explained))
    # A paper's own options stand before those of a run; this one ends before them.
    monkeypatch.setattr(
        papers, "compiled", stops(lambda paper, topology, options: describe(topology))
    )


@pytest.mark.parametrize(
    ("module", "words"),
    [pytest.param(*c, id=" ".join([c[0], *c[1]])) for c in COMMANDS if c[0] not in WITHOUT_OPTIONS],
)
def test_a_command_is_understood(module, words, reading, monkeypatch):
    program = importlib.import_module(module)
    if hasattr(program, "PAPER"):
        main = partial(papers.run_paper, program.PAPER)
    elif hasattr(program, "main"):
        main = program.main
    else:
        main = importlib.import_module(f"{module}.__main__").main
    monkeypatch.setattr(sys, "argv", [module, *words])
    ends = SystemExit if "--help" in words else Read
    with pytest.raises(ends) as ended:
        main(*[words] * bool(inspect.signature(main).parameters))
    assert ends is Read or ended.value.code == 0


def test_a_run_on_peoples_own_data_names_a_policy():
    # Files have none; a task of one's own may.
    kinds = ("parquet:", "jsonl:", "json:", "csv:", "gsm8k")
    on_files = [words for words in RUNS if any(word.startswith(kinds) for word in words)]
    assert len(on_files) > 5 and all("--model" in words for words in on_files)


def test_every_entry_of_a_comparison_is_a_run(programs):
    found = 0
    for words in (words for module, words in COMMANDS if module == "experiments.compare"):
        config = tyro.cli(compare.Config, args=words)
        for entry in config.methods:
            compare._settings(config, entry, 0)
            found += 1
    assert found > 10


@pytest.mark.slow
@pytest.mark.parametrize("words", ON_A_LAPTOP, ids=" ".join)
def test_a_run_of_the_pages_takes_a_step(words, tmp_path, programs):
    small = ["--steps", "1", "--evaluation-prompts", "4", "--evaluation-samples", "2"]
    small += [] if "--prompts-per-step" in words else ["--prompts-per-step", "8"]
    config = parse_config([*words, *small])
    training_runs.quietly(config)
    assert (tmp_path / config.run_dir / "summary.json").is_file()
