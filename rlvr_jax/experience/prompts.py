"""From text to tokens and back: a task's prompts as arrays, and responses as text."""

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from jinja2 import TemplateError

from rlvr_jax.tasks import Prompt, Response
from rlvr_jax.tasks.base import AFTER
from rlvr_jax.types import Rollouts

LEAST_OPENING = 16
"""Smallest opening that is computed in a separate pass. Chosen, not measured: a pass reads all
weights, and SmolLM2's 28 tokens save a twentieth of a call of the sampler."""

TAIL = 32
"""Number of last prompt tokens that verifiers see."""

_MOST_TOKENS = 16
_REASONING = ("reasoning_content", "reasoning", "thinking")
_NOW = re.compile(r"""strftime_now\(\s*(['"])(.*?)\1\s*\)""")
_TODAY = datetime(2024, 7, 26)
"""The date in templates that show today's date, so that runs are reproducible: Llama 3.2's."""


@dataclass(frozen=True)
class PromptTable:
    """Prompts of one split with their tokens, int32 [n, P], right-padded, and lengths [n]."""

    prompts: Sequence[Prompt]
    tokens: np.ndarray
    length: np.ndarray
    tokenizer: Any = None

    def has(self, number: int, prompt: Prompt) -> bool:
        """Whether this prompt is at this position of the table."""
        return number < len(self.prompts) and self.prompts[number] is prompt

    def encode(self, text: str, messages: Sequence[Mapping[str, str]] = ()) -> list[int]:
        """The tokens of another text after its messages, encoded like those of the table.

        Special tokens become words (`as_words`), because a view may show text of a model.

        Raises:
          ValueError: as `encode_prompts`.
        """
        text, known = as_words(self.tokenizer, text), self.tokenizer
        messages = [{**turn, "content": as_words(known, turn["content"])} for turn in messages]
        return _encoded(known, [text], [messages])[0]

    def widened(self, width: int) -> "PromptTable":
        """The table padded to a number of tokens."""
        missing = width - self.tokens.shape[1]
        return replace(self, tokens=np.pad(self.tokens, ((0, 0), (0, missing))))


def shown_prompt(table: PromptTable) -> list[str]:
    """The texts of the tokens of the first prompt of a table."""
    return token_texts(table.tokenizer, table.tokens[0, : table.length[0]].tolist())


def shown_tokens(table: PromptTable, most: int = 400) -> str:
    """The first prompt of a table, token by token, without the middle of a long text.

    Args:
      most: characters.
    """
    tokens = shown_prompt(table)
    text = "│".join(tokens).replace("\n", "⏎")
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 2 :]}"
    return f"first prompt, {len(tokens)} tokens: {text}"


def encode_prompts(
    tokenizer: Any,
    prompts: Sequence[Prompt],
    budget: int,
    where: str,
    shown: Sequence[str] | None = None,
) -> PromptTable:
    """Tokenizes prompts with the tokenizer's chat template.

    Without a template, prompts get the tokenizer's special tokens, except an end of sequence and a
    second beginning of sequence.

    Args:
      tokenizer: a tokenizer of transformers.
      prompts: prompts of one split.
      budget: longest allowed prompt (tokens); 0: the length of the longest prompt.
      where: name of the split, for errors.
      shown: text of each prompt; None: the prompt's `text`.
    Raises:
      ValueError: a prompt is empty or too long; messages without a chat template; a special token
        in a text for a chat template; a template that is invalid, refuses a chat, or leaves out a
        message.
    """
    shown = [prompt.text for prompt in prompts] if shown is None else shown
    rows = _encoded(tokenizer, shown, [prompt.messages for prompt in prompts])
    length = np.array([len(row) for row in rows], np.int32)
    shortest, longest = int(length.argmin()), int(length.argmax())
    if not length[shortest]:
        raise ValueError(f"{where} prompts must have tokens, got {shown[shortest]!r}")
    if budget and length[longest] > budget:
        raise ValueError(
            f"--prompt-tokens must be at least {length[longest]} for the longest {where} prompt,"
            f" got {budget}: {shown[longest][:80]!r}"
        )
    tokens = np.zeros((len(rows), budget or int(length.max())), np.int32)
    for row, ids in enumerate(rows):
        tokens[row, : len(ids)] = ids
    return PromptTable(prompts, tokens, length, tokenizer)


def prompt_lengths(tokenizer: Any, prompts: Sequence[Prompt]) -> list[int]:
    """The number of tokens of each prompt, as `encode_prompts` counts them."""
    texts = [prompt.text for prompt in prompts]
    return list(map(len, _encoded(tokenizer, texts, [prompt.messages for prompt in prompts])))


