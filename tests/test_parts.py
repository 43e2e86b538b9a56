"""Parts are values: equal by maker and arguments, and one static argument."""

import dataclasses
import functools
import inspect
import re
import typing
from typing import Any

import golden_vectors as golden
import jax
import numpy as np
import optax
import pytest
from compiling import compilations
from tiny_batch import tiny

from rlvr_jax import methods
from rlvr_jax.experience import experience, refill, uniform
from rlvr_jax.experience.views import showing
from rlvr_jax.objectives import (
    Transform,
    clipped_objective,
    group_normalized,
    keep_top_entropy,
    objective,
    part,
    ppo_clip,
    token_mean,
)
from rlvr_jax.parallel import make_mesh
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.programs import jitted
from rlvr_jax.types import Recipe, replace
from rlvr_jax.types.hyperparameters import ClipLow
from rlvr_jax.types.passing import arguments_of


def made(name):
    """A recipe with its defaults; what has none is left out."""
    return methods.method(name).recipe()


@pytest.mark.thorough
@pytest.mark.parametrize("name", methods.names())
def test_a_recipe_is_equal_to_the_next_one_of_its_method(name):
    one, two = made(name), made(name)
    assert one == two and hash(one) == hash(two) and one is not two
    assert one.objective == two.objective and {one.objective, two.objective} == {one.objective}


def test_recipes_of_different_methods_differ():
    recipes = {made(name) for name in methods.names()}
    # Some methods differ from another in nothing that a recipe says.
    assert len(recipes) > 0.9 * len(methods.names())


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("grpo", {"clip_high": 0.28}),
        ("grpo", {"aggregation": token_mean()}),
        ("dapo", {"max_rounds": 3}),
        ("clip_cov", {"fraction": 0.01}),
        ("ghpo", {"fractions": (0.5,)}),
    ],
)
def test_another_hyperparameter_is_another_recipe(name, changed):
    assert methods.recipe(name, **changed) == methods.recipe(name, **changed)
    assert methods.recipe(name, **changed) != methods.recipe(name)


def test_a_recipe_that_was_changed_is_another():
    plain = methods.recipe("grpo")
    changed = replace(plain, experience=experience(stages=[refill(uniform, 2)]))
    again = replace(plain, experience=experience(stages=[refill(uniform, 2)]))
    assert changed == again != plain
    assert changed != replace(plain, experience=experience(stages=[refill(uniform, 3)]))


def test_equal_objectives_are_one_program():
    @functools.partial(jax.jit, static_argnums=0)
    def loss_of(recipe, x):
        del recipe
        return x + 1

    with compilations("loss_of") as compiled:
        for fraction in (0.2, 0.2, 0.3):
            loss_of(methods.recipe("forking_tokens", fraction=fraction), 1.0)
    assert len(compiled) == 2


def own(strength):
    """A recipe whose part is made outside of the library."""
    return Recipe(
        objective(
            advantage=group_normalized(),
            transforms=[scaled(strength)],
            surrogate=ppo_clip(low=0.2, high=0.2),
            aggregation=token_mean(),
        )
    )


def redefined():
    """A maker as a notebook cell defines it: each call of this function is a run of the cell."""

    @part(writes={"weight"})
    def scaled(strength: Any) -> Transform:
        def apply(signals, context, state):
            return replace(signals, weight=signals.weight * strength), state, {}

        return apply

    return scaled


scaled = redefined()


def test_a_part_is_its_maker_and_its_arguments():
    before = own(0.5)
    assert before == own(0.5) != own(0.25)
    assert own(1) != own(1.0) and own(np.ones(2)) == own(np.ones(2)) != own(np.zeros(2))
    assert own(float("nan")) == own(float("nan"))
    assert redefined()(0.5) != scaled(0.5) == scaled(0.5)


