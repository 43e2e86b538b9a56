"""Replies of an environment: requested in parallel, recorded for resumed runs, given as tokens."""

from __future__ import annotations

import concurrent.futures
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jinja2 import TemplateError

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import unsaid
from rlvr_jax.experience.parts import Actor, StepContext
from rlvr_jax.experience.prompts import as_words, unknown_words
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.experience.stops import completes
from rlvr_jax.objectives import TOOL
from rlvr_jax.parallel import gather
from rlvr_jax.tasks import Grade
from rlvr_jax.tools import Environment, Game, Replies, Reply
from rlvr_jax.tools.base import in_time
from rlvr_jax.tools.slips import names_own

THREADS = 32
"""Number of simultaneous environment calls of a draw."""
SECONDS = 600.0
"""Time limit of a reply (seconds). Tools and adapters have shorter ones, reported to the policy."""
_NOTE = " … "
_MARK = "\ue000"  # stands for a message when a chat template is rendered; no text contains it


@dataclass(eq=False)
class Driver:
    """The environment of a batch of responses, with the settings of its turns.

    Fields:
      limit: largest number of replies in a response.
      reply_tokens: largest number of tokens in a reply; a longer one loses its middle.
      sampling: settings of the sampler; the environment's `stops` are added.
      costs, turn_tokens, seconds: as for `turns`.
      counts: sums of the environment's counts, and of events.
    """

    actor: Actor
    world: Environment | Game
    turn: StepContext
    limit: int
    reply_tokens: int
    sampling: Mapping[str, Any]
    threads: concurrent.futures.Executor
    costs: Mapping[str, float] | None = None
    turn_tokens: int | None = None
    seconds: float = SECONDS
    counts: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        self.reply_log: ReplyLog = self.turn.setting.reply_log or ReplyLog()
        # Where the environment grades, the task's other rewards are unknown.
        self.unsaid: Mapping[str, float] = unsaid(self.turn.setting.task)
        key = np.asarray(jax.random.key_data(self.turn.key)).ravel()
        self.name: str = "-".join(map(str, key.tolist())) + "/"
        if self.turn_tokens is not None and self.turn_tokens >= self.turn.setting.response_tokens:
            self.turn_tokens = None
        self.stops: tuple[str, ...] = tuple(dict.fromkeys(filter(None, self.world.stops)))
        self.sampling = {**self.sampling, **({"stops": self.stops} if self.stops else {})}

    def request(self, key: str, episode: Episode, text: Any, own: bool) -> Callable[[], Any] | None:
        """Requests a reply in an episode, and returns a function that waits for it.

        It returns None if the reply is recorded, or if another process requests it.

        Args:
          key: name of the reply within the step.
          own: whether this process requests it.
        """
        if self.reply_log.find(self.name + key) is not None:
            episode.texts.append(text)
            episode.behind = True
            return None
        return self.threads.submit(self._reply, episode, text).result if own else None

    def owns(self, number: int) -> bool:
        """Whether this process requests the replies of an episode, by its number."""
        return number % jax.process_count() == jax.process_index()

    def replies(
        self, keys: Mapping[int, str], waiting: Mapping[int, Callable[[], Reply]]
    ) -> dict[int, Reply]:
        """The replies to all rows, by row, on every process.

        Args:
          keys: names of the replies by row, in the order of the result.
          waiting: functions that return the replies requested by this process, by row.
        """
        records = {}
        for row, wait in waiting.items():
            reply = wait()
            fields = ("text", "done", "reward", "outcome", "role", "lost")
            records[row] = {name: getattr(reply, name) for name in fields} | {
                "info": {**reply.info}
            }
        new = {int(row): each for part in gather(records) for row, each in part.items()}
        known = {row: self.name + key for row, key in keys.items()}
        self.reply_log.store(self.turn.step, {known[row]: each for row, each in new.items()})
        return {row: Reply(None, **self.reply_log.find(key)) for row, key in known.items()}

    def _reply(self, episode: Episode, text: Any) -> Any:
        """The environment's next reply in an episode; lost if it takes longer than `seconds`."""

        def next_reply() -> Any:
            state = episode.state
            if episode.behind:  # the replies are recorded, the state is not
                state = self.world.start(episode.prompt)[0]
                for known in episode.texts:
                    state = self.world.reply(state, known).state
            return self.world.reply(state, text)

        try:
            with names_own(f"{self.world.label}: reply"):
                reply = in_time(next_reply, self.seconds, self.world.label)
        except TimeoutError:
            reply = Reply(episode.state, done=True, lost=True, info={"late_replies": 1.0})
            if players := getattr(self.world, "players", 0):
                reply = Replies(episode.state, [reply] * players)
        episode.state, episode.behind = reply.state, False
        episode.texts.append(text)
        return reply

    def take(
        self, reply: Reply, episode: Episode, batch: Batch, row: int, spare: int | None = None
    ) -> list[int] | None:
        """Adds a reply to the last turn of a row; returns its tokens, None if the row has ended.

        Args:
          batch: its arrays are changed in place.
          spare: tokens of the budget that the reply must leave; it is shortened for them. None: one
            token, and a reply that does not fit truncates the row.
        """
        rollouts = batch.rollouts
        self.counts.update(reply.info)
        episode.lost |= reply.lost
        if reply.outcome is not None:
            episode.outcome = reply.outcome
        end, paused = int(rollouts.length[row]), bool(rollouts.truncated[row])
        paid = reply.reward
        if self.costs is not None:
            paid = -sum(cost * reply.info.get(name, 0.0) for name, cost in self.costs.items())
        if paid is not None and end > 0:
            rollouts.records["process_reward"][row, end - 1] += paid
            # The costs of turns are not rewards of the environment.
            episode.paid = self.costs is None
        if reply.done or (reply.text is None and not paused):
            if paused:
                # The text is complete. It is followed by an end that the policy did not write.
                rollouts.tokens[row, end], rollouts.records["origin"][row, end] = (
                    self.actor.stop_token(),
                    TOOL,
                )
                rollouts.truncated[row], rollouts.length[row] = False, end + 1
            return None
        last = int(rollouts.tokens[row, end - 1])
        reply_tokens = self.tokens_of(reply, batch.tokenizer, paused, last)
        room = rollouts.tokens.shape[1] - end - (1 if spare is None else spare)
        if len(reply_tokens) > room:
            self.counts["cut_replies"] += 1
            if spare is None:
                rollouts.truncated[row] = True
                return None
            reply_tokens = self.tokens_of(reply, batch.tokenizer, paused, last, most=room)
        self.counts["tool_tokens"] += len(reply_tokens)
        if unknown := unknown_words(batch.tokenizer, reply_tokens):
            self.counts["unknown_words"] += unknown
        return reply_tokens

    def unended(self, batch: Batch, row: int, begin: int) -> bool:
        """Whether a row was truncated inside an action of its last turn (from `begin` on)."""
        rollouts = batch.rollouts
        written = rollouts.tokens[row, begin : rollouts.length[row]].tolist()
        return bool(rollouts.truncated[row]) and not completes(batch.tokenizer, written, self.stops)

    def tokens_of(
        self, reply: Reply, tokenizer: Any, paused: bool, last: int, most: int | None = None
    ) -> list[int]:
        """The tokens of a reply; none without a text.

        Args:
          paused: the policy continues in the same message.
          last: last token of the policy's turn, which ends its message unless it has paused.
          most: largest number of tokens; None: `reply_tokens`. A longer reply loses its middle.
        """
        if reply.text is None:
            return []
        text, encode = reply.text, self.actor.encode
        if reply.role:
            end = "" if paused else tokenizer.decode([last], clean_up_tokenization_spaces=False)
            text = as_message(tokenizer, reply.role, text, end)
        else:
            text = as_words(tokenizer, text)
        ids, most = list(encode(text)), self.reply_tokens if most is None else most
        if len(ids) > most:
            note = list(encode(_NOTE))[:most]
            head = (most - len(note)) // 2
            tail = most - len(note) - head
            ids = [*ids[:head], *note, *ids[len(ids) - tail :]]
        return ids

    def grades(
        self, episodes: Sequence[Episode], rewards: Sequence[float]
    ) -> Sequence[Grade | None]:
        """The environment's grades of rows, see `Batch.brought`; None without a grade.

        Args:
          rewards: sum of the rewards of each row's turns.
        """
        judged = getattr(self.world, "judges", False)
        if not (judged or any(one.lost for one in episodes)):
            return ()
        grades: list[Grade | None] = []
        for one, reward in zip(episodes, rewards, strict=True):
            outcome = float(np.nan_to_num(one.outcome))
            known = Grade(outcome, float(reward) if one.paid else outcome, info=self.unsaid)
            grades.append(Grade(None) if one.lost else known if judged else None)
        return grades