def encode_text(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text, without a template and without special tokens."""
    return _tokenized(tokenizer, [text])[0]


def stop_tokens(
    tokenizer: Any, more: Sequence[int] = (), texts: Sequence[str] = ()
) -> tuple[int, ...]:
    """The tokens that end a response: first the tokenizer's end of sequence, then others.

    Args:
      more: further tokens, such as those of a model (`Model.stop_tokens`).
      texts: further texts of one token each.
    Raises:
      ValueError: a text is not one token; the sampler compares tokens, not texts.
    """
    ids = [tokenizer.eos_token_id, *more]
    for text in texts:
        own = encode_text(tokenizer, text)
        if len(own) != 1:
            parts = [tokenizer.decode([index]) for index in own]
            raise ValueError(
                f"--stop must be texts of one token each, got {text!r}, which is {parts}"
            )
        ids += own
    return tuple(dict.fromkeys(ids))


def _encoded(
    tokenizer: Any, texts: Sequence[str], messages: Sequence[Sequence[Mapping[str, str]]]
) -> list[list[int]]:
    if tokenizer.chat_template:
        chats = zip(texts, messages, strict=True)
        shown = [_by_template(tokenizer, *each) for each in chats]
        _warn_of_reasoning(messages, shown)
        return _tokenized(tokenizer, shown)
    prompts = [Prompt(text, messages=own) for text, own in zip(texts, messages, strict=True)]
    texts = [prompt.text + prompt.prefill for prompt in prompts]
    for text, before in zip(texts, messages, strict=True):
        if before and not (len(before) == 1 and before[0].get(AFTER)):
            raise ValueError(
                "--system-prompt, --few-shot and messages of the data must have a tokenizer with a"
                f" chat template, got one without for {dict(before[0])!r} before {text[:80]!r}"
            )
    bare = _tokenized(tokenizer, texts)
    rows = []
    for text, whole, ids in zip(
        texts, bare, _tokenized(tokenizer, texts, special=True), strict=True
    ):
        if tokenizer.bos_token and text.startswith(tokenizer.bos_token):
            rows.append(whole)
            continue
        # The end of sequence that a tokenizer adds is not part of a question.
        ended = ids[-1:] == [tokenizer.eos_token_id] and ids[-len(whole) :] != whole
        rows.append(ids[:-1] if ended else ids)
    return rows


def _warn_of_reasoning(messages: Sequence[Sequence[Mapping[str, Any]]], shown: Sequence[str]):
    """Warns of prompts whose template omits reasoning of earlier turns, as many templates do."""
    reasoning = [
        [turn[name] for turn in own for name in _REASONING if turn.get(name)] for own in messages
    ]
    lost = [
        number
        for number, (texts, chat) in enumerate(zip(reasoning, shown, strict=True))
        if any(text.strip() not in chat for text in texts)
    ]
    if lost:
        warnings.warn(
            f"the tokenizer's chat template leaves out reasoning of earlier messages in {len(lost)}"
            f" of {sum(map(bool, reasoning))} prompts that have some; the first:"
            f" {shown[lost[0]][:80]!r}",
            stacklevel=4,
        )


def _tokenized(tokenizer: Any, texts: Sequence[str], special: bool = False) -> list[list[int]]:
    """The tokens of all texts, in one call: 2.9 s for 20,000 prompts of SmolLM2, not 4.7 s."""
    return tokenizer(list(texts), add_special_tokens=special)["input_ids"] if len(texts) else []


def as_words(tokenizer: Any, text: str) -> str:
    """Text of a model or a tool in a form for a chat template: special tokens get a blank after
    their first character, so they do not end turns. Without a template the text does not change."""
    templated = getattr(tokenizer, "chat_template", None)
    for token in tokenizer.all_special_tokens if templated else ():
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def _by_template(tokenizer: Any, text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """A question with its messages in the chat template, and the beginning of the response."""
    prompt = Prompt(text, messages=messages)
    chat = prompt.chat[:-1] if prompt.prefill else prompt.chat
    for turn in prompt.chat:
        content = turn["content"] + "".join(map(str, turn.get("tool_calls", ())))
        for token in tokenizer.all_special_tokens:
            if token in content:
                raise ValueError(
                    "prompts must have no special token of the tokenizer in them, where a chat"
                    f" template puts them, got {token!r} in {content[:80]!r}"
                )
    of_tools = _of_tools(tokenizer, chat)
    # Some templates shorten messages of the assistant.
    wanted = [t for t in chat if t["role"] != "assistant" and not (of_tools and "tools" in t)]
    chat = [{key: turn[key] for key in turn if key not in ("tools", "marks")} for turn in chat]
    shown = of_tools or _rendered(tokenizer, chat)
    lost = _lost(wanted, shown)
    if lost is not None:
        # Some templates require the content of a message as a list of parts.
        parts = [{**t, "content": [{"type": "text", "text": t["content"]}]} for t in chat]
        in_parts = _rendered(tokenizer, parts)
        if _lost(wanted, in_parts) is not None:
            raise ValueError(
                f"the tokenizer's chat template must show the {lost['role']}'s message, got"
                f" {shown[:200]!r} for {lost['content'][:80]!r}"
            )
        shown = in_parts
    for name in (call["function"]["name"] for turn in chat for call in turn.get("tool_calls", ())):
        if name not in shown:
            raise ValueError(
                f"the tokenizer's chat template must show calls of tools in messages, got"
                f" {shown[:200]!r} for a call of {name!r}. Leave these rows out, or write the calls"
                " into the messages' content"
            )
    added = prompt.prefill.strip()
    # A template may already add the beginning, such as <think>.
    return shown if added and shown.rstrip().endswith(added) else shown + prompt.prefill


def _lost(turns: Sequence[Mapping[str, Any]], shown: str) -> Mapping[str, Any] | None:
    """The last message that a rendered chat lacks, or None."""
    return next((t for t in reversed(turns) if t["content"].strip() not in shown), None)


def continued(prompt: Prompt, response: Response) -> Response:
    """A response after the beginning that its prompt prescribes, for the verifier."""
    prefill, tail = prompt.prefill, response.prompt_tail
    if not prefill:
        return response
    tail = "" if prefill.endswith(tail) else tail.removesuffix(prefill)
    return replace(response, text=prefill + response.text, prompt_tail=tail)


def _of_tools(tokenizer: Any, chat: Sequence[Mapping[str, Any]]) -> str:
    """A chat as text in which the template explains the tools; "" if it does not explain them or
    explains another form of calls."""
    described = next((turn for turn in chat if "tools" in turn), None)
    if described is None:
        return ""
    others = [turn for turn in chat if turn is not described]
    try:
        shown = _rendered(tokenizer, others, described["tools"])
    except ValueError:
        return ""
    wanted = [*described["marks"], *(tool["function"]["name"] for tool in described["tools"])]
    return shown if all(text in shown for text in wanted) else ""


def _rendered(
    tokenizer: Any, chat: Sequence[Mapping[str, Any]], known: Sequence[Any] | None = None
) -> str:
    """A chat as text, up to the response of the policy.

    Args:
      known: JSON schemas of tools.
    Raises:
      ValueError: the template refuses the chat.
    """
    given = dict(
        tokenize=False,
        add_generation_prompt=True,
        date_string=_TODAY.strftime("%d %b %Y"),
    )
    if "strftime_now" in str(tokenizer.chat_template):
        given["chat_template"] = _NOW.sub(
            lambda call: repr(_TODAY.strftime(call[2])), tokenizer.get_chat_template()
        )
    failure: Exception | None = None
    # Some templates count tools even if there are none.
    for tools in ({}, {"tools": []}) if known is None else ({"tools": known},):
        try:
            return tokenizer.apply_chat_template(list(chat), **given, **tools)
        except Exception as error:  # of the template's own code
            failure = error
            if isinstance(error, TemplateError):
                break
    roles = ", ".join(turn["role"] for turn in chat[:-1])
    raise ValueError(
        f"the tokenizer's chat template must take a user's message"
        f"{f' after messages of {roles}' if roles else ''}, got {type(failure).__name__}:"
        f" {failure} for {str(chat[-1]['content'])[:80]!r}"
    ) from failure


def tokens_fingerprint(tables: Sequence[PromptTable]) -> str:
    """Hash of the tokens of all prompts; a run does not resume with other tokens."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(repr(table.tokens.shape).encode())
        digest.update(np.ascontiguousarray(table.tokens, "<i4").tobytes())
        digest.update(np.ascontiguousarray(table.length, "<i4").tobytes())
    return digest.hexdigest()[:16]


def check_embedded(table: PromptTable, rows: int) -> None:
    """Raises if a prompt has an id that the model does not embed, such as that of a special token.

    Args:
      rows: number of rows of the model's embedding.
    Raises:
      ValueError: an id is not below `rows`.
    """
    largest = table.tokens.max(axis=1)
    worst = int(largest.argmax())
    if largest[worst] >= rows:
        raise ValueError(
            f"prompts must have ids below {rows}, the rows of the model's embedding, got"
            f" {largest[worst]} in {table.prompts[worst].text[:80]!r}"
        )


def check_readable(table: PromptTable, shown: Sequence[str], where: str, remedy: str = "") -> None:
    """Raises if a text has words that the tokenizer replaces by its token of unknown words.

    Args:
      table: the tokens of the texts `shown`.
      shown: text of each prompt.
      where: name of the split, for errors.
      remedy: the last sentence of the message; "": another policy, or other prompts.
    Raises:
      ValueError: names the words, the first prompt with one, and the number of such prompts.
    """
    known, unknown = table.tokenizer, getattr(table.tokenizer, "unk_token_id", None)
    if unknown is None:
        return
    inside = np.arange(table.tokens.shape[1])[None] < table.length[:, None]
    numbers = ((table.tokens == unknown) & inside).sum(axis=1)
    # The text may contain the token of unknown words itself.
    written = known.unk_token
    rows = [row for row in np.flatnonzero(numbers) if numbers[row] > shown[row].count(written)]
    if rows:
        text = shown[rows[0]]
        words = [word for word in text.split() if unknown_words(known, encode_text(known, word))]
        raise ValueError(
            f"{where} prompts must have words that the policy's tokenizer knows, got"
            f" {', '.join(map(repr, dict.fromkeys(words[:3]))) or 'others'} in {text[:120]!r}."
            f" This is the first of {len(rows)} such prompts of {len(shown)}."
            f" {remedy or 'Use a policy with another tokenizer, or leave these prompts out'}"
        )


def unknown_words(tokenizer: Any, tokens: Sequence[int]) -> int:
    """The number of tokens of words that the tokenizer does not know."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    return 0 if unknown is None else sum(token == unknown for token in tokens)


def shared_opening(tables: Sequence[PromptTable]) -> int:
    """The number of first tokens common to all prompts, such as a template's system message.

    It is below the length of the shortest prompt, and 0 if it would be below `LEAST_OPENING`.
    """
    first = tables[0].tokens[0]
    opening = min(int(table.length.min()) for table in tables) - 1
    for table in tables:
        differs = (table.tokens[:, :opening] != first[:opening]).any(axis=0)
        opening = int(differs.argmax()) if differs.any() else opening
    return opening if opening >= LEAST_OPENING else 0


def responses(tokenizer: Any, rollouts: Rollouts) -> list[Response]:
    """The texts of the responses of rollouts (numpy arrays), without the stop token."""
    ends = rollouts.length - ~rollouts.truncated
    texts = row_texts(
        tokenizer, [row[:end] for row, end in zip(rollouts.tokens, ends, strict=True)]
    )
    prompts = zip(rollouts.prompt_tokens, rollouts.prompt_length, strict=True)
    tails = row_texts(tokenizer, [row[max(0, end - TAIL) : end] for row, end in prompts])
    rows = zip(texts, rollouts.truncated, tails, strict=True)
    return [Response(text, bool(cut), tail) for text, cut, tail in rows]


def row_texts(tokenizer: Any, ids: Sequence[np.ndarray]) -> list[str]:
    """Rows of tokens as text; equal rows are decoded once."""
    rows = [tuple(row.tolist()) for row in ids]
    known = list(dict.fromkeys(rows))
    if not known:
        return []  # some versions of transformers, as 5.17, return [""]
    decoded = tokenizer.batch_decode(list(map(list, known)), clean_up_tokenization_spaces=False)
    texts = dict(zip(known, decoded, strict=True))
    return [texts[row] for row in rows]


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text that each token adds; nothing for a token that completes no character.

    A token is decoded after the last one that completed a character, because some tokenizers drop a
    space at the beginning of a text. A character has at most four bytes, so `_MOST_TOKENS` tokens
    without a complete one are not decoded again, and the time is linear.
    """

    def decoded(start, end):
        return tokenizer.decode(list(ids[start:end]), clean_up_tokenization_spaces=False)

    texts, start, complete, before = [], 0, 0, ""
    for end in range(1, len(ids) + 1):
        now = decoded(start, end)
        whole = now if end - complete >= _MOST_TOKENS else now.rstrip("\ufffd")
        texts.append(whole[len(before) :])
        before = whole if len(whole) > len(before) else before
        if whole == now:
            start, complete = complete, end
            before = decoded(start, end)
    return texts


def with_messages(prompts: Sequence[Prompt]) -> list[str]:
    """All texts of each prompt, the question last."""
    return [
        "\n".join([*(turn["content"] for turn in prompt.messages), prompt.text])
        for prompt in prompts
    ]
