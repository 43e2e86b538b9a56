"""R1-Searcher: learns to search in two stages, first to write queries, then to use documents.

"R1-Searcher: Incentivizing the Search Capability in LLMs via Reinforcement Learning",
https://github.com/RUCAIBox/R1-Searcher

    a response continues after the documents that a query finds, at most 8 times
    stage 1  R = ±1 (every word of the answer is there) + ½ (a well-formed query) + ½ (form)
    stage 2  R = F1 of the answer - 2 (a rule of the form is broken)
    A    = (R - mean of the prompt's rows - mean) / std, over the batch's own tokens
    loss = Σ max(-A ρ, -A clip(ρ, 0.8, 1.2)) / Σ n_i

Documents are read but not trained. Their mask is set when they are inserted; the authors look for
the tags afterwards. A response ends after 512 tokens without a query or an end (`segment_tokens`).
The tasks `searches:form=r1_searcher` and `lookup:form=r1_searcher` have the tags of the queries and
request the form.

Reports: RL without supervised fine-tuning is above strong RAG methods on HotpotQA, 2Wiki, Bamboogle
and Musique (no numbers).
Traps: Stage 1 is a separate run before stage 2. While the form is broken, the -2 outweighs F1. In
the paper, stage 1 has no reward for the answer; the code has one. Nothing corrects for top_p 0.95,
as in the authors' code.
"""

from typing import Any, Literal

from rlvr_jax.experience import column, experience, grade_also, shape, turns
from rlvr_jax.methods.baselines.reinforce_plus_plus import reinforce_plus_plus
from rlvr_jax.tools import between, search, toolbox
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, ReplyTokens, Unit
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.texts.r1_searcher import BEGIN, DOCUMENTS, DOCUMENTS_END, END


@arguments_of(reinforce_plus_plus, "clip_low", "clip_high", kl_coefficient=0.0)
def r1_searcher(
    corpus: str = "",
    stage: Literal[1, 2] = 2,
    documents: Count = 5,
    max_queries: Count = 8,
    reply_tokens: ReplyTokens = 1024,
    top_p: Unit = 0.95,
    segment_tokens: Count = 512,
    **loss: Any,
) -> Recipe:
    """Applies REINFORCE++ with a group baseline to responses that search.

    Args:
      corpus: JSONL file or folder of texts that is searched; "": the task has an environment.
      stage: stage whose reward is used.
      documents, max_queries: documents of a reply, and queries of a response.
      top_p: probability mass of the likeliest tokens that are sampled from.
      segment_tokens: maximum number of tokens up to a query or the end.
    """
    world = None
    if corpus:
        style = between(BEGIN, END, "search", f"\n{DOCUMENTS}\n", f"\n{DOCUMENTS_END}\n\n")
        world = toolbox(search(corpus, documents), style=style, most=max_queries, describe=False)
    draw = turns(world, max_queries, reply_tokens, turn_tokens=segment_tokens, top_p=top_p)
    rules = Check(f"rlvr_jax.verifiers.texts.r1_searcher:stage{stage}")
    stages = [grade_also(rules, ["reward", "queries", "formed"]), shape(column(0))]
    objective = reinforce_plus_plus(group_baseline=True, **loss).objective
    return Recipe(objective, experience(draw=draw, stages=stages))


METHOD = Method(
    r1_searcher,
    changes="sampling, reward, advantage",
    shown=Shown(
        "searches:form=r1_searcher",
        "info/formed",
        settings={"prompts_per_step": 16},
    ),
)
