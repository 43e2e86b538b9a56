"""One chain for each public factory of a paper, and tests of groups: `part_cases` has them all."""

import numpy as np
from small_environments import Counting, Ending

from rlvr_jax.experience import (
    PLAIN,
    all_incorrect,
    by_rubric,
    column,
    compare_by,
    compare_with,
    embed,
    experience,
    outside,
    plain,
    redraw,
    refill,
    rehearse,
    request_verdict,
    score_steps,
    shape,
    shuffled_epochs,
    signed_outcome,
    total,
    tournament,
    turns,
    uniform,
)
from rlvr_jax.experience.views import hint, with_note
from rlvr_jax.judges import Judge, comparison, number, question, two_numbers
from rlvr_jax.methods.agents.arpo import reward_two_tools
from rlvr_jax.methods.agents.epo import turn_rows
from rlvr_jax.methods.agents.fission_grpo import recover
from rlvr_jax.methods.agents.grpo_roc import select_cleanest
from rlvr_jax.methods.agents.retroagent import beyond_best, retrospect
from rlvr_jax.methods.agents.skill0 import withdraw_skills
from rlvr_jax.methods.agents.spear import over_steps, replay_good, train_varied_groups
from rlvr_jax.methods.agents.supo import summaries, summarized_turns
from rlvr_jax.methods.agents.sweet_rl import train_under
from rlvr_jax.methods.agents.sweet_rl_policy import pair_turns
from rlvr_jax.methods.agents.verltool import mask_void
from rlvr_jax.methods.baselines.brorl import count_broadened
from rlvr_jax.methods.baselines.expert_iteration import imitate_correct, restart_every
from rlvr_jax.methods.baselines.self_data_curation import sample_greedily, screen
from rlvr_jax.methods.baselines.w_grpo_pairing import rare_event_pair
from rlvr_jax.methods.clipping.t_ppo import in_windows
from rlvr_jax.methods.clipping.vpo import rate_first
from rlvr_jax.methods.credit.delethink import chunks
from rlvr_jax.methods.credit.prof import select_consistent
from rlvr_jax.methods.credit.spae import probe_steps
from rlvr_jax.methods.curricula.clpo import rewrite_prompts
from rlvr_jax.methods.curricula.cog_drift import climb_formats
from rlvr_jax.methods.curricula.dr_sci import mastery_pool
from rlvr_jax.methods.curricula.drive import shrinking_pool
from rlvr_jax.methods.curricula.dynamic_sampling import adaptive_refill, prioritized, undecided
from rlvr_jax.methods.curricula.mmr1_vas import variance_promotion
from rlvr_jax.methods.curricula.multi_domain import one_level_at_a_time
from rlvr_jax.methods.curricula.one_shot import chosen_prompts, prompts_of_largest_variance
from rlvr_jax.methods.curricula.prompt_augmentation import random_templates, reward_template
from rlvr_jax.methods.curricula.rlve import adaptive_levels
from rlvr_jax.methods.curricula.sws import shift_to_weaknesses
from rlvr_jax.methods.distillation.mel import reflect
from rlvr_jax.methods.distillation.meml_grpo import (
    imitate_hard,
    join_groups,
    sample_experts,
    show_to_worst,
)
from rlvr_jax.methods.entropy.arbitrary_entropy import draw_controllers
from rlvr_jax.methods.entropy.ead import count_cooled, growing_horizon
from rlvr_jax.methods.entropy.erpo import all_correct, heat_solved
from rlvr_jax.methods.entropy.hapo_temperature import entropy_heated
from rlvr_jax.methods.exploration.depth_breadth_dars import budget_for_hard, draw_more
from rlvr_jax.methods.exploration.dph_rl import set_solved_aside
from rlvr_jax.methods.exploration.dsdr import find_formulas
from rlvr_jax.methods.exploration.reasoning_palette import soft_prefixes
from rlvr_jax.methods.exploration.rep_exploration import novelty_bonus
from rlvr_jax.methods.exploration.rorecomp import recompose
from rlvr_jax.methods.exploration.soft_grpo import soft_thinking
from rlvr_jax.methods.guidance.adcl_egsr import chunks_by_difficulty, replace_failures
from rlvr_jax.methods.guidance.ampo import none_above, place_ranked_traces
from rlvr_jax.methods.guidance.critique_ft import imitate_solutions
from rlvr_jax.methods.guidance.flawed_prefix import begin_with_flaw, mix_views
from rlvr_jax.methods.guidance.g2rpo_a import guide_first_rows
from rlvr_jax.methods.guidance.guide import mean_at_most
from rlvr_jax.methods.guidance.hpt import demonstrate, solved_at_most
from rlvr_jax.methods.guidance.intervention_training import (
    imitate_own_interventions,
    imitate_scored_interventions,
)
from rlvr_jax.methods.guidance.nurl import hint_failed_groups, unsolved_pool, written_hint
from rlvr_jax.methods.guidance.prefix_rl import begin_with_prefixes
from rlvr_jax.methods.guidance.questa import augmented, show_as
from rlvr_jax.methods.guidance.reverse_curriculum import begin_near_the_end
from rlvr_jax.methods.guidance.scope import salvage
from rlvr_jax.methods.guidance.seele import remember_hints, search_hint
from rlvr_jax.methods.guidance.ssb import bootstrap_replies
from rlvr_jax.methods.judges.arena_rl import anchor, anchor_scores, wins
from rlvr_jax.methods.judges.critique_rl import some_verdicts
from rlvr_jax.methods.judges.laser import reward_itself
from rlvr_jax.methods.judges.meta_policy import judge_and_rewrite
from rlvr_jax.methods.judges.rgr_grpo import refine
from rlvr_jax.methods.judges.rlbff import reward_odds
from rlvr_jax.methods.judges.v1_pairwise import rate_pairs
from rlvr_jax.methods.off_policy.arrol import prune
from rlvr_jax.methods.off_policy.prerl import without_prompt
from rlvr_jax.methods.off_policy.spec_rl import from_drafts
from rlvr_jax.methods.rewards.ares import mark_triggers
from rlvr_jax.methods.rewards.olr import relabel
from rlvr_jax.methods.rewards.papo import hide_words, second_prompt
from rlvr_jax.methods.rewards.rewardmap import kinds_in_order
from rlvr_jax.methods.rewards.rlpr import Spliced, likely_answers
from rlvr_jax.methods.rewards.sirl_solver import mark_code
from rlvr_jax.methods.rewards.spurious_rewards import random_reward
from rlvr_jax.methods.self_play.absolute_zero import earn_learnability, propose_and_solve
from rlvr_jax.methods.self_play.gar import fuse_statements
from rlvr_jax.methods.self_play.rlad import discover_abstractions
from rlvr_jax.methods.self_play.ssp import pose_questions
from rlvr_jax.methods.self_play.stp import imitate_proofs, prove_hard_ones
from rlvr_jax.methods.self_play.svs import synthesize_problems
from rlvr_jax.methods.trees.bfs_prover_v2 import prove_statements
from rlvr_jax.methods.trees.cure import branch, critical_token
from rlvr_jax.methods.trees.deepsearch import search_tree
from rlvr_jax.methods.trees.rest_rl import start_from_prefixes
from rlvr_jax.methods.trees.rose import branch_at_best
from rlvr_jax.methods.trees.rstar_math import rejection_sampling, step_tree
from rlvr_jax.objectives import group_normalized
from rlvr_jax.rollout import annealed
from rlvr_jax.types import Criterion

