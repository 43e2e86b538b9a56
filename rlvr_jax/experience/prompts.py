"""Between text and tokens: a task's prompts as arrays, and responses as text."""

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

__all__ = [
    "PromptTable",
    "as_words",
    "check_embedded",
    "check_readable",
    "continued",
    "encode_prompts",
    "encode_text",
    "prompt_lengths",
    "responses",
    "row_texts",
    "shared_opening",
    "shown_prompt",
    "stop_tokens",
    "token_texts",
    "tokens_fingerprint",
    "told_tokens",
    "unknown_words",
]

LEAST_OPENING = 16
"""Tokens from which on an opening gets a pass of its own through the layers. Chosen, not measured:
a pass reads all weights, and SmolLM2's 28 tokens save a twentieth of a call of the sampler."""


TAIL = 32
"""Tokens of a prompt's end that verifiers are shown."""

_MOST_PIECES = 16
_REASONING = ("reasoning_content", "reasoning", "thinking")
_NOW = re.compile(r"""strftime_now\(\s*(['"])(.*?)\1\s*\)""")
_TODAY = datetime(2024, 7, 26)
"""For templates that put in the date of the day, with which no run could be repeated: that of
Llama 3.2's where it cannot ask."""


@dataclass(frozen=True)
class PromptTable:
    """Prompts of one split with their tokens: int32 [n, P], right-padded, and lengths [n].

    `tokenizer` makes those of other texts (`encode`).
    """

    prompts: Sequence[Prompt]
    tokens: np.ndarray
    length: np.ndarray
    tokenizer: Any = None

    def has(self, number: int, prompt: Prompt) -> bool:
        """Whether a prompt stands at this place."""
        return number < len(self.prompts) and self.prompts[number] is prompt

    def encode(self, text: str, messages: Sequence[Mapping[str, str]] = ()) -> list[int]:
        """The tokens of another prompt's text behind its messages, as those of the table were made.

        A view may show what a model wrote: special tokens in it are words (`as_words`).

        Raises:
          ValueError: as `encode_prompts`.
        """
        text, known = as_words(self.tokenizer, text), self.tokenizer
        messages = [{**turn, "content": as_words(known, turn["content"])} for turn in messages]
        return _encoded(known, [text], [messages])[0]


def shown_prompt(table: PromptTable) -> list[str]:
    """The first prompt of a table as the policy sees it, a text for each token."""
    return token_texts(table.tokenizer, table.tokens[0, : table.length[0]].tolist())


def told_tokens(table: PromptTable, most: int = 400) -> str:
    """The first prompt of a table as the policy sees it, token by token.

    Args:
      most: characters; of a longer text the middle is left out.
    """
    pieces = shown_prompt(table)
    text = "│".join(pieces).replace("\n", "⏎")
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 2 :]}"
    return f"first prompt, {len(pieces)} tokens: {text}"


def encode_prompts(
    tokenizer: Any,
    prompts: Sequence[Prompt],
    budget: int,
    where: str,
    shown: Sequence[str] | None = None,
) -> PromptTable:
    """Tokenizes prompts, by the chat template if the tokenizer has one; else as they are, with the
    special tokens that the tokenizer puts around any text, but no end of sequence, and nothing
    before a prompt that begins as texts begin.

    Args:
      budget: longest allowed prompt; 0: the longest there is.
      where: name of the split, for errors.
      shown: what is shown of each; None: its text.
    Raises:
      ValueError: a prompt is empty, or longer than the budget; messages without a chat template; a
        chat template that refuses one, cannot be read, or leaves the question or a message before
        it out; a text with a special token in it, for a chat template.
    """
    shown = [prompt.text for prompt in prompts] if shown is None else shown
    rows = _encoded(tokenizer, shown, [prompt.messages for prompt in prompts])
    length = np.array([len(row) for row in rows], np.int32)
    shortest, longest = int(length.argmin()), int(length.argmax())
    if not length[shortest]:
        raise ValueError(f"{where} prompts must have tokens, got {shown[shortest]!r}")
    if budget and length[longest] > budget:
        raise ValueError(
            f"prompt_tokens must be at least {length[longest]} for the longest {where} prompt,"
            f" got {budget}: {shown[longest][:80]!r}"
        )
    tokens = np.zeros((len(rows), budget or int(length.max())), np.int32)
    for row, ids in enumerate(rows):
        tokens[row, : len(ids)] = ids
    return PromptTable(prompts, tokens, length, tokenizer)


