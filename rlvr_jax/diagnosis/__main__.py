"""Reports the effects of training on a policy: conclusions first, then plots.

    python -m rlvr_jax.diagnosis RUN
    python -m rlvr_jax.diagnosis RUN --against OTHER --out page.html
    python -m rlvr_jax.diagnosis POLICY --against START --task brackets
    python -m rlvr_jax.diagnosis --answers FOLDER
    python -m rlvr_jax.diagnosis RUN --json

RUN is a run directory, finished or growing. The page lists the data that it lacks, and how to
obtain them. The last evaluation and policy of RUN are compared with its first ones. With --against
they are compared with the last ones of another run, or with the weights of a policy folder or .gguf
file. This samples and scores nothing.

With --task both are policies: folders, .gguf files, or finished runs. Both sample responses to the
held-out prompts of the task, the policy of --against twice. Both score all responses.
With --answers, responses and scores are read from a folder of --keep, and nothing is sampled.

The page is one file without external files. --json prints the numbers instead.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rlvr_jax.analysis.diagnosis.formats import read_rules
from rlvr_jax.analysis.diagnosis.of_run import diagnose_run
from rlvr_jax.analysis.diagnosis.page import as_json, write_page
from rlvr_jax.analysis.diagnosis.pair import diagnose_answers
from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.arguments import as_typed
from rlvr_jax.diagnosis.held_out import evaluation_settings
from rlvr_jax.diagnosis.policy_pair import compare_policies, policy_folder
from rlvr_jax.diagnosis.stored_pair import load_answers

_NAMES = ("the initial policy", "the trained policy")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    try:
        with as_typed("RUN", "load_run: path"):
            topics, title, rows = _topics(options)
    except ValueError as error:
        sys.exit(f"error: {error}")
    if options.json:
        print(json.dumps(as_json(topics), indent=1, ensure_ascii=False))
        return
    for topic in topics:
        for sentence in topic.sentences:
            print(f"{topic.title}: {sentence}")
    print(write_page(options.out, topics, f"Diagnosis: {title}", _compared(options), rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.diagnosis",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "run",
        nargs="?",
        metavar="RUN",
        help="run directory; with --task also a policy folder or file",
    )
    add("--against", metavar="FOLDER", help="another run, a policy folder or file")
    add("--answers", metavar="FOLDER", help="responses that --keep has stored")
    add("--out", default="diagnosis.html", help="the page to write")
    add("--json", action="store_true", help="print the numbers and write no page")
    add("--no-weights", action="store_true", help="do not compare the weights")
    add(
        "--formats",
        nargs="*",
        default=(),
        metavar="NAME=REGEX",
        help="formats of responses; the first match counts (default: formats of language models)",
    )
    sampled = parser.add_argument_group("responses that are sampled")
    add = sampled.add_argument
    add("--task", help="task with the held-out prompts, as in rlvr_jax train")
    add("--task-options", nargs="*", default=(), help="task options, as in rlvr_jax train")
    add("--columns", nargs="*", default=(), help="columns of its files, as in rlvr_jax train")
    add("--prompts", type=int, default=256, help="number of held-out prompts")
    add("--samples", type=int, default=64, help="responses per prompt and sampling")
    add("--temperature", type=float, default=1.0, help="temperature of the sampler")
    add(
        "--response-tokens",
        type=int,
        default=0,
        help="largest number of tokens of a response; 0: that of the task",
    )
    add("--seed", type=int, default=0, help="seed of the responses")
    add("--mesh", default="", help="devices, as in rlvr_jax train")
    add("--unsafe-local", action="store_true", help="as in rlvr_jax train")
    add("--keep", type=Path, metavar="FOLDER", help="also store the responses, as rollouts")
    return parser


def _topics(options: argparse.Namespace) -> tuple[list[Topic], str, tuple]:
    """Requested topics, their heading, and responses to show."""
    if (options.run is None) == (options.answers is None):
        raise ValueError("diagnose: either RUN or --answers must be given, got both or none")
    rules = read_rules(options.formats)
    if options.answers is not None:
        topics = diagnose_answers(*load_answers(options.answers), _NAMES, rules)
        return topics, str(options.answers), ()
    if options.task:
        after, before = _policy(options.run), _start(options.run, options.against)
        start = f" against {before}" if options.against else ""
        title = f"{after}{start}, {options.task}"
        topics, rows = _of_policies(options, before, after, rules)
        return topics, title, rows
    if _is_policy(Path(options.run)):
        raise ValueError(f"diagnose: --task must be given for the policy {options.run}, got none")
    with _against(options) as against:
        topics = diagnose_run(options.run, against, not options.no_weights, rules)
    return topics, _title(options.run), ()


@contextlib.contextmanager
def _against(options: argparse.Namespace) -> Iterator[str | Path | None]:
    """The policy that a run is compared with. The weights of a file, also those of the initial
    policy, are in a temporary folder meanwhile."""
    start = options.against or str(load_run(options.run).setting("model"))
    if options.no_weights or not (start.endswith(".gguf") and Path(start).is_file()):
        yield options.against
        return
    with policy_folder(start) as folder:
        yield folder


def _compared(options: argparse.Namespace) -> tuple[str, str]:
    """The two policies of the legend. Only weights are compared with a policy folder, so the plots
    of a run against a folder show the two policies of the run."""
    against = options.against
    if against is None or not (options.task or (Path(against) / "metrics.jsonl").is_file()):
        return ("start", "end")
    return (against, options.run)


def _of_policies(
    options: argparse.Namespace, before: Path, after: Path, rules: Mapping[str, str]
) -> tuple:
    for name in ("prompts", "samples"):
        if getattr(options, name) < 1:
            raise ValueError(f"diagnose: --{name} must be at least 1, got {getattr(options, name)}")
    settings = evaluation_settings(
        options.task,
        options.response_tokens,
        model=str(after),
        task_options=tuple(options.task_options),
        columns=tuple(options.columns),
        evaluation_prompts=options.prompts,
        evaluation_samples=options.samples,
        temperature=options.temperature,
        seed=options.seed,
        mesh=options.mesh,
        unsafe_local=options.unsafe_local,
    )
    return compare_policies(settings, before, _NAMES, not options.no_weights, options.keep, rules)


def _policy(path: str) -> Path:
    """The policy folder or file of a path.

    Raises:
      ValueError: there is none.
    """
    for place in (Path(path), Path(path) / "policy"):
        if _is_policy(place):
            return place
    raise ValueError(
        f"diagnose: RUN must be a policy folder, a .gguf file or a finished run, got {path}"
    )


def _is_policy(path: Path) -> bool:
    return bool(list(path.glob("*.safetensors"))) or (path.suffix == ".gguf" and path.is_file())


def _start(run: str, against: str | None) -> Path:
    """The folder of the initial policy: the one that is named, or the run's own."""
    if against is not None:
        return _policy(against)
    if not (Path(run) / "config.json").is_file() or Path(run) == _policy(run):
        raise ValueError(f"diagnose: --against must be given for {run}, which is not a run")
    return _policy(str(load_run(run).setting("model")))


def _title(path: str) -> str:
    run = load_run(path)
    seed = "" if run.seed is None else f", seed {run.seed}"
    return f"{run.method}{seed}, {run.setting('task', 'unknown task')}"


if __name__ == "__main__":
    main()
