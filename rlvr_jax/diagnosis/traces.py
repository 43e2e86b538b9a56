"""Writes what an update does to each token of stored responses, as JSON lines and as a page.

    python -m rlvr_jax.diagnosis.traces ROLLOUTS.npz --policy POLICY --reference START

ROLLOUTS.npz is a file of `python -m rlvr_jax.diagnosis --keep FOLDER`, or of
`python -m rlvr_jax store_rollouts`.
POLICY scores its tokens: log-prob, entropy, rank, margin. The old log-prob is that of the file, the
advantage GRPO's of the stored outcomes. With --reference the reference KL is written, too.

A line is a response with a list per column: `analysis.entropy.token_trace_report` has the columns.
The command prints the tokens with the largest gradient weight, and percentiles of each column.
"""

import argparse
import functools
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rlvr_jax import policy
from rlvr_jax.analysis.diagnosis.page import write_page
from rlvr_jax.analysis.diagnosis.topics import Table, Topic
from rlvr_jax.analysis.entropy.token_trace_report import (
    TokenTrace,
    clip_fraction,
    rank_and_margin,
    token_trace,
    write_traces,
)
from rlvr_jax.diagnosis.influence import grpo_advantage
from rlvr_jax.experience.prompts import token_texts
from rlvr_jax.policy.scoring import run_in_chunks
from rlvr_jax.rollout import load_rollouts
from rlvr_jax.types import Rollouts, TokenStats

_AT_ONCE = 8  # rows whose logits are in memory together
_SHOWN_TOKENS, _FEWEST = 12, 3
_PERCENTILES = (5, 50, 95)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    try:
        rollouts, texts = _stored(options.rollouts, options.groups)
        tokenizer = policy.tokenizer(options.policy)
        trace = _trace(rollouts, options)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    rows = _rows(rollouts, texts, trace, tokenizer)
    fields = [{name: row[name] for name in _OWN if name in row} for row in rows]
    written = write_traces(options.out, trace, rollouts.mask, fields, options.held_out)
    topic = _topic(rollouts, trace, rows)
    for sentence in topic.sentences:
        print(sentence)
    for table in topic.tables:
        print(f"{table.heading}\n  {'  '.join(table.head)}")
        print("\n".join(f"  {'  '.join(map(str, row))}" for row in table.rows))
    print(written)
    if options.page:
        names = (str(options.rollouts), str(options.policy))
        print(write_page(options.page, [topic], f"Token traces: {names[1]}", names, (rows,)))


_OWN = ("prompt", "response", "kind", "group", "outcome", "truncated", "answer", "tokens")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.diagnosis.traces",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "rollouts", type=Path, metavar="ROLLOUTS.npz", help="file of stored responses with outcomes"
    )
    add("--policy", required=True, help="policy folder or .gguf file that scores the tokens")
    add("--reference", help="frozen policy of the reference KL (default: no such column)")
    add("--groups", type=int, default=8, help="number of prompts, from the first on; 0: all")
    add("--clip-low", type=float, default=0.2, help="ratios below 1 minus this value are clipped")
    add("--clip-high", type=float, default=0.28, help="ratios above 1 plus this value are clipped")
    add("--held-out", action="store_true", help="mark the lines as test items")
    add("--out", type=Path, default=Path("traces.jsonl"), help="the file of JSON lines")
    add("--page", type=Path, help="also write a page with coloured tokens")
    return parser


def _stored(path: Path, groups: int) -> tuple[Rollouts, Mapping[str, Sequence[str]]]:
    """The rows of the first groups, and their texts."""
    if groups < 0:
        raise ValueError(f"traces: --groups must be at least 0, got {groups}")
    if not path.is_file():
        raise ValueError(
            f"traces: ROLLOUTS.npz must be a file of rlvr_jax.diagnosis --keep, got {path}"
        )
    rollouts, _, texts = load_rollouts(path)
    if groups:
        rows = np.flatnonzero(np.isin(rollouts.group, np.unique(rollouts.group)[:groups]))
        rollouts = jax.tree.map(lambda values: values[rows], rollouts)
        texts = {name: [own[row] for row in rows] for name, own in texts.items()}
    if rollouts.old_logp is None and rollouts.behaviour_logp is None:
        raise ValueError(f"traces: {path} must have old_logp or behaviour_logp, got neither")
    return rollouts, texts


