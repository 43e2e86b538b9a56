"""Loads a policy folder with the prompts of a task in its tokens, and teachers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import optax
from jax.sharding import Mesh

from rlvr_jax import policy
from rlvr_jax.arguments import as_typed
from rlvr_jax.experience import View
from rlvr_jax.experience.prompts import (
    PromptTable,
    check_embedded,
    check_readable,
    encode_prompts,
    shared_opening,
    stop_tokens,
    with_messages,
)
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.experience.views import check_openings
from rlvr_jax.objectives import Critic
from rlvr_jax.parallel import parameter_shardings
from rlvr_jax.policy import Model, Params
from rlvr_jax.rollout import Sampling
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.task import load_tokenizer
from rlvr_jax.tasks import Task
from rlvr_jax.training.layout import make_meshes
from rlvr_jax.training.memory import check_memory, least_bytes
from rlvr_jax.types import Recipe, replace


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy folder with a task's prompts in its tokens, ready to sample.

    `model` has the training mesh, on which `params` are. The model of the sampler has the sampling
    mesh. `tables` are the train prompts by the label of their view.
    """

    path: str
    model: Model
    params: Params | None
    tokenizer: Any
    tables: Mapping[str, PromptTable]
    test_table: PromptTable
    sampler: Sampler

    @property
    def train_table(self) -> PromptTable:
        """The train prompts as they are."""
        return self.tables["plain"]


def load_policy(
    config: TrainConfig,
    task: Task,
    path: str,
    *,
    sampling: Sampling | None = None,
    optimizer: optax.GradientTransformation | None = None,
    frozen: bool = False,
    critic: tuple[Critic, optax.GradientTransformation] | None = None,
    views: Sequence[View] = (),
    samples: int = 0,
) -> LoadedPolicy:
    """Loads the weights, tokenizes the prompts and makes the sampler. Nothing is compiled.

    A response ends with the tokenizer's end of sequence, one of the model's `stop_tokens`, or one
    of the settings'.

    Args:
      config: its response_tokens is the budget of a response, not 0 (`with_task`).
      task: its train prompts are tokenized.
      path: policy folder or .gguf file.
      sampling: settings of the sampler; as in `config` if None.
      optimizer, frozen, critic: needs of memory besides the weights; see
        `least_bytes`.
      views: in which the train prompts are shown, besides as they are.
      samples: responses per prompt that are sampled at first; 0: as many as are trained.
    Raises:
      ValueError: a model that cannot be loaded or does not fit into memory; a prompt over the
        budget or with a token without embedding; a view that fills the response budget; sequences
        longer than the positions of the model.
    """
    with as_typed("--mesh", "mesh"):
        mesh, sample_mesh = make_meshes(config.devices.mesh, config.devices.sample_mesh)
    samples = samples or config.sampling.samples_per_prompt
    sampling_batch, at_once, options = (
        config.sampling_batch(samples),
        config.slots(),
        config.policy.options(),
    )
    sampling = sampling or config.sampler()
    # Prompts first: errors in them or the tokenizer are raised before weights are read.
    tokenizer = load_tokenizer(config.data, path)
    tables = {"plain": encode_prompts(tokenizer, task.train, config.data.prompt_tokens, "train")}
    check_readable(tables["plain"], with_messages(task.train), "train")
    budget = config.sampling.response_tokens
    for view in views:
        remedy = _remedy(view, task, path)
        try:
            seen = [view.show(prompt, task) for prompt in task.train]
        except ValueError as error:
            raise ValueError(f"{view.label}: {error}. {remedy}") from error
        shown, where = [one.text for one in seen], f"train, view {view.label}"
        check_openings(tokenizer, seen, budget, where)
        if shown == [prompt.text for prompt in task.train]:
            tables[view.label] = tables["plain"]
            continue
        table = encode_prompts(tokenizer, task.train, config.data.prompt_tokens, where, shown)
        check_readable(table, shown, where, remedy)
        tables[view.label] = table
    test_table = encode_prompts(tokenizer, task.test, config.data.prompt_tokens, "test")
    check_readable(test_table, with_messages(task.test), "test")
    every = [*tables.values(), test_table]
    width = max(table.tokens.shape[1] for table in every)

    def shardings(shape):
        # Called as soon as the shape is known, before weights are read.
        if config.update.router_replay and not shape.num_experts:
            raise ValueError(
                "--router-replay must be left out for a dense model, whose layers have no router,"
                f" got {path}"
            )
        for table in every:
            check_embedded(table, shape.vocab_size)
        if width + budget > shape.max_positions:
            room = shape.max_positions - width
            raise ValueError(
                f"--response-tokens must be at most {room} for this model (max_positions"
                f" {shape.max_positions}, prompts of {width}), got {budget}"
                if room > 0
                else f"prompts must be shorter than the {shape.max_positions} positions of this"
                f" model, got one of {width} tokens; --drop-long-prompts leaves it out"
            )
        for view in views:
            shown, parts = int(tables[view.label].length.max()), view.responses + 1
            if shown + parts * budget > shape.max_positions:
                most = (shape.max_positions - shown) // parts
                raise ValueError(
                    f"--response-tokens must be at most {most} for this method, which shows"
                    f" {view.responses} responses after prompts of {shown} tokens"
                    f" ({view.label}) in {shape.max_positions} positions, got {budget}"
                )
        parameter_shardings(shape, sample_mesh)
        shaped = Model(replace(shape, **options), mesh=mesh)
        least = least_bytes(shaped, optimizer, frozen, critic)
        check_memory(path, least, mesh.local_devices)
        return parameter_shardings(shape, mesh)

    with as_typed("--model", "load: path"):
        model, params = policy.load(path, shardings)
    model = replace(model, config=replace(model.config, **options), mesh=mesh)
    sampler = Sampler(
        replace(model, mesh=sample_mesh),
        tokenizer,
        task,
        config.sampling.prompts_per_step,
        samples,
        sampling_batch,
        budget,
        sampling,
        stop_tokens=stop_tokens(tokenizer, model.stop_tokens, config.sampling.stop),
        opening=shared_opening(every),
        at_once=at_once,
    )
    return LoadedPolicy(
        path,
        model,
        params,
        tokenizer,
        {label: table.widened(width) for label, table in tables.items()},
        test_table.widened(width),
        sampler,
    )


