"""Trees of rollouts: each common prefix once, with the numbers of rows by themselves."""

import itertools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny_batch
from everyday import everyday
from numpy.testing import assert_allclose

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import Spec
from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import Model, attention, lora, named_config, score
from rlvr_jax.policy.config import LoraConfig
from rlvr_jax.policy.trees import SIZES, block_size, prefix_tree
from rlvr_jax.training.micro_batches import row_parts
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.prefixes import WORTH, Prefixes
from rlvr_jax.training.update import objective_gradient
from rlvr_jax.types import Rollouts

ROWS, GROUP, WIDTH, BUDGET, VOCABULARY = 32, 8, 7, 20, 16

# float64 on both sides, some thousand roundings of 1e-16 on numbers of order one
EXACT = dict(rtol=1e-9, atol=1e-11)
NEEDS = ("logp", "entropy", "max_logp", "hidden", "tempered_logp")


def rollouts(seed=0, copied=0.7, replies=True):
    """Groups in which rows begin with tokens of earlier ones; copies, prefixes and empty rows."""
    random = np.random.default_rng(seed)
    prompts = random.integers(0, VOCABULARY, (ROWS, WIDTH))
    tokens = random.integers(0, VOCABULARY, (ROWS, BUDGET))
    start, length = np.zeros(ROWS, int), random.integers(1, BUDGET + 1, ROWS)
    parent = np.full(ROWS, -1)
    for first in range(0, ROWS, GROUP):
        start[first : first + GROUP] = random.integers(1, WIDTH + 1)
        for row in range(first + 1, first + GROUP):
            prompts[row, : start[row]] = prompts[first, : start[row]]
            if random.random() < copied:
                parent[row] = random.integers(first, row)
                cut = random.integers(0, length[parent[row]] + 1)
                tokens[row, :cut] = tokens[parent[row], :cut]
                length[row] = max(length[row], cut)
        if copied:
            tokens[first + 5 : first + 7] = tokens[first + 4]
            length[first + 5] = length[first + 4]
            length[first + 6] = (length[first + 4] + 1) // 2
            length[first + 7] = 0
    mask = np.arange(BUDGET) < length[:, None]
    mask[:, 3:6] &= not replies
    rows = Rollouts.of_responses(
        tokens,
        mask,
        random.integers(0, 2, ROWS).astype(float),
        np.arange(ROWS) // GROUP,
        prompt_tokens=prompts.astype(np.int32),
        prompt_length=start.astype(np.int32),
        length=length.astype(np.int32),
        parent=parent.astype(np.int32),
        temperature=random.choice([0.5, 1.0], (ROWS, BUDGET)),
    )
    return jax.tree.map(np.asarray, rows)


def policy(**changes):
    """A model, and weights with which its distributions are far from uniform."""
    shape = dict(num_layers=2, compute_dtype="float64") | changes
    model = Model(named_config("tiny", VOCABULARY, **shape))
    return model, tiny_batch.weights(model, "float64", seed=0)


def lines(rows):
    """The tokens of each row that predict a token on the mask or before one."""
    found = []
    for row in range(ROWS):
        there = np.flatnonzero(rows.mask[row])
        prompt = rows.prompt_tokens[row, : rows.prompt_length[row]]
        whole = np.concatenate([prompt, rows.tokens[row]])
        found.append(tuple(whole[: len(prompt) + there[-1]]) if len(there) else ())
    return found


