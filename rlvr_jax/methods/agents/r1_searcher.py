"""R1-Searcher: learning to search, first to make queries, then to use the documents.

"R1-Searcher: Incentivizing the Search Capability in LLMs via Reinforcement Learning",
https://github.com/RUCAIBox/R1-Searcher

    a response continues after the documents that a query finds, at most 8 times
    stage 1  R = ±1 (every word of the answer is there) + ½ (a well-formed query) + ½ (form)
    stage 2  R = F1 of the answer - 2 (a rule of the form is broken)
    A    = (R - mean of the prompt's rows - mean) / std, over the batch's own tokens
    loss = Σ max(-A ρ, -A clip(ρ, 0.8, 1.2)) / Σ n_i

Documents are read and not trained. Their mask is made when they are inserted, where the authors
look for the tags afterwards. The authors sample with top_p 0.95 and do not correct for it. A
response ends if it writes 512 tokens without a query or an end.

Reports: only RL, without SFT: above strong RAG methods on HotpotQA, 2Wiki, Bamboogle and Musique
Traps: stage 1 comes first, in a separate run; while forms are broken the -2 outweighs F1; the
paper's stage 1 pays no answer, its code does; top_p 0.95 is not corrected for
"""

from typing import Literal

from rlvr_jax.experience import column, experience, grade_also, shape, turns
from rlvr_jax.methods.baselines.reinforce_plus_plus import reinforce_plus_plus
from rlvr_jax.tools import between, search, toolbox
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    KLCoefficient,
    ReplyTokens,
    Unit,
)
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.texts.r1_searcher import BEGIN, DOCUMENTS, DOCUMENTS_END, END

RULES = "rlvr_jax.verifiers.texts.r1_searcher"


def r1_searcher(
    corpus: str = "",
    stage: Literal[1, 2] = 2,
    documents: Count = 5,
    max_queries: Count = 8,
    reply_tokens: ReplyTokens = 1024,
    kl_coefficient: KLCoefficient = 0.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    top_p: Unit = 0.95,
    segment_tokens: Count = 512,
) -> Recipe:
    """REINFORCE++ with a group baseline on responses that search.

    Args:
      corpus: JSONL file or folder of texts that is searched; "": the task has an environment.
      stage: 1 or 2, which of the rewards.
      documents: of a reply.
      max_queries: of a response.
      top_p: mass that is sampled from.
      segment_tokens: tokens up to a query or the end, at most.
    Raises:
      ValueError: a corpus without texts.
    """
    world = None
    if corpus:
        style = between(BEGIN, END, "search", f"\n{DOCUMENTS}\n", f"\n{DOCUMENTS_END}\n\n")
        world = toolbox(search(corpus, documents), style=style, most=max_queries, describe=False)
    draw = turns(
        world,
        limit=max_queries,
        reply_tokens=reply_tokens,
        turn_tokens=segment_tokens,
        top_p=top_p,
    )
    rules = Check(f"{RULES}:stage{stage}")
    return Recipe(
        objective=reinforce_plus_plus(
            kl_coefficient=kl_coefficient,
            clip_low=clip_low,
            clip_high=clip_high,
            group_baseline=True,
        ).objective,
        experience=experience(
            draw=draw,
            stages=[grade_also(rules, ["reward", "queries"]), shape(column(0))],
        ),
    )


METHOD = Method(r1_searcher, changes="sampling, reward, advantage")