def prompt_lengths(tokenizer: Any, prompts: Sequence[Prompt]) -> list[int]:
    """How many tokens each prompt has, as `encode_prompts` makes them."""
    texts = [prompt.text for prompt in prompts]
    return list(map(len, _encoded(tokenizer, texts, [prompt.messages for prompt in prompts])))


def encode_text(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text as it is, without a template and without special tokens."""
    return _tokenized(tokenizer, [text])[0]


def stop_tokens(
    tokenizer: Any, more: Sequence[int] = (), texts: Sequence[str] = ()
) -> tuple[int, ...]:
    """The tokens that end a response: the tokenizer's end of sequence, which is the first, others.

    Args:
      more: such as those of a model (`Model.stop_tokens`).
      texts: of one token each.
    Raises:
      ValueError: a text of no token or of several: the sampler sees tokens, and a text may be
        written by other ones.
    """
    ids = [tokenizer.eos_token_id, *more]
    for text in texts:
        own = encode_text(tokenizer, text)
        if len(own) != 1:
            parts = [tokenizer.decode([index]) for index in own]
            raise ValueError(
                f"stop must be texts of one token each, got {text!r}, which is {parts}"
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
                "prompts with messages before the user's must have a tokenizer with a chat"
                f" template, got {dict(before[0])!r} before {text[:80]!r} and a tokenizer without"
            )
    bare = _tokenized(tokenizer, texts)
    rows = []
    for text, whole, ids in zip(
        texts, bare, _tokenized(tokenizer, texts, special=True), strict=True
    ):
        if tokenizer.bos_token and text.startswith(tokenizer.bos_token):
            rows.append(whole)
            continue
        # What the tokenizer ends a text with is no part of a question that is to be answered.
        ended = ids[-1:] == [tokenizer.eos_token_id] and ids[-len(whole) :] != whole
        rows.append(ids[:-1] if ended else ids)
    return rows


def _warn_of_reasoning(messages: Sequence[Sequence[Mapping[str, Any]]], shown: Sequence[str]):
    """Counts prompts with reasoning in earlier turns that is not shown, as many templates do."""
    told = [
        [turn[name] for turn in own for name in _REASONING if turn.get(name)] for own in messages
    ]
    lost = [
        number
        for number, (texts, chat) in enumerate(zip(told, shown, strict=True))
        if any(text.strip() not in chat for text in texts)
    ]
    if lost:
        warnings.warn(
            f"{len(lost)} of {sum(map(bool, told))} prompts with reasoning in earlier messages are"
            f" shown without some of it, as the tokenizer's chat template leaves it out; the first:"
            f" {shown[lost[0]][:80]!r}",
            stacklevel=4,
        )


def _tokenized(tokenizer: Any, texts: Sequence[str], special: bool = False) -> list[list[int]]:
    """The tokens of all texts, in one call: 20,000 prompts of SmolLM2 then take 2.9 s of a core in
    place of 4.7."""
    return tokenizer(list(texts), add_special_tokens=special)["input_ids"] if len(texts) else []


def as_words(tokenizer: Any, text: str) -> str:
    """What a model or a tool has said, for a chat template, which puts the special tokens: those in
    the text get a blank behind their first character, so that they are no border between turns.
    Without a template the text is as it is."""
    templated = getattr(tokenizer, "chat_template", None)
    for token in tokenizer.all_special_tokens if templated else ():
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def _by_template(tokenizer: Any, text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """A question as the chat template shows it among its messages, and how the response begins."""
    prompt = Prompt(text, messages=messages)
    chat = prompt.chat[:-1] if prompt.prefill else prompt.chat
    for turn in prompt.chat:
        told = turn["content"] + "".join(map(str, turn.get("tool_calls", ())))
        for token in tokenizer.all_special_tokens:
            if token in told:
                raise ValueError(
                    "prompts must have no special token of the tokenizer in them, where a chat"
                    f" template puts them, got {token!r} in {told[:80]!r}"
                )
    of_tools = _of_tools(tokenizer, chat)
    # What the assistant has said, some templates shorten.
    wanted = [t for t in chat if t["role"] != "assistant" and not (of_tools and "tools" in t)]
    chat = [{key: turn[key] for key in turn if key not in ("tools", "marks")} for turn in chat]
    shown = of_tools or _rendered(tokenizer, chat)
    lost = _lost(wanted, shown)
    if lost is not None:
        # Some templates want the content of a message in parts.
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
                f" {shown[:200]!r} for a call of {name!r}; leave these rows out, or write the calls"
                " into the messages' content"
            )
    begun = prompt.prefill.strip()
    # A template may begin the response in the same words, such as <think>.
    return shown if begun and shown.rstrip().endswith(begun) else shown + prompt.prefill


def _lost(turns: Sequence[Mapping[str, Any]], shown: str) -> Mapping[str, Any] | None:
    """The last message that is not in a rendered chat; None: all are."""
    return next((t for t in reversed(turns) if t["content"].strip() not in shown), None)


def continued(prompt: Prompt, response: Response) -> Response:
    """A response behind what the prompt begins it with, as a verifier reads it."""
    begun, tail = prompt.prefill, response.prompt_tail
    if not begun:
        return response
    tail = "" if begun.endswith(tail) else tail.removesuffix(begun)
    return replace(response, text=begun + response.text, prompt_tail=tail)


def _of_tools(tokenizer: Any, chat: Sequence[Mapping[str, Any]]) -> str:
    """A chat as text in which the template itself explains the tools; "": it has no words for them,
    or for another way to call them."""
    told = next((turn for turn in chat if "tools" in turn), None)
    if told is None:
        return ""
    others = [turn for turn in chat if turn is not told]
    try:
        shown = _rendered(tokenizer, others, told["tools"])
    except ValueError:
        return ""
    wanted = [*told["marks"], *(tool["function"]["name"] for tool in told["tools"])]
    return shown if all(text in shown for text in wanted) else ""


def _rendered(
    tokenizer: Any, chat: Sequence[Mapping[str, Any]], known: Sequence[Any] | None = None
) -> str:
    """A chat as text, up to where the policy goes on.

    Args:
      known: JSON schemas of tools.
    Raises:
      ValueError: the template refuses it.
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
    # Some templates count the tools that there are not.
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
        f"{f' behind messages of {roles}' if roles else ''}, got {type(failure).__name__}:"
        f" {failure} for {str(chat[-1]['content'])[:80]!r}"
    ) from failure


