"""The `verify` of a task from a check: its gold is the prompt's answer."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

from rlvr_jax.tasks.base import Prompt, Response, Verify
from rlvr_jax.verifiers.checks import Check, run
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.pool import Result, WorkerPool
from rlvr_jax.verifiers.tags import prefilled_tags

_MAX_WORKERS = 8


def verifier(
    check: Check,
    *,
    workers: int | None = None,
    wall_seconds: float = 2.0,
    memory_mb: int = 1024,
    jobs_per_worker: int = 100,
    processes: int = 0,
    threads: int | None = 1,
    tags: Sequence[str] = ("think",),
) -> Verify:
    """Grades responses[i] by `check`, with prompts[i].answer as the gold.

    A check that exceeds its time counts as timed out, and a check that raises as `check_error`.
    Both have the grade 0, because the response caused it. A lost process is ungraded.

    Args:
      check: extracts and compares the answer.
      workers: number of processes. 0 grades in this process without a time limit, for checks that
        are fast on any text. None: half of the machine's cores, at least 1 and at most 8.
      wall_seconds, memory_mb, jobs_per_worker, processes: limits of a worker, as in `WorkerPool`.
      threads: number of threads of this process that grade without workers, for checks that wait
        for a sandbox; None: one per core.
      tags: blocks that a response may have. Tags that a chat template has opened are put before
        the response, which does not open them again.

    Metrics: check_error (1 where the check raises).
    """
    if workers is None:
        workers = max(1, min(_MAX_WORKERS, (os.cpu_count() or 1) // 2))
    number = threads or os.cpu_count() or 1
    pool = None
    if workers:
        pool = WorkerPool(
            "rlvr_jax.verifiers.checks:run",
            workers=workers,
            wall_seconds=wall_seconds,
            memory_mb=memory_mb,
            jobs_per_worker=jobs_per_worker,
            processes=processes,
            job_bytes=2**22,
        )

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        texts = ["".join([*prefilled_tags(r.prompt_tail, tags), r.text]) for r in responses]
        pairs = zip(prompts, texts, strict=True)
        jobs = [[asdict(check), text, prompt.answer] for prompt, text in pairs]
        if pool is None and number > 1:
            with ThreadPoolExecutor(number) as executor:
                return list(map(_grade, executor.map(_here, jobs)))
        if pool is None:
            return [_grade(_here(job)) for job in jobs]
        return [_grade(result) for result in pool.map(jobs)]

    verify.verifier = check.check
    return verify


def verifier_of(
    module: str,
    options: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    **limits: Any,
) -> Verify:
    """`verifier` of the functions `check` and `extract` of a module.

    Args:
      module: name of a module with `check`, and `extract` if it has one.
      options, reading: further arguments of `check` and of `extract`.
      limits: further arguments of `verifier`.
    """
    check = Check(f"{module}:check", f"{module}:extract", options or {}, reading or {})
    return verifier(check, **limits)


def _here(job: list[Any]) -> Result:
    """The result of a worker's job in this process: a check that raises does not end the run."""
    try:
        return Result(value=run(job))
    except Exception as error:
        return Result(error=f"{type(error).__name__}: {error}")


def _grade(result: Result) -> Grade:
    if failure := result.failure("check_error"):
        return failure
    grade = Grade(**result.value)
    return replace(grade, info={**grade.info, "check_error": 0.0})