def test_a_part_prints_as_the_call_that_makes_it():
    assert keep_top_entropy(0.25).label == "keep_top_entropy(fraction=0.25)"
    assert refill(uniform, 2).label == "refill(when=uniform, rounds=2)"
    long = "a text that is longer than a label may show of a text"
    assert re.fullmatch(r"showing\(text=[0-9a-f]{16}\)", showing(long).label)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keep_top_entropy(2), "keep_top_entropy: fraction must be in (0, 1], got 2"),
        (lambda: keep_top_entropy("a"), "keep_top_entropy: fraction must be a number, got 'a'"),
        (lambda: keep_top_entropy(True), "keep_top_entropy: fraction must be a number, got True"),
        (lambda: refill(uniform, 1.5), "refill: rounds must be a whole number, got 1.5"),
        (lambda: refill(uniform, 0), "refill: rounds must be at least 1, got 0"),
        (
            lambda: refill(uniform, 2, stages=refill(uniform, 2)),
            "refill: stages must be a list or tuple, got refill(when=uniform, rounds=2)",
        ),
        (
            lambda: experience(stages=[refill]),
            "experience: each of stages must be of kind Stage, got refill; it has to be called:"
            " refill(…)",
        ),
        (
            lambda: experience(stages=[keep_top_entropy(1)]),
            "experience: each of stages must be of kind Stage, got keep_top_entropy(fraction=1)",
        ),
        (
            lambda: experience(draw=refill(uniform, 2)),
            "experience: draw must be of kind Draw, got refill(when=uniform, rounds=2)",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_its_range(make, message):
    with pytest.raises(ValueError, match=re.escape(message) + "$"):
        make()


def test_a_missing_argument_is_named():
    with pytest.raises(TypeError, match=r"keep_top_entropy: missing .*'fraction'; it takes \("):
        keep_top_entropy()


def test_a_part_that_changes_another_signal_than_it_declares_is_refused():
    @part(writes={"weight"})
    def quiet() -> Transform:
        return lambda signals, context, state: (replace(signals, mask=~signals.mask), state, {})

    batch, stats = golden.rollouts("b"), golden.stats("b")
    silent = objective(
        group_normalized(), [quiet()], surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean()
    )
    with pytest.raises(
        ValueError, match=r"quiet\(\): writes must name .* 'mask', got \['weight'\]"
    ):
        golden.step(silent, stats, batch)


@pytest.mark.thorough
def test_a_run_shares_programs_with_those_that_are_alike_if_all_their_parts_are_the_librarys():
    """A function of one's own may read a module, or an object, that changes in between."""
    optimizer = optax.sgd(1.0)
    model = replace(tiny()[0], mesh=make_mesh("data=1", jax.devices()[:1]))

    def update_of(recipe):
        return jitted(model, recipe.objective, optimizer, BatchPlan(2, 4), 0)[2]

    assert update_of(methods.recipe("dapo")) is update_of(methods.recipe("dapo"))
    assert update_of(methods.recipe("dapo")) is not update_of(methods.recipe("grpo"))
    assert own(0.5).objective == own(0.5).objective
    assert update_of(own(0.5)) is not update_of(own(0.5))


@pytest.mark.parametrize("name", methods.names())
def test_every_method_lasts(name):
    recipe = made(name)
    assert recipe.objective.lasting and (recipe.critic is None or recipe.critic.lasting)


class Called:
    def __call__(self, signals, context, state):
        return signals, state, {}


@dataclasses.dataclass(frozen=True)
class Halved(Called):
    strength: float = 0.5


def helper(rollouts):
    return rollouts.group


@pytest.mark.parametrize("apply", [Called(), Halved(), Called, helper, functools.partial(helper)])
def test_what_may_change_without_a_trace_does_not_last(apply):
    assert not Transform(apply).lasting and keep_top_entropy(0.2).lasting
    assert not scaled(0.5).lasting and not keep_top_entropy(0.2, scope=apply).lasting


def test_what_nothing_is_known_of_is_equal_to_itself_alone():
    one, two = object(), object()
    assert own(one) == own(one) != own(two)


def test_parts_are_equal_to_themselves_whatever_order_their_arguments_had():
    assert keep_top_entropy(fraction=0.2) == keep_top_entropy(0.2) != keep_top_entropy(0.3)
    assert ppo_clip(low=0.2, high=0.3) == ppo_clip(high=0.3, low=0.2)
    assert len({token_mean(), token_mean()}) == 1


@arguments_of(keep_top_entropy, fraction=0.5)
def selecting(low: ClipLow = 0.2, **selection: Any) -> Recipe:
    """Selects tokens.

    Args:
      low: of the clip.
    """
    return Recipe(clipped_objective(low, transforms=[keep_top_entropy(**selection)]))


@arguments_of(selecting)
def repeated(times: int = 1, **selected: Any) -> Recipe:
    return selecting(**selected)


def test_a_recipe_takes_the_arguments_of_a_part():
    wanted = ", ".join(f"{name}={default}" for name, default in defaults_of(selecting).items())
    assert wanted.startswith("low=0.2, fraction=0.5")
    assert list(defaults_of(repeated)) == [*defaults_of(selecting), "times"]
    entries = re.findall(r"^  (\w+):", selecting.__doc__, re.MULTILINE)
    assert entries[0] in defaults_of(keep_top_entropy) and entries[-1] == "low"
    assert typing.get_type_hints(selecting)["fraction"] is float
    assert selecting() == selecting(0.2, 0.5) == repeated() != selecting(0.2, 0.4)
    with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\], got 2"):
        selecting(fraction=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'share'"):
        selecting(share=0.5)


def defaults_of(function):
    return {each.name: each.default for each in inspect.signature(function).parameters.values()}
