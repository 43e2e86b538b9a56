"""Time of judging, against its lower bound.

    python -m experiments.bench_judges

A local server in a separate process answers every call after a fixed time. The lower bound is
rows × calls × that time / parallel calls: waiting only.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from rlvr_jax.judges import Judge, number, question, server
from rlvr_jax.judges.server import ADDRESS
from rlvr_jax.runs import described, guarded

REPLY = json.dumps(
    {"choices": [{"message": {"content": "Good.\n7"}}], "usage": {"total_tokens": 10}}
).encode()


@dataclass(frozen=True)
class Config:
    """Calls, and the speed of the server."""

    rows: int = 512
    """Responses to judge."""
    calls: int = 2
    """Calls per response."""
    at_once: int = 32
    """Parallel calls."""
    milliseconds: float = 100.0
    """Milliseconds until the server answers."""
    repeats: int = 3
    """Measurements; their median is printed."""
    serve: bool = False
    """Run the server: prints its address and ends with its input."""


async def _answer(reader, writer, seconds: float) -> None:
    while head := await reader.readuntil(b"\r\n\r\n"):
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(line for line in lines if line.startswith("content-length:"))
        await reader.readexactly(int(length.partition(":")[2]))
        await asyncio.sleep(seconds)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY)


async def _serve(seconds: float) -> None:
    async def answer(reader, writer):
        try:
            await _answer(reader, writer, seconds)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def _measure(config: Config, address: str) -> float:
    """Seconds to judge all rows once."""
    call = server("bench", at_once=config.at_once, environment={ADDRESS: address})
    judges = [
        Judge(call, question(f"Question {which}: {{response}}"), number(), ["number"])
        for which in range(config.calls)
    ]
    texts = [{"response": f"answer {row}"} for row in range(config.rows)]
    started = time.perf_counter()
    for judge in judges:
        found = judge.query(texts, 0)
        if found.metrics["judge_no_verdict"]:
            raise ValueError(f"bench_judges: all rows must be graded, got {found.metrics}")
    return time.perf_counter() - started


def main(arguments: Sequence[str]) -> None:
    """Prints a line."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    seconds = config.milliseconds / 1000
    if config.serve:
        asyncio.run(_serve(seconds))
        return
    command = [sys.executable, "-m", f"{__package__}.bench_judges", "--serve"]
    command += ["--milliseconds", str(config.milliseconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            address = child.stdout.readline().strip()
            taken = sorted(_measure(config, address) for _ in range(config.repeats))
        finally:
            child.stdin.close()
    sampling_batches = -(-config.rows // config.at_once) * config.calls
    floor, median = sampling_batches * seconds, taken[len(taken) // 2]
    print(
        f"{config.rows} rows x {config.calls} calls, {config.at_once} at once,"
        f" {config.milliseconds:g} ms each: {median:.2f} s, floor {floor:.2f} s,"
        f" {median / floor:.2f} x"
    )


if __name__ == "__main__":
    guarded(main)