@pytest.mark.parametrize(("parts", "block"), [(1, 4), (4, 2), (2, 64)])
def test_a_block_is_a_node_of_the_trie(parts, block):
    rows = rollouts()
    tree, own = prefix_tree(rows, parts, block), ROWS // parts
    every = lines(rows)
    for part in range(parts):
        here = every[part * own : (part + 1) * own]
        cut = {x[: first + block] for x in here for first in range(0, len(x), block)}
        # A row that ends within the block of another has no node there.
        nodes = {
            x
            for x in cut
            if not any(
                x != y and x == y[: len(x)] and -(-len(x) // block) == -(-len(y) // block)
                for y in cut
            )
        }
        used = {tuple(path[path >= 0]) for path in tree.path[part] if (path >= 0).any()}
        assert len({path[: n + 1] for path in used for n in range(len(path))}) == len(nodes)
        read = {
            tuple(np.concatenate([tree.tokens[part, index] for index in path])) for path in used
        }
        assert all(any(x == y[: len(x)] for y in read) for x in here)


def test_there_are_few_sizes():
    sizes = {prefix_tree(rollouts(seed), 1, 2).tokens.shape for seed in range(30)}
    assert 1 < len(sizes) <= 5
    assert min(b / a for a, b in itertools.pairwise(SIZES)) > 1.18


@pytest.mark.parametrize(
    ("prompt", "response", "block"),
    [(1, 1, 8), (32, 64, 8), (32, 200, 16), (2000, 100, 32), (100, 9000, 128)],
)
def test_blocks_are_short_beside_a_response_and_few_in_a_row(prompt, response, block):
    assert block_size(prompt, response) == block


@partial(jax.jit, static_argnums=0)
def scored(model, params, rows, tree):
    options = [("temperatures", (0.7, 1.3))]
    return score(model, params, rows, NEEDS, options, tree=tree).arrays


@pytest.mark.parametrize(("parts", "block"), everyday([(1, 4), (4, 2), (2, 64)], (1, 4)))
def test_statistics_are_those_of_rows_by_themselves(parts, block):
    model, params = policy()
    rows = rollouts()
    tree = prefix_tree(rows, parts, block)
    assert tree.tokens.size < ROWS * (WIDTH + BUDGET)
    found, wanted = (scored(model, params, rows, each) for each in (tree, None))
    for name in NEEDS:
        assert_allclose(found[name], wanted[name], err_msg=name, **EXACT)


def test_long_rows_are_attended_to_in_steps(monkeypatch):
    """Few keys at a time: with shorter limits the loop runs for short rows."""
    model, params = policy(num_layers=1)
    rows = rollouts()
    tree = prefix_tree(rows, 1, 2)
    whole = score(model, params, rows, NEEDS[:2], tree=tree)
    monkeypatch.setattr(attention, "QUERIES", 4)
    stepped = jax.make_jaxpr(lambda: score(model, params, rows, NEEDS[:2], tree=tree))()
    assert "scan" in str(stepped)
    found = score(model, params, rows, NEEDS[:2], tree=tree)
    assert_allclose(found.logp, whole.logp, **EXACT)


SHAPES = {
    "plain": {},
    "a loop over layers": dict(num_layers=6),
    "a sliding window": dict(sliding_window=3, sliding_layers=(0,), local_rope_theta=1e4),
    "experts": dict(num_experts=4, experts_per_token=2, normalized_experts=True, mlp_width=16),
    "recomputed layers": dict(remat="layers"),
}


def gradients(rows, tree, *, micro_batches=1, mesh=None, adapted=False, method="dapo", **shape):
    """Loss, gradient and statistics of an update."""
    model, params = policy(**shape)
    model = replace(model, mesh=mesh and make_mesh(mesh))
    base = None
    if adapted:
        model = replace(
            model, config=replace(model.config, lora=LoraConfig(2, 4.0, ("query", "value")))
        )
        shapes = jax.eval_shape(partial(lora.init, model), jax.random.key(0))
        random = np.random.default_rng(3)
        adapter = jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.3, x.shape)), shapes)
        base, params = params, adapter
    objective = recipe(method).objective
    state = objective.init(Spec(ROWS // GROUP, ROWS, BUDGET))
    how = dict(micro_batches=micro_batches, base=base)
    run = jax.jit(
        lambda params, rows, tree: objective_gradient(
            model, objective, params, rows, state, jax.random.key(0), tree=tree, **how
        )
    )
    lowered = run.lower(params, rows, tree).compile()
    return run(params, rows, tree), lowered


def assert_same(found, wanted):
    assert_allclose(found.loss, wanted.loss, **EXACT)
    for name in ("logp", "entropy"):
        assert_allclose(found.stats.get(name), wanted.stats.get(name), **EXACT)
    largest = max(np.abs(x).max() for x in jax.tree.leaves(wanted.grads))
    assert largest > 0
    for a, b in zip(*map(jax.tree.leaves, (found.grads, wanted.grads)), strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-10 * largest)


@pytest.mark.parametrize(
    ("name", "adapted", "micro_batches", "mesh"),
    [
        ("plain", False, 2, None),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in [
                ("plain", False, 4, "data=8"),
                ("plain", True, 2, "data=2,fsdp=2,tensor=2"),
                ("a loop over layers", True, 1, None),
                ("a sliding window", False, 1, None),
                ("experts", False, 4, None),
                ("experts", True, 2, "data=2,fsdp=2,tensor=2"),
                ("recomputed layers", False, 1, "fsdp=4,tensor=2"),
            ]
        ),
    ],
)
def test_gradients_are_those_of_rows_by_themselves(name, adapted, micro_batches, mesh):
    """With less work; a batch of rows alone is what the same program does without the trees."""
    rows, shape = rollouts(), SHAPES[name]
    if mesh and "tensor" in mesh:
        shape = shape | dict(num_heads=4, num_kv_heads=2)
    parts = micro_batches * row_parts(mesh and make_mesh(mesh))
    tree = prefix_tree(rows, parts, 2)
    how = dict(micro_batches=micro_batches, adapted=adapted, **shape)
    found, less = gradients(rows, tree, mesh=mesh, **how)
    wanted, more = gradients(rows, None, mesh=mesh, **how)
    assert_same(found, wanted)
    if name != "a loop over layers":  # counted once
        assert less.cost_analysis()["flops"] < more.cost_analysis()["flops"]
    if mesh:
        # No state of a row leaves its device for the trees.
        assert less.as_text().count(" all-gather(") <= more.as_text().count(" all-gather(")


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "seed"), [("clip_cov", 0), ("forking_tokens", 1), ("arpo", 2)])
def test_every_split_of_random_trees_has_the_gradient_of_the_rows(method, seed):
    """Methods with statistics of the whole batch, and without."""
    rows = rollouts(seed)
    wanted, _ = gradients(rows, None, method=method)
    for micro_batches in (1, 4):
        tree = prefix_tree(rows, micro_batches, 4)
        found, _ = gradients(rows, tree, micro_batches=micro_batches, method=method)
        assert_same(found, wanted)


