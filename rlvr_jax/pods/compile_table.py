"""Table of models on slices: whether they fit, and the cost of a step.

    python -m rlvr_jax.parallel.compile --table docs/results/pods

Rows that `rows.jsonl` already has for the installed libtpu are not compiled again. So the command
may be stopped at any time. `README.md` next to it is written from the rows of all versions.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.analysis.evidence.rows import append_row
from rlvr_jax.analysis.run_directory import read_json_lines

_PAPER = "a paper's run"


class Row(NamedTuple):
    """A model on a slice.

    Fields:
      method: of the run; or `_PAPER`, and the model is a file of `experiments/papers`.
      options: other options of the command.
    """

    method: str
    model: str
    topology: str
    options: tuple[str, ...] = ()


# Besides v5e-256 the smallest slices of their kind that hold the model; the mixture of experts on
# v6e only by arithmetic. On a v5p-16 its update takes 96.2 GiB of 95.7; a v5e-64 also holds
# GRPO (14.3 of 15.8), which samples there in many sampling batches.
_SLICES = {
    "qwen2.5-0.5b": ("v5e-1", "v5p-8", "v6e-1", "v5e-256"),
    "qwen2.5-1.5b": ("v5e-4", "v5p-8", "v6e-4", "v5e-256"),
    "qwen2.5-7b": ("v5e-16", "v5p-8", "v6e-8", "v5e-256"),
    "qwen3-8b": ("v5e-32", "v5p-8", "v6e-8", "v5e-256"),
    "qwen2.5-32b": ("v5e-128", "v5p-32", "v6e-64", "v5e-256"),
    "qwen3-30b-a3b": ("v5e-128", "v5p-32", "v6e-32", "v5e-256"),
}
# Without a reference, which takes 4 bytes a parameter.
_SMALLER = {
    ("qwen3-8b", "v5e-32"): "v5e-16",
    ("qwen2.5-32b", "v6e-64"): "v6e-32",
    ("qwen3-30b-a3b", "v5p-32"): "v5p-16",
}
# Chosen would be tensor=2.
_DENSE = ("--mesh", "fsdp=8", "--sample-mesh", "data=4,tensor=2")
_EXPERTS = ("--mesh", "fsdp=32", "--sample-mesh", "data=4,tensor=8")
_GIVEN = {
    ("grpo", "qwen2.5-7b", "v6e-8"): _DENSE,
    ("clip_cov", "qwen2.5-7b", "v6e-8"): _DENSE,
    ("grpo", "qwen3-8b", "v6e-8"): _DENSE,
    ("grpo", "qwen3-30b-a3b", "v6e-32"): _EXPERTS,
    ("clip_cov", "qwen3-30b-a3b", "v6e-32"): _EXPERTS,
}

PAPERS = (
    "entropy_mechanism_7b_clip_cov",
    "entropy_mechanism_7b_kl_cov",
    "dapo_32b",
    "forking_tokens_8b",
    "gspo_8b",
    "dr_grpo_1p5b",
    "prorl_1p5b",
    "delethink_1p5b",
    "skywork_or1_7b",
    "luffy_7b",
    "open_reasoner_zero_7b",
)

ROWS: tuple[Row, ...] = tuple(
    Row(
        method,
        model,
        _SMALLER.get((model, topology), topology) if method == "clip_cov" else topology,
        _GIVEN.get((method, model, topology), ()),
    )
    for method in ("grpo", "clip_cov")
    for model, topologies in _SLICES.items()
    for topology in topologies
) + tuple(Row(_PAPER, paper, topology) for paper in PAPERS for topology in ("v5e-256", "v5p-64"))

_PROGRAMS = {"sample": "sampling", "score": "scoring", "update": "update"}


def fill_table(folder: Path, say: Callable[[str], None]) -> bool:
    """Compiles the missing rows, each in a new process, and writes the page.

    Args:
      folder: of rows.jsonl and README.md; created if missing.
      say: called with lines of progress.
    Returns:
      Whether every row fits. A row that could not be compiled is reported and left out. The next
      call compiles it again.
    """
    try:
        version = metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        raise ValueError("--table needs the compiler of libtpu: pip install libtpu") from None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rows.jsonl"
    for row in ROWS:
        key = version, row.method, row.model, row.topology
        if any(_key(each) == key for each in read_json_lines(path)):
            continue
        say(f"{row.model}, {row.method}, {row.topology}, libtpu {version}")
        try:
            line = {"libtpu": version, **_compiled(row)}
        except ValueError as error:
            say(f"  {error}")
            continue
        say(f"  fits: {line['fits']}")
        append_row(path, line)
        (folder / "README.md").write_text(table_page(read_json_lines(path)))
    found = {_key(line): line["fits"] for line in read_json_lines(path) if "commit" not in line}
    return all(found.get((version, *row[:3]), False) for row in ROWS)


def _key(line: Mapping[str, Any]) -> tuple[str, ...]:
    names = "libtpu", "method", "model", "topology", "commit"
    return tuple(line[name] for name in names if name in line)


def _compiled(row: Row) -> dict[str, Any]:
    """Fields of a compiled row that the page needs."""
    if row.method == _PAPER:
        module, given = f"experiments.papers.{row.model}", ["--compile", row.topology]
    else:
        module = "rlvr_jax.parallel.compile"
        given = [row.topology, "--method", row.method, "--model", row.model]
    command = [sys.executable, "-m", module, *given, *row.options, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    own = {"method": row.method, "model": row.model, "topology": row.topology}
    if not ran.stdout.strip():
        raise ValueError((ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1])
    report = json.loads(ran.stdout.strip().splitlines()[-1])
    names = ["fits", "mesh", "sample_mesh", "micro_batches", "hbm_bytes", "versions"]
    names += [name for name in ("step_compiler_seconds", "step_roofline_seconds") if name in report]
    programs = {name: _row_of_program(found) for name, found in report["programs"].items()}
    return {**own, **{name: report[name] for name in names}, "programs": programs}


def _row_of_program(program: Mapping[str, Any]) -> dict[str, Any]:
    names = ("fits", "bytes", "roofline_seconds", "compiler_seconds", "kernel_seconds")
    names += (
        "collective_seconds",
        "compile_seconds",
        "sampling_batches",
        "prompts",
        "samples",
        "calls",
    )
    names += ("move_seconds", "loops_counted_once", "not_estimated")
    return {
        name: float(f"{value:.5g}") if isinstance(value, float) else value
        for name in names
        if (value := program.get(name)) is not None
    }


_HEAD = """# Models on TPU slices: memory and time per step

