"""InterCode's shell environment: commands until the action "submit", which has the reward."""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvr_jax.sandbox import Limits, Outcome, shared
from rlvr_jax.tools.environment import Reply, before_stop
from rlvr_jax.verifiers.texts.intercode import bash_reward

_MARK = "\x1d"
"""Printed before the hashes of the files; the text after the last one is base64."""

# The actions are the arguments. Each has a separate process, so that none ends the others, and
# begins in the folder in which the previous one ended; only the output of the last one is used.
_PROGRAM = r"""
exec 7>/dev/null 8>&1
cd work && start=$PWD here=$PWD output=7
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || output=8
  : > /tmp/folder
  ( cd "$here" 2>/dev/null || cd "$start"
    exec bash -c 'trap "pwd >&9" EXIT; eval "$1"' bash "$1" 9>>/tmp/folder
  ) </dev/null >&$output 2>&1 7>&- 8>&-
  read -r after < /tmp/folder && here=$after
  shift
done
"""
# To forge this list a program must know the expected one, which no folder of the program has.
_HASHES = r"""
printf '\035'
cd "$start" && find . -type f -exec sha256sum -z {} + | base64 -w0
"""

_Files = Mapping[str, str]
"""Hashes of contents by path."""


@dataclass(frozen=True)
class ShellEpisodes:
    """The environment of `shell_episodes`; its state is gold, files, the actions so far and the
    last output."""

    gold_of: Callable[[Any], str]
    files_of: Callable[[Any], Mapping[str, str]]
    limits: Limits
    stops: tuple[str, ...]
    label: str
    judges: bool = True

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, str]]]:
        """The folder in its first state, and no actions."""
        return (self.gold_of(prompt), dict(self.files_of(prompt)), (), ""), []

    def reply(self, state: Any, text: str) -> Reply:
        """The output of a command. "submit" ends the episode with the reward of the folder and the
        last output, "skip" ends it without. A command that exceeds a limit has no effect."""
        gold, files, actions, printed = state
        action = before_stop(text, self.stops).strip()
        if action == "skip":
            return Reply(state, done=True, reward=0.0, outcome=0.0)
        if action.startswith("submit"):
            own, wanted = self._run(files, actions, True), self._run(files, (gold,), True)
            if "lost" in (own.reason, wanted.reason):
                return Reply(state, done=True, lost=True)
            if (gold_files := _hashes(wanted.stdout)) is None:
                return Reply(state, done=True, lost=True, info={"gold_errors": 1.0})
            output = wanted.stdout.rpartition(_MARK)[0]
            reward = _paid(files, _hashes(own.stdout), gold_files, printed, output)
            return Reply(state, done=True, reward=reward, outcome=float(reward == 1))
        outcome = self._run(files, (*actions, action))
        if outcome.reason == "lost":
            return Reply(state, done=True, lost=True)
        if outcome.reason:
            message = f"Error: stopped: the command passed its limit of {outcome.reason}\n"
            return Reply(state, message, reward=0.0, info={"errors": 1.0})
        after = gold, files, (*actions, action), outcome.stdout
        return Reply(after, outcome.stdout, reward=0.0, info={"actions": 1.0})

    def _run(
        self, files: Mapping[str, str], actions: Sequence[str], hashes: bool = False
    ) -> Outcome:
        """The outcome of all actions, run again in a fresh folder."""
        there = {"work/.start": "", **{f"work/{name}": text for name, text in files.items()}}
        program = _PROGRAM + (_HASHES if hashes else "")
        command = ["/usr/bin/bash", "-c", f"rm work/.start\n{program}", "bash", *actions]
        return shared(self.limits, most=8).run_command(command, files=there)


def _paid(texts: _Files, own: _Files | None, gold: _Files, printed: str, wanted: str) -> float:
    """The reward of a folder and an output, from the texts at the start."""
    if own is None:  # the actions have ended the process that lists the folder
        return 0.0
    before = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    mine, theirs = changes(before, own), changes(before, gold)
    common = [path for path, kind in mine & theirs if kind == "added"]
    right = sum(own[path] == gold[path] for path in common)
    return bash_reward(len(theirs - mine), len(mine - theirs), len(common), right, printed, wanted)


def changes(before: _Files, after: _Files) -> set[tuple[str, str]]:
    """(path, "added", "removed" or "changed") of all files that differ."""
    found = {(path, "added") for path in after.keys() - before.keys()}
    found |= {(path, "removed") for path in before.keys() - after.keys()}
    both = before.keys() & after.keys()
    return found | {(path, "changed") for path in both if before[path] != after[path]}


def shell_episodes(
    gold_of: Callable[[Any], str],
    files_of: Callable[[Any], Mapping[str, str]] = lambda prompt: {},
    stop: str = "\n",
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> ShellEpisodes:
    """Episodes of bash commands in the sandbox, in a folder that is made for each episode.

    A command sees the effects of the previous ones: all of them run again, so the limits are for
    all together. Names and contents of files are compared; folders without files are not. An
    episode whose gold command exceeds a limit is ungraded and counted (`gold_errors`).

    Args:
      gold_of: (prompt) -> the command with the expected changes and output; no action sees it.
      files_of: (prompt) -> texts by path, the files of the folder at the start.
      stop: text that ends an action.
      limits: limits of the commands; the programs of /usr/bin are available.
    Source: https://github.com/princeton-nlp/intercode (intercode/envs/bash).

    Metrics: actions (commands that run), errors (commands that fail), gold_errors (episodes whose
      gold command passes a limit).
    """
    limits = replace(limits, read=tuple(dict.fromkeys((*limits.read, "/usr/bin", "/usr/lib"))))
    return ShellEpisodes(gold_of, files_of, limits, (stop,), "shell_episodes()")


def _hashes(stdout: str) -> dict[str, str] | None:
    """Hashes by path at the end of an output; None without any."""
    _, mark, hashes = stdout.rpartition(_MARK)
    try:
        listed = base64.b64decode(hashes, validate=True).decode("utf-8", "replace")
    except ValueError:
        return None
    if not mark:
        return None
    lines = (line.partition("  ./") for line in listed.split("\0") if line)
    return {path: digest for digest, _, path in lines}
