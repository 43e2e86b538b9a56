"""Rewards of a response that searches: for its queries, its form, and its answer.

Source: https://github.com/RUCAIBox/R1-Searcher (train/reward_server_qwen_zero.py).
"""

import re
from typing import Any

from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.short_answers import f1, normal

BEGIN, END = "<|begin_of_query|>", "<|end_of_query|>"
DOCUMENTS, DOCUMENTS_END = "<|begin_of_documents|>", "<|end_of_documents|>"
_COUNTED = (
    *(BEGIN, END, DOCUMENTS, DOCUMENTS_END),
    *(f"{DOCUMENTS}\n", f"{DOCUMENTS_END}\n\n", f"{DOCUMENTS}\n(1)"),
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SHOWN = re.compile(re.escape(DOCUMENTS) + ".*?" + re.escape(DOCUMENTS_END), re.DOTALL)
_MOST_WORDS = 10


def stage1_reward(text: str, gold: str) -> float:
    """The first stage, which teaches the model to call the search.

    1 if the answer has every word of the gold, else -1 (also without both answer tags). Further ½
    for queries whose parts are all there, and ½ for the form.
    """
    answer = _answer(text)
    correct = answer is not None and {*normal(gold).split()} <= {*normal(answer).split()}
    return (1.0 if correct else -1.0) + 0.5 * (_queries(text) >= 1) + 0.5 * _formed(text)


def stage2_reward(text: str, gold: str) -> float:
    """The second stage, which teaches the model to use the documents: F1, minus 2 if a rule is
    broken.

    Broken rules: query parts that do not match; "Assistant" anywhere; another form; a query in the
    answer; an answer of more than 10 words; Chinese characters outside of documents.
    """
    answer = _answer(text)
    reward = 0.0 if answer is None else f1(answer, gold)
    return reward - 2.0 * _broken(text)


def _broken(text: str) -> bool:
    """Whether a rule of the second stage is broken."""
    written = _answer(text) or ""
    return (
        _queries(text) < 0
        or "assistant" in text
        or "Assistant" in text
        or not _formed(text)
        or "begin_of_query" in written
        or "begin_of_documents" in written
        or len(written.split()) > _MOST_WORDS
        or bool(_CHINESE.search(_SHOWN.sub("", text)))
    )


def stage1(response: str, gold: Any) -> Grade:
    """`stage1_reward` as the number "reward"; the outcome is whether the answer has every word.

    Metrics: reward (`stage1_reward`), queries (queries of a response), formed (1 if no rule of
      the form is broken).
    """
    return _grade(stage1_reward(response, str(gold)), response, str(gold))


def stage2(response: str, gold: Any) -> Grade:
    """The outcome is the F1.

    Metrics: reward (`stage2_reward`), queries (queries of a response), formed (1 if no rule of
      the form is broken).
    """
    return _grade(stage2_reward(response, str(gold)), response, str(gold))


def _grade(reward: float, response: str, gold: str) -> Grade:
    answer = _answer(response)
    value = 0.0 if answer is None else f1(answer, gold)
    info = {"reward": reward, "queries": max(_queries(response), 0)}
    info["formed"] = float(not _broken(response))
    return Grade(value, answer=answer, info=info)


def _answer(text: str) -> str | None:
    """The text after the last <answer>, up to </answer>; None without both."""
    if "<answer>" not in text or "</answer>" not in text:
        return None
    return text.rpartition("<answer>")[2].partition("</answer>")[0].strip()


def _queries(text: str) -> int:
    """Number of queries; -1 if their parts do not match."""
    counts = {text.count(part) for part in _COUNTED}
    return counts.pop() if len(counts) == 1 else -1


def _formed(text: str) -> bool:
    once = all(text.count(tag) == 1 for tag in ("</think>", "<answer>", "</answer>"))
    return once and "<think>" not in text
