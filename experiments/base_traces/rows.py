"""Traces of a base model as padded tokens."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.tasks.brackets import PADDING


class Trace(NamedTuple):
    """A prompt and a response to it.

    Fields:
      prompt: words of the prompt.
      response: segments of words, and whether each is only context, such as the reply of a tool.
    """

    prompt: Sequence[str]
    response: Sequence[tuple[Sequence[str], bool]]


class Rows(NamedTuple):
    """Prompts with responses: padded tokens [n, S], lengths [n], lengths of prompts [n], and the
    tokens of responses that are only context [n, S]."""

    tokens: np.ndarray
    length: np.ndarray
    prompt_length: np.ndarray
    context: np.ndarray


def padded_rows(traces: Sequence[Trace], ids: Mapping[str, int], stop: str) -> Rows:
    """The tokens of traces; each response ends with the stop token."""
    prompt_length = np.array([len(trace.prompt) for trace in traces])
    length = prompt_length + [1 + sum(len(words) for words, _ in t.response) for t in traces]
    tokens = np.full((len(traces), length.max()), ids[PADDING], np.int32)
    context = np.zeros(tokens.shape, bool)
    for row, trace in enumerate(traces):
        place = 0
        for words, given in ((trace.prompt, False), *trace.response, ((stop,), False)):
            end = place + len(words)
            tokens[row, place:end] = [ids[word] for word in words]
            context[row, place:end] = given
            place = end
    return Rows(tokens, length, prompt_length, context)