def tokens_fingerprint(tables: Sequence[PromptTable]) -> str:
    """Hash of the tokens of all prompts: a run refuses to resume on others."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(repr(table.tokens.shape).encode())
        digest.update(np.ascontiguousarray(table.tokens, "<i4").tobytes())
        digest.update(np.ascontiguousarray(table.length, "<i4").tobytes())
    return digest.hexdigest()[:16]


def check_embedded(table: PromptTable, rows: int) -> None:
    """Refuses prompts with a token that the model does not embed, as some special tokens are.

    Args:
      rows: of the model's embedding.
    Raises:
      ValueError: a prompt has an id that is not below `rows`.
    """
    largest = table.tokens.max(axis=1)
    worst = int(largest.argmax())
    if largest[worst] >= rows:
        raise ValueError(
            f"prompts must have ids below {rows}, the rows of the model's embedding, got"
            f" {largest[worst]} in {table.prompts[worst].text[:80]!r}"
        )


def check_readable(table: PromptTable, shown: Sequence[str], where: str) -> None:
    """Refuses what is shown if the tokenizer does not know its words: the policy would read the
    token of unknown words in their place.

    Args:
      table: of `shown`.
    Raises:
      ValueError: names the words, the first prompt with one and the number of such prompts.
    """
    known, unknown = table.tokenizer, getattr(table.tokenizer, "unk_token_id", None)
    if unknown is None:
        return
    inside = np.arange(table.tokens.shape[1])[None] < table.length[:, None]
    numbers = ((table.tokens == unknown) & inside).sum(axis=1)
    # The token of unknown words may be a word that the text has.
    written = known.unk_token
    rows = [row for row in np.flatnonzero(numbers) if numbers[row] > shown[row].count(written)]
    if rows:
        text = shown[rows[0]]
        words = [word for word in text.split() if unknown_words(known, encode_text(known, word))]
        raise ValueError(
            f"{where} prompts must have words that the policy's tokenizer knows, got"
            f" {', '.join(map(repr, dict.fromkeys(words[:3]))) or 'others'} in {text[:120]!r},"
            f" the first of {len(rows)} such prompts of {len(shown)}; use a policy with another"
            " tokenizer, or leave these prompts out"
        )


def unknown_words(tokenizer: Any, tokens: Sequence[int]) -> int:
    """How many of some tokens stand for words that the tokenizer does not know."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    return 0 if unknown is None else sum(token == unknown for token in tokens)