Question: does a model fit on a slice, and how long is a training step? A row fits unless it is
marked. The times are estimates of the compiler; nothing here was measured on a TPU.

    python -m rlvr_jax.parallel.compile --table docs/results/pods    # compiles missing rows; hours

- Workload: 512 prompts × 16 responses of 1024 + 8192 tokens, bfloat16, `--remat layers`. A paper's
  run has the settings of its file in `experiments/papers`.
- GiB: per device; for the update also the memory that the compiler allows.
- s: the compiler's estimate for all sampling batches, scorings and updates of a step. Kernels,
  gathers, scatters and sorts have no estimate and count with their own roofline bound.
- In parentheses: the estimate over the roofline bound. "at least": a loop of unknown length counts
  once, or another operation has no time.
- All responses count with their full length. Not counted: batches that are sampled again, later
  chunks of a response, waiting for links.

[How to read the output](../../pods.md#compile-before-you-rent)

"""
_BEFORE = """
"was": the same ratio at commit {commit}, as reported by that commit. For scoring and update a
second number counts the kernels as above. That commit counted a full cache for every sampled token.
In the update it counted one tile of 2048 tokens per row for the backward pass over the vocabulary.
"""


def table_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page of all rows: by version of libtpu, then by method."""
    return "\n".join(_page(rows)) + "\n"


def _page(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    order = {row[:3]: index for index, row in enumerate(ROWS)}

    def place(row):
        return order.get((row["method"], row["model"], row["topology"]), len(order))

    def numbers(version):
        return [int(number) for number in version.split(".")]

    tables: dict[str, list[Mapping[str, Any]]] = {}
    for version in sorted({row["libtpu"] for row in rows}, key=numbers):
        for method in dict.fromkeys(row.method for row in ROWS):
            # Rows of an older commit have its name; they are not on the page.
            for row in sorted((row for row in rows if "commit" not in row), key=place):
                if (row["libtpu"], row["method"]) == (version, method):
                    subject = "Runs of papers" if method == _PAPER else method
                    title = f"{subject}, libtpu {version} (jax {row['versions']['jax']})"
                    tables.setdefault(title, []).append(row)
    contents = ((title, re.sub(r"[^\w -]", "", title).lower()) for title in tables)
    links = (f"- [{title}](#{anchor.replace(' ', '-')})" for title, anchor in contents)
    yield _HEAD + "\n".join(links) + "\n"
    columns = [f"{title}, {unit}" for unit in ("GiB", "s") for title in _PROGRAMS.values()]
    columns = ["model", "slice", "mesh; sample mesh", "sampling batches", *columns, "a step, s"]
    for title, own in tables.items():
        yield f"## {title}\n"
        yield f"| {' | '.join(columns)} |"
        yield "|" + "---|" * len(columns)
        yield from map(_line, own)
        yield ""


def _line(row: Mapping[str, Any]) -> str:
    head = f"| {row['model']} | {row['topology']} |"
    programs, allowed = row["programs"], row["hbm_bytes"] / 2**30
    sample = programs["sample"]
    cells = [f"{row['mesh']}; {row['sample_mesh']}"]
    cells.append(f"{sample['sampling_batches']} × {sample['prompts']}·{sample['samples']}")
    for name in _PROGRAMS:
        found = programs.get(name)
        if found is None:
            cells.append("–")
            continue
        size = f"{found['bytes'] / 2**30:.1f}" + f" of {allowed:.1f}" * (name == "update")
        cells.append(size if found["fits"] else f"{size}, does not fit")
    for name in _PROGRAMS:
        found = programs.get(name, {})
        if "compiler_seconds" not in found:
            cells.append("–")
            continue
        estimate, roofline = found["compiler_seconds"], found["roofline_seconds"]
        short = "loops_counted_once" in found or "not_estimated" in found
        ratio = f"{estimate / roofline:.2f}" + " at least" * short
        cells.append(f"{found['calls'] * estimate:,.0f} ({ratio})")
    cells.append(f"{row['step_compiler_seconds']:,.0f}" if "step_compiler_seconds" in row else "–")
    return f"{head} {' | '.join(cells)} |"