EXPERTS = [with_note("1"), with_note("1 + 2"), with_note("3")]


TESTS_OF_GROUPS = {
    "all_correct": all_correct,
    "all_incorrect": all_incorrect,
    "solved_at_most": solved_at_most,
    "mean_at_most": mean_at_most,
    "none_above": none_above,
    "outside": outside,
    "uniform": uniform,
}


CRITERIA = [Criterion("right"), Criterion("ended")]


def some_for_each(outcomes, most):
    return np.arange(len(outcomes)) % (most - outcomes.shape[1])


OF_ITSELF = Judge(None, question("{response}"), number(0, 100), ["good"], tries=3)


OF_TWO = Judge(None, comparison(), two_numbers(0, 100), ["first", "second"])


def answer_alone(prompt, response):
    """Without the reasoning: the actor of numpy encodes three letters of a text."""
    return Spliced("", f"{prompt.answer} ", not response.truncated)


CASES = {
    "prioritized": lambda: experience(
        prioritized(undecided, explore=0.1, decay=0.7, resample_below=0.75),
        stages=[refill(outside(0, 1), rounds=2)],
    ),
    "some_verdicts": lambda: experience(some_verdicts(0.5)),
    "heat_solved": lambda: experience(
        [chosen_prompts([0, 1]), heat_solved(base=1.0, rise=0.1, highest=1.2)]
    ),
    "shrinking_pool": lambda: experience(shrinking_pool(after=[2, 3], fractions=[0.5, 0.2])),
    "adaptive_levels": lambda: experience(adaptive_levels(window=2, prompts=1, threshold=0.3)),
    "variance_promotion": lambda: experience(
        variance_promotion(0.5, 0.8, 0.2, refresh=2, rated=3, rating_samples=3)
    ),
    "chosen_prompts": lambda: experience(chosen_prompts([3, 1])),
    "rare_event_pair": lambda: experience(rare_event_pair(most=2, candidates=3)),
    "adaptive_refill": lambda: experience(stages=[adaptive_refill(uniform, rounds=3)]),
    "growing_horizon": lambda: experience(
        draw=plain(annealed(1.2, 0.1), growing_horizon(start=4.0, growth=1.0, most=6.0))
    ),
    "entropy_heated": lambda: experience(draw=entropy_heated(strength=0.05, pivot=0.8)),
    "from_drafts": lambda: experience(draw=from_drafts(lenience=0.5)),
    "from_drafts(exact)": lambda: experience(draw=from_drafts(lenience=0, exact_mb=2)),
    "branch_at_best": lambda: experience(draw=branch_at_best(fresh=0.3, top=3)),
    "prune": lambda: experience(draw=prune(least_area=0.0, control=3)),
    "search_tree": lambda: experience(draw=search_tree(node_tokens=3, width=3, most_expansions=12)),
    "step_tree": lambda: experience(
        draw=step_tree(separator="x", candidates=3, iterations=6, depth=4, step_tokens=4)
    ),
    "step_tree(guided)": lambda: experience(
        draw=step_tree(separator="x", candidates=3, iterations=6, depth=4, guide_rate=0.1)
    ),
    "step_tree(answered)": lambda: experience(
        draw=step_tree(
            separator="x", candidates=3, iterations=4, depth=3, environment=Counting(done_after=2)
        )
    ),
    "prove_statements": lambda: experience(
        draw=prove_statements(Ending(), tactics=3, expansions=6, low=0.0, high=1.0)
    ),
    "rejection_sampling": lambda: experience(stages=[rejection_sampling()]),
    "soft_prefixes": lambda: experience(draw=soft_prefixes(latent=3, prefix=2)),
    "soft_thinking": lambda: experience(draw=soft_thinking(end="")),
    "summaries": lambda: experience(draw=summaries(most=2, instruction="ab", context=4, summary=2)),
    "summarized_turns": lambda: experience(
        draw=summarized_turns(Counting(), most=2, instruction="a", context=3, summary=2)
    ),
    "summarized_turns(judged)": lambda: experience(
        draw=summarized_turns(
            Counting(judges=True), limit=2, reply_tokens=1, instruction="a", context=3, summary=2
        )
    ),
    "in_windows": lambda: experience(draw=in_windows(fraction=0.4)),
    "chunks": lambda: experience(draw=chunks(most=3, head=1, carry=4)),
    "turn_rows": lambda: experience(draw=turn_rows(Counting(), limit=3)),
    "redraw_trained": lambda: experience(
        stages=[redraw(mean_at_most(0.5), hint(0.5), trained=PLAIN)]
    ),
    "rate_first": lambda: experience(
        [shuffled_epochs(), rate_first(4, 2)], stages=[rehearse(0.25, 6, solved=False)]
    ),
    "refine": lambda: experience(stages=[refine(CRITERIA, by_rubric(CRITERIA))]),
    "prompts_of_largest_variance": lambda: experience(
        prompts_of_largest_variance(first_steps=2, number=2)
    ),
    "count_cooled": lambda: experience(
        stages=[count_cooled(1.2, 0.1, 1, growing_horizon(2.0, 1.0, 9.0))]
    ),
    "mark_code": lambda: experience(stages=[mark_code("word3")]),
    "count_broadened": lambda: experience(stages=[count_broadened(usual=2)]),
    "mask_void": lambda: experience(draw=turns(Counting()), stages=[mask_void()]),
    "pair_turns": lambda: experience(
        draw=turns(Counting()), stages=[pair_turns(hint(1.0), candidates=4, pairs=2)]
    ),
    "train_under": lambda: experience(stages=[train_under(hint(1.0))]),
    "second_prompt": lambda: experience(stages=[second_prompt(hide_words(0.5, "?"))]),
    "without_prompt": lambda: experience(stages=[without_prompt()]),
    "shape_of_parts": lambda: experience(
        stages=[
            shape(total({"outcome": signed_outcome, "noise": over_steps(random_reward(), float)}))
        ]
    ),
    "branch": lambda: experience(stages=[branch(critical_token(), samples=3)]),
    "branch_branches": lambda: experience(
        stages=[branch(critical_token(top_k=3), samples=1) for _ in range(2)]
    ),
    "critical_token": lambda: experience(
        stages=[branch(critical_token(2, barred_characters=0), samples=1)]
    ),
    "draw_more": lambda: experience(stages=[draw_more(some_for_each, most=2)]),
    "budget_for_hard": lambda: experience(
        stages=[draw_more(budget_for_hard(by_hardness=True), most=4), refill(uniform, rounds=1)]
    ),
    "draw_controllers": lambda: experience(stages=[draw_controllers(target=1.0, fraction=0.5)]),
    "recover": lambda: experience(stages=[recover(contexts=2, capacity=4)]),
    "retrospect": lambda: experience(stages=[retrospect(threshold=-1.0), shape(beyond_best())]),
    "place_ranked_traces": lambda: experience(stages=[place_ranked_traces(none_above(0.9))]),
    "begin_with_prefixes": lambda: experience(
        curriculum=begin_with_prefixes(
            0.2, 0.9, cuts=2, fraction=0.6, rated=6, rating_samples=2, most_solved=0.5
        ),
        stages=[refill(uniform, rounds=2)],
    ),
    "guide_first_rows": lambda: experience(stages=[guide_first_rows(rows=1, longest=6)]),
    "remember_hints": lambda: experience([shuffled_epochs(), remember_hints()]),
    "search_hint": lambda: experience(
        [shuffled_epochs(), remember_hints()], stages=[search_hint(rounds=2, target=0.5)]
    ),
    "salvage": lambda: experience(stages=[score_steps(), salvage(hint(1.0))]),
    "imitate_own_interventions": lambda: experience(
        stages=[imitate_own_interventions(continuations=2)]
    ),
    "imitate_scored_interventions": lambda: experience(
        stages=[score_steps(), imitate_scored_interventions(hint(1.0), continuations=2)]
    ),
    "bootstrap_replies": lambda: experience(stages=[bootstrap_replies(2.0)]),
    "reflect": lambda: experience(stages=[reflect()]),
    "sample_experts": lambda: experience([shuffled_epochs(), sample_experts(EXPERTS)]),
    "join_groups": lambda: experience(
        [shuffled_epochs(), sample_experts(EXPERTS)], stages=[join_groups()]
    ),
    "show_to_worst": lambda: experience(
        [shuffled_epochs(), sample_experts(EXPERTS)], stages=[join_groups(), show_to_worst(EXPERTS)]
    ),
    "imitate_hard": lambda: experience(
        stages=[imitate_hard(EXPERTS, incorrect_above=0.5, probability=0.8, capacity=3)]
    ),
    "unsolved_pool": lambda: experience(unsolved_pool(window=1, least_gain=1.0)),
    "show_as": lambda: experience([shuffled_epochs(), show_as(augmented(0.5))]),
    "redraw_plain": lambda: experience(stages=[redraw(all_incorrect, written_hint(), plain=1)]),
    "hint_failed_groups": lambda: experience(
        stages=[hint_failed_groups(window=1, least_gain=1.0, plain=1)]
    ),
    "imitate_solutions": lambda: experience(stages=[imitate_solutions()]),
    "begin_near_the_end": lambda: experience([shuffled_epochs(), begin_near_the_end()]),
    "begin_near_the_end(stages)": lambda: experience([shuffled_epochs(), begin_near_the_end(2)]),
    "chunks_by_difficulty": lambda: experience(chunks_by_difficulty(number=5, samples=2)),
    "climb_formats": lambda: experience([shuffled_epochs(), climb_formats(["choice"], 0.4)]),
    "mastery_pool": lambda: experience(mastery_pool(0.6, pending=0.5, discard=0.9, samples=3)),
    "one_level_at_a_time": lambda: experience(one_level_at_a_time(2)),
    "sample_greedily": lambda: experience(
        [shuffled_epochs(), sample_greedily()], stages=[screen()]
    ),
    "screen": lambda: experience([shuffled_epochs(), sample_greedily()], stages=[screen(rounds=3)]),
    "random_templates": lambda: experience([shuffled_epochs(), random_templates()]),
    "reward_template": lambda: experience(
        [shuffled_epochs(), random_templates()], stages=[reward_template()]
    ),
    "mix_views": lambda: experience(
        [shuffled_epochs(), mix_views([begin_with_flaw("slip"), hint(0.5)], [0.25, 0.5])]
    ),
    "start_from_prefixes": lambda: experience(
        start_from_prefixes(3, 4, 0.7, 0.05, accept=0.9, ratio=0.5, decay=0.9, capacity=9)
    ),
    "replace_failures": lambda: experience(stages=[replace_failures(hint(1.0), 3, 0.5)]),
    "relabel": lambda: experience(
        chosen_prompts([0, 1]), stages=[relabel(start=0, slope=-1.0, times_sampled=3)]
    ),
    "rewrite_prompts": lambda: experience(stages=[rewrite_prompts(0.3, 0.7)]),
    "synthesize_problems": lambda: experience(
        stages=[synthesize_problems(0.2, 0.8, 0.2, 0.8, sources=3)]
    ),
    "discover_abstractions": lambda: experience(stages=[discover_abstractions(2, unaided=2)]),
    "fuse_statements": lambda: experience(stages=[fuse_statements(0.5, most=0.6)]),
    "reward_two_tools": lambda: experience(stages=[reward_two_tools(0.1)]),
    "pose_questions": lambda: experience(
        stages=[
            pose_questions(
                reuse_below=0.8,
                capacity=5,
                clear_every=3,
                least_characters=8,
                most_characters=13,
                least_words=1,
            )
        ]
    ),
    "imitate_proofs": lambda: experience(
        prove_hard_ones(0.35, 0.05), stages=[imitate_proofs(0.5, 0.1, 0.8, 0.001, 0.01, cap=2.0)]
    ),
    "prove_hard_ones": lambda: experience(prove_hard_ones(0.35, 0.05)),
    "withdraw_skills": lambda: experience(
        [
            shuffled_epochs(),
            withdraw_skills({"general": "1", "even": "2 + 3"}, (2, 1), 2, rated=4, samples=2),
        ]
    ),
    "shift_to_weaknesses": lambda: experience(shift_to_weaknesses(1, threshold=0.6, fraction=0.5)),
    "propose_and_solve": lambda: experience(propose_and_solve(references=2, capacity=5)),
    "earn_learnability": lambda: experience(
        propose_and_solve(references=2, capacity=5), stages=[earn_learnability(samples=2)]
    ),
    "demonstrate": lambda: experience(stages=[demonstrate(solved_at_most(1))]),
    "select_consistent": lambda: experience(stages=[score_steps(), select_consistent()]),
    "select_cleanest": lambda: experience(stages=[select_cleanest()]),
    "embed": lambda: experience(stages=[embed(), shape(novelty_bonus(0.1))]),
    "likely_answers": lambda: experience(stages=[likely_answers(answer_alone, start=2)]),
    "tournament": lambda: experience(stages=[tournament(compare_by(), wins)]),
    "compare_by": lambda: experience(
        stages=[tournament(compare_by(1), wins, anchor, advantage=anchor_scores)]
    ),
    "judge_and_rewrite": lambda: experience(
        stages=[judge_and_rewrite(OF_ITSELF, ["9: Is it good?"], every=2, examples=2)]
    ),
    "compare_with": lambda: experience(
        stages=[
            tournament(compare_with(OF_TWO), wins),
            tournament(compare_with(OF_TWO, both_orders=False), wins),
        ]
    ),
    "kinds_in_order": lambda: experience(
        kinds_in_order(["odd", "even"]), stages=[refill(uniform, 2)]
    ),
    "reward_itself": lambda: experience(stages=[request_verdict(["a"]), reward_itself(0.1, -2.0)]),
    "reward_odds": lambda: experience(
        stages=[reward_odds("so?", ["1", "2"]), redraw(all_incorrect, hint(0.5)), shape(column(0))]
    ),
    "mark_triggers": lambda: experience(stages=[mark_triggers(["a", "b", "longer"])]),
    "find_formulas": lambda: experience(stages=[find_formulas(str.split, most=4)]),
    "rate_pairs": lambda: experience(stages=[rate_pairs(pairs=2)]),
    "train_varied_groups": lambda: experience(stages=[train_varied_groups(0.75)]),
    "replay_good": lambda: experience(
        stages=[replay_good(replay_rows=4, replay_age=2, replay_groups=6)]
    ),
    "probe_steps": lambda: experience(stages=[probe_steps(" ", "so")]),
    "restart_every": lambda: experience([shuffled_epochs(), restart_every(2)]),
    "set_solved_aside": lambda: experience([shuffled_epochs(), set_solved_aside(8, samples=2)]),
    "rehearse": lambda: experience(
        [shuffled_epochs(), set_solved_aside(8, samples=1)], stages=[rehearse(0.25, capacity=3)]
    ),
    "imitate_correct": lambda: experience(
        stages=[imitate_correct(capacity=8, round_steps=2, per_prompt=2)]
    ),
    "recompose": lambda: experience(stages=[recompose(group_normalized())]),
}
"""By factory; a word behind its name says which way it is used."""