def shared_opening(tables: Sequence[PromptTable]) -> int:
    """How many tokens all prompts begin with, one less than the shortest prompt at most; such as
    what a chat template puts first. 0 if there are fewer than `LEAST_OPENING`."""
    first = tables[0].tokens[0]
    opening = min(int(table.length.min()) for table in tables) - 1
    for table in tables:
        differs = (table.tokens[:, :opening] != first[:opening]).any(axis=0)
        opening = int(differs.argmax()) if differs.any() else opening
    return opening if opening >= LEAST_OPENING else 0


def responses(tokenizer: Any, rollouts: Rollouts) -> list[Response]:
    """The responses of rollouts (as numpy arrays) as text, without the stop token."""
    ends = rollouts.length - ~rollouts.truncated
    texts = row_texts(
        tokenizer, [row[:end] for row, end in zip(rollouts.tokens, ends, strict=True)]
    )
    prompts = zip(rollouts.prompt_tokens, rollouts.prompt_length, strict=True)
    tails = row_texts(tokenizer, [row[max(0, end - TAIL) : end] for row, end in prompts])
    rows = zip(texts, rollouts.truncated, tails, strict=True)
    return [Response(text, bool(cut), tail) for text, cut, tail in rows]


def row_texts(tokenizer: Any, ids: Sequence[np.ndarray]) -> list[str]:
    """Rows of tokens as text; rows that are equal are decoded once."""
    rows = [tuple(row.tolist()) for row in ids]
    known = list(dict.fromkeys(rows))
    if not known:
        return []  # some versions of transformers, as 5.17, say [""]
    decoded = tokenizer.batch_decode(list(map(list, known)), clean_up_tokenization_spaces=False)
    texts = dict(zip(known, decoded, strict=True))
    return [texts[row] for row in rows]


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """What each token adds to the text; a token that completes no character adds nothing.

    A token is decoded behind the one that completed a character last, which it may depend on (a
    space at the beginning of a text is dropped by some tokenizers). A character has four bytes at
    most: what is not complete after `_MOST_PIECES` tokens never will be, and the time is linear.
    """

    def decoded(start, end):
        return tokenizer.decode(list(ids[start:end]), clean_up_tokenization_spaces=False)

    texts, start, complete, before = [], 0, 0, ""
    for end in range(1, len(ids) + 1):
        now = decoded(start, end)
        whole = now if end - complete >= _MOST_PIECES else now.rstrip("\ufffd")
        texts.append(whole[len(before) :])
        before = whole if len(whole) > len(before) else before
        if whole == now:
            start, complete = complete, end
            before = decoded(start, end)
    return texts