PLAN = BatchPlan(ROWS // GROUP, GROUP, micro_batches=2)


def choice(when, rows=None):
    return Prefixes(policy()[0], replace(PLAN, prefix_trees=when)).of(rows or rollouts())


def test_forked_rows_are_trees_where_that_reads_less():
    found = choice("auto")
    assert found.tree is not None and found.fraction <= WORTH
    assert found.tree.tokens.shape[0] == PLAN.micro_batches
    assert choice("never") == (None, None)
    # Long replies are not scored, so few tokens are saved where rows are full and differ.
    full = rollouts(copied=0, replies=False)
    full = full.replace(length=np.full(ROWS, BUDGET, np.int32), mask=np.ones((ROWS, BUDGET), bool))
    assert choice("auto", full) == (None, None)
    forked = full.replace(parent=np.zeros(ROWS, np.int32))
    assert choice("auto", forked) == (None, 1.0)
    assert choice("always", full).tree is not None


def test_rows_that_nothing_forked_are_left_alone_unless_that_is_asked():
    """Equal responses of a certain policy are no trees: the bits of its runs do not change."""
    rows = rollouts().replace(parent=np.full(ROWS, -1, np.int32))
    assert choice("auto", rows) == (None, None)
    assert choice("always", rows).fraction <= WORTH
    given = np.zeros((ROWS, BUDGET), np.int32)
    given[:, :2] = 3
    assert choice("auto", rows.replace(origin=given)).tree is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dict(second_tokens=np.zeros((ROWS, 1), np.int32)), "second prompts"),
        (dict(soft_prompt=np.zeros((ROWS, 1, 8))), "vectors in prompts"),
    ],
)
def test_rows_with_other_inputs_than_tokens_are_computed_one_by_one(change, reason):
    rows = rollouts()
    rows = rows.replace(**change)
    with pytest.warns(UserWarning, match=f"prefixes: rows are computed one by one: {reason}"):
        assert choice("always", rows) == (None, None)