def _remedy(view: View, task: Task, path: str) -> str:
    """Returns the remedy if a policy cannot read a view of the method."""
    form = "" if task.show_answer is not None else "--task hinted_brackets, or "
    return (
        f"The method shows prompts in this view, which the policy {path} cannot read. Use {form}a"
        " policy that reads words, such as --task arithmetic --model smollm2"
    )


@dataclass
class StartWeights:
    """The weights of a policy without weights in memory. The first caller receives the loaded ones
    and may overwrite them; later callers receive newly read ones."""

    path: str
    mesh: Mesh
    loaded: Params | None

    def take(self) -> Params:
        """Returns weights that the caller may overwrite."""
        params, self.loaded = self.loaded, None
        if params is None:
            params = policy.load(self.path, partial(parameter_shardings, mesh=self.mesh))[1]
        return params


def other_teacher(recipe: Recipe, start: LoadedPolicy) -> Params | None:
    """Returns the weights of a teacher that is another folder.

    Raises:
      ValueError: the teacher has another shape, other tokens, or other constants of its layers,
        such as the base of rotary frequencies.
    """
    teacher = recipe.teacher
    if teacher is None or teacher == "start" or recipe.teacher_decay is not None:
        return None
    with as_typed("--hyperparameters: teacher", "load: path"):
        model, params = policy.load(teacher, partial(parameter_shardings, mesh=start.model.mesh))
    own = start.model.config
    # Its weights run in the compiled function of the policy, which has the policy's constants.
    for name in (field.name for field in fields(own) if field.name not in policy.SET_BY_RUNS):
        if getattr(model.config, name) != getattr(own, name):
            raise ValueError(
                f"--hyperparameters: teacher {teacher} must have the policy's {name}"
                f" {getattr(own, name)}, got {getattr(model.config, name)}"
            )
    if policy.tokenizer(teacher).get_vocab() != start.tokenizer.get_vocab():
        raise ValueError(
            f"--hyperparameters: teacher {teacher} must have the policy's tokens, got others"
        )
    return params
