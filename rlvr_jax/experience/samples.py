"""Responses of a batch as JSON rows for people to read; see docs/run_directory.md, samples/."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.prompts import responses, token_texts
from rlvr_jax.tasks import Response


def sample_rows(
    batch: Batch, records: Mapping[str, np.ndarray], step: int, count: int
) -> list[dict[str, Any]]:
    """Responses of a step with their tokens: the first response of each of the first groups.

    Args:
      batch: of the step, before padding.
      records: records of the learner, [B, T] each.
      step: number of the step.
      count: largest number of groups.
    """
    rows = np.array([rows[0] for rows in batch.groups][:count], int)
    known = _known_records(batch, records)
    # A row that another row of its response continues ends without a stop token.
    goes_on = batch.last_of_trace != np.arange(len(batch))
    shown = batch.rollouts.replace(truncated=batch.rollouts.truncated | goes_on)
    texts = responses(batch.tokenizer, jax.tree.map(lambda x: x[rows], shown))
    found = []
    for row, response in zip(rows.tolist(), texts, strict=True):
        length = int(batch.rollouts.length[row])
        per_token = {
            name: [
                None if np.isnan(value) else round(value, 4)
                for value in known[name][row, :length].astype(float).tolist()
            ]
            for name in ("entropy", "logp", "advantage", "ratio")
        }
        marks = {
            name: records[name][row, :length].astype(int).tolist() for name in ("chosen", "clipped")
        }
        own = sample_row(batch, row, response, batch.tokenizer)
        found.append({"step": step, **own, **per_token, **marks})
    return found


def _known_records(batch: Batch, records: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The records of a step, with the sampler's `entropy` and `logp` for tokens that are not
    trained, such as those of truncated responses; NaN for tokens that were not sampled.
    """
    rollouts = batch.rollouts.only_valid()
    sampled = np.ones(rollouts.tokens.shape, bool)
    if "origin" in rollouts.records:
        sampled = rollouts.records["origin"] == 0
    if "off_policy" in rollouts.records:
        sampled = sampled & ~rollouts.records["off_policy"][:, None]
    recorded = {"entropy": rollouts.entropy, "logp": rollouts.behaviour_logp}
    return dict(records) | {
        name: np.where(rollouts.mask, records[name], np.where(sampled, value, np.nan))
        for name, value in recorded.items()
    }


def sample_row(batch: Batch, row: int, response: Response, tokenizer: Any) -> dict[str, Any]:
    """Stored values of a response besides its tokens' numbers, as JSON; with the turn and origin of
    each token where they are known.

    Args:
      batch: that has the row.
      row: number of the row.
      response: text and stop of the response.
      tokenizer: a tokenizer of transformers.
    """
    grade = batch.grades[row]
    length = int(batch.rollouts.length[row])
    written = {
        name: batch.rollouts.get(name)[row, :length].astype(int).tolist()
        for name in ("turn", "origin")
        if batch.rollouts.get(name) is not None
    }
    compared = [own._asdict() for own in grade.compared]
    return {
        "prompt": batch.prompts[row].text,
        "response": response.text,
        "kind": batch.prompts[row].kind,
        "group": int(batch.rollouts.group[row]),
        "outcome": float(batch.rollouts.outcome[row]),
        "reward": float(batch.rollouts.reward[row]),
        "truncated": bool(batch.rollouts.truncated[row]),
        "answer": grade.answer,
        "stage": grade.stage,
        "timed_out": grade.timed_out,
        "verdict": grade.outcome is not None,
        "reply": grade.reply,
        **({"row": int(batch.rollouts.rollout_id[row]), "compared": compared} if compared else {}),
        "tokens": token_texts(tokenizer, batch.rollouts.tokens[row, :length].tolist()),
        **written,
    }
