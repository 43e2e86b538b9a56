"""R1-Searcher: learning to search, first to make queries, then to use the documents.

"R1-Searcher: Incentivizing the Search Capability in LLMs via Reinforcement Learning",
https://github.com/RUCAIBox/R1-Searcher

    a response continues after the documents that a query finds, at most 8 times
    stage 1  R = ±1 (every word of the answer is there) + ½ (a well-formed query) + ½ (form)
    stage 2  R = F1 of the answer - 2 (a rule of the form is broken)
    A    = (R - mean of the prompt's rows - mean) / std, over the batch's own tokens
    loss = Σ max(-A ρ, -A clip(ρ, 0.8, 1.2)) / Σ n_i

Documents are read and not trained. Their mask is made when they are inserted, where the authors
look for the tags afterwards. A response ends if it writes 512 tokens without a query or an end.

Reports: only RL, without SFT: above strong RAG methods on HotpotQA, 2Wiki, Bamboogle and Musique
Traps: stage 1 comes first, in a separate run; while forms are broken the -2 outweighs F1; the
paper's stage 1 pays no answer, its code does; nothing corrects for top_p 0.95, as in their code
"""

from typing import Any, Literal

from rlvr_jax.experience import column, experience, grade_also, shape, turns
from rlvr_jax.methods.baselines.reinforce_plus_plus import reinforce_plus_plus
from rlvr_jax.tools import between, search, toolbox
from rlvr_jax.types import Method, Recipe, arguments_of
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
    """REINFORCE++ with a group baseline on responses that search.

    Args:
      corpus: JSONL file or folder of texts that is searched; "": the task has an environment.
      stage: which of the rewards.
      documents, max_queries: of a reply, and of a response.
      segment_tokens: tokens up to a query or the end, at most.
    """
    world = None
    if corpus:
        style = between(BEGIN, END, "search", f"\n{DOCUMENTS}\n", f"\n{DOCUMENTS_END}\n\n")
        world = toolbox(search(corpus, documents), style=style, most=max_queries, describe=False)
    draw = turns(world, max_queries, reply_tokens, turn_tokens=segment_tokens, top_p=top_p)
    rules = Check(f"rlvr_jax.verifiers.texts.r1_searcher:stage{stage}")
    stages = [grade_also(rules, ["reward", "queries"]), shape(column(0))]
    objective = reinforce_plus_plus(group_baseline=True, **loss).objective
    return Recipe(objective, experience(draw=draw, stages=stages))


METHOD = Method(r1_searcher, changes="sampling, reward, advantage")