@dataclass(eq=False)
class Episode:
    """A response from the view of its environment.

    Fields:
      texts: turns of the policy that have a reply.
      behind: `state` is still the initial one, because the replies to `texts` are from the log.
      outcome: of the last reply with an outcome; NaN without any.
      paid: whether a reply had a reward, which may be 0.
      lost: whether a reply is unknown.
    """

    prompt: Any
    texts: list[Any] = field(default_factory=list)
    state: Any = None
    behind: bool = True
    outcome: float = np.nan
    paid: bool = False
    lost: bool = False

    def forked(self) -> Episode:
        """A copy with the same replies, which continues separately."""
        return replace(self, texts=[*self.texts])


def environment_of(draw: str, given: Any, task: Any, alone: bool = False) -> Any:
    """The environment that a draw was given, or else the task's.

    Args:
      draw: name of the draw, for errors.
      given: environment of the arguments, or None.
      task: the loaded task.
      alone: refuse a game of several players.
    Raises:
      ValueError: there is no environment, or it is a refused game.
    """
    found = given if given is not None else getattr(task, "environment", None)
    if found is None:
        raise ValueError(
            f"{draw}: environment must be given for task {task.name!r}, which has none"
        )
    if alone and getattr(found, "players", 1) > 1:
        raise ValueError(
            f"{draw}: environment must have one player, got {found.label}: a row that is forked or"
            " starts again would leave its game"
        )
    return found


def as_message(tokenizer: Any, role: str, text: str, end: str) -> str:
    """The text between a message of the policy and its next one, by the chat template.

    If the template does not know the role, the message is a user's. Without a template the text is
    on a separate line. Special tokens in the text are written as words.

    Args:
      tokenizer: a tokenizer of transformers.
      role: role of the message, such as "user" or "tool".
      text: content of the message.
      end: text that ended the policy's message, or ""; it is not written again.
    """
    if not getattr(tokenizer, "chat_template", None):
        return f"\n{text}\n"
    text = as_words(tokenizer, text)
    chat = [{"role": "user", "content": "."}, {"role": "assistant", "content": _MARK}]
    for known in dict.fromkeys((role, "user")):
        try:
            whole = tokenizer.apply_chat_template(
                [*chat, {"role": known, "content": text}],
                tokenize=False,
                add_generation_prompt=True,
            )
        except TemplateError:
            continue
        if _MARK in whole and text.strip() in whole:
            return whole.partition(_MARK)[2].removeprefix(end)
    raise ValueError(
        "turns: the tokenizer's chat template must write a message after one of the assistant, got"
        f" none of role {role!r} or 'user'"
    )