def _trace(rollouts: Rollouts, options: argparse.Namespace) -> TokenTrace:
    model, params = policy.load(options.policy)
    largest = int(rollouts.tokens.max())
    for name in filter(None, (options.policy, options.reference)):
        size = len(policy.tokenizer(name).get_vocab())
        if largest >= size:
            raise ValueError(
                f"traces: {options.rollouts} must have tokens of {name}, which has {size}, got"
                f" token {largest}"
            )

    def statistics(rows):
        stats, logits = _scored(model, params, rows)
        return stats.logp, stats.entropy, *rank_and_margin(logits, rows.tokens)

    logp, entropy, rank, margin = run_in_chunks(statistics, rollouts, _AT_ONCE)
    reference = None
    if options.reference:
        frozen = policy.load(options.reference)
        reference = run_in_chunks(lambda rows: _scored(*frozen, rows)[0].logp, rollouts, _AT_ONCE)
    old = rollouts.behaviour_logp if rollouts.old_logp is None else rollouts.old_logp
    advantage = grpo_advantage(np.asarray(rollouts.outcome, float), rollouts.group)
    return token_trace(
        logp=logp,
        old_logp=old,
        entropy=entropy,
        rank=rank,
        margin=margin,
        advantage=advantage[:, None],
        mask=rollouts.mask,
        ref_logp=reference,
        clip_low=options.clip_low,
        clip_high=options.clip_high,
    )


@functools.partial(jax.jit, static_argnums=0)
def _scored(
    model: policy.Model, params: policy.Params, rows: Rollouts
) -> tuple[TokenStats, jax.Array]:
    """Log-probs and entropies, and the logits [B, T, V] at the sampling temperature."""
    stats = policy.score(model, params, rows, ("logp", "entropy", "hidden"))
    logits = model.to_logits(params, stats.records["hidden"])
    return stats, logits / rows.temperature[..., None]


def _rows(
    rollouts: Rollouts, texts: Mapping[str, Sequence[str]], trace: TokenTrace, tokenizer: Any
) -> list[dict[str, Any]]:
    """The responses with their columns, in the format of a run's stored responses."""
    rows = []
    for row, kept in enumerate(rollouts.mask):
        prompt = rollouts.prompt_tokens[row, : rollouts.prompt_length[row]]
        columns = {
            "entropy": trace.entropy,
            "logp": trace.logp,
            "advantage": trace.advantages,
            "ratio": trace.ratio,
            "clipped": (trace.clipped_high | trace.clipped_low).astype(int),
            "prob_delta": trace.prob_delta,
        }
        rows.append(
            {
                "prompt": tokenizer.decode(prompt.tolist()),
                "response": tokenizer.decode(rollouts.tokens[row][kept].tolist()),
                "group": int(rollouts.group[row]),
                "outcome": float(rollouts.outcome[row]),
                "truncated": bool(rollouts.truncated[row]),
                "tokens": token_texts(tokenizer, rollouts.tokens[row][kept].tolist()),
                **{name: own[row] for name, own in texts.items() if name in ("kind", "answer")},
                **{name: values[row][kept].tolist() for name, values in columns.items()},
            }
        )
    return rows


def _topic(rollouts: Rollouts, trace: TokenTrace, rows: Sequence[Mapping[str, Any]]) -> Topic:
    """Sentences about all stored tokens: rank, clipping, concentration of the gradient."""
    topic, mask = Topic("Token traces"), rollouts.mask
    size = np.abs(trace.gradient_weight[mask])
    first = trace.rank[mask] == 0
    top = np.sort(size)[::-1][: max(1, len(size) // 5)]
    topic.sentences += [
        f"{len(rows)} responses to {len(np.unique(rollouts.group))} prompts, {mask.sum()} tokens:"
        f" {100 * first.mean():.1f} % are the most probable token of the policy, and"
        f" {100 * clip_fraction(trace, mask).mean():.1f} % are clipped (mean over responses).",
        f"The fifth of the tokens with the largest |gradient weight| has"
        f" {100 * top.sum() / max(size.sum(), 1e-12):.0f} % of its sum. Mismatch KL: mean"
        f" {trace.mismatch_kl[mask].mean():.4f} nats per token.",
    ]
    if trace.ref_kl is not None:
        topic.sentences.append(
            f"Reference KL: mean {trace.ref_kl[mask].mean():.4f} nats per token."
        )
    columns = ("entropy", "surprise", "rank", "margin", "mismatch_kl", "ref_kl", "gradient_weight")
    known = {name: getattr(trace, name) for name in columns if getattr(trace, name) is not None}
    lines = [
        [name, *(f"{value + 0:.4g}" for value in np.percentile(values[mask], _PERCENTILES))]
        for name, values in known.items()
    ]
    head = ["column", *(f"{percent} %" for percent in _PERCENTILES)]
    topic.tables.append(Table("Percentiles over tokens", head, lines))
    weights = defaultdict(list)
    texts = [text for row in rows for text in row["tokens"]]
    for text, weight in zip(texts, trace.gradient_weight[mask], strict=True):
        weights[text].append(weight)
    often = {text: own for text, own in weights.items() if len(own) >= _FEWEST}
    order = sorted(often, key=lambda text: -np.mean(np.abs(often[text])))[:_SHOWN_TOKENS]
    lines = [
        [repr(text), len(own), f"{np.mean(np.abs(own)):.3f}", f"{np.mean(own):+.3f}"]
        for text, own in ((text, often[text]) for text in order)
    ]
    head = ["token", "times", "mean |gradient weight|", "mean gradient weight"]
    topic.tables.append(Table(f"Tokens that occur {_FEWEST} times or more", head, lines))
    return topic


if __name__ == "__main__":
    main()
