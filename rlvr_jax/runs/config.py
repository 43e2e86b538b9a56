"""Everything that a run depends on: nested frozen dataclasses, whose fields are the flags.

    config = TrainConfig.of(method="clip_cov", steps=9, learning_rate=3e-4)
    config.optimizer.learning_rate, config.replace(steps=3).steps

Names of settings are unique: flags, `config.json`, `of` and `replace` need no group.
"""

import dataclasses
import difflib
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from rlvr_jax.parallel import mesh_sizes, row_shards
from rlvr_jax.policy import ADAPTABLE, LoraConfig
from rlvr_jax.rollout import Sampling, sampling_batches
from rlvr_jax.rollout.processors import LEAST_TEMPERATURE
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.types.hyperparameters import Bound, Count, NonNegative, NonNegativeInt, Range, Share

_BelowOne = Annotated[float, Range(0, 1, open_high=True)]


@dataclass(frozen=True)
class PolicySettings:
    """The policy: its folder, its adapters, and how its layers compute."""

    model: str = ""
    """Policy folder in Hugging Face's layout, or a .gguf file; empty: the task's own base model."""
    lora_rank: NonNegativeInt = 0
    """Rank of low-rank adapters; only these are trained. 0: all weights are trained."""
    lora_alpha: float = 32.0
    """Alpha of adapters: an adapter's product is scaled by alpha / rank."""
    lora_targets: tuple[str, ...] = ADAPTABLE
    """Matrices of a layer that get an adapter."""
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of activations and matrix products: float32 or bfloat16; weights stay float32."""
    remat: Literal["none", "layers", "attention"] = "none"
    """Values that the backward pass recomputes to save memory: none; layers, all within a layer;
    attention, all but the matrix products with weights."""

    def options(self) -> dict[str, Any]:
        """Fields of a model's shape that a run sets."""
        adapters = self.lora_rank, self.lora_alpha, self.lora_targets
        lora = LoraConfig(*adapters) if self.lora_rank else None
        return dict(compute_dtype=self.compute_dtype, remat=self.remat, lora=lora)


@dataclass(frozen=True)
class DataSettings:
    """Prompts, and how they are shown and graded."""

    task: str = "brackets"
    """Built-in name (with options after a colon), reasoning_gym:<data set>, jsonl:<files> (json:,
    csv:, parquet:, arrow:), tfds:<name>, or module:name."""
    task_options: tuple[str, ...] = ()
    """Options of a task that is not built in, and of its verifier, as name=value (held_out=0.2)."""
    columns: tuple[str, ...] = ()
    """Columns of files that no known schema names: prompt=question,answer=solution."""
    prompt_tokens: NonNegativeInt = 0
    """Budget of a prompt in tokens; 0: the length of the task's longest prompt."""
    drop_long_prompts: bool = False
    """Leave out and count prompts over prompt_tokens; off: such prompts are an error."""
    chat_template: bool = True
    """Format prompts with the tokenizer's chat template, if it has one; --no-chat-template: prompts
    do not change, for example if they are templated already."""
    chat_template_kwargs: tuple[str, ...] = ()
    """Arguments of the chat template, as name=value: enable_thinking=false."""
    system_prompt: str = ""
    """System message before every prompt; empty: only the task's own system message."""
    few_shot: str = ""
    """JSON file of messages, each with role and content, before every prompt and after the system
    message; empty: none."""
    failed_grades: Literal["raise", "no_verdict"] = "raise"
    """Effect of a verifier or a reward that raises: raise, the run ends and names prompt and
    response; no_verdict, the response is counted, ungraded, and outside of loss and group."""
    unsafe_local: bool = False
    """Run generated code also on a machine without a sandbox (`python -m rlvr_jax.sandbox` lists
    the available ones); off: such responses are ungraded."""

    def template_arguments(self) -> dict[str, Any]:
        """Arguments of the chat template; true, false and numbers as such."""
        found = {}
        for pair in self.chat_template_kwargs:
            name, equals, text = pair.partition("=")
            if not (name.isidentifier() and equals):
                raise ValueError(f"--chat-template-kwargs must be name=value, got {pair!r}")
            try:
                found[name] = json.loads(text)
            except ValueError:
                found[name] = text
        return found


@dataclass(frozen=True)
class JudgeSettings:
    """A model that grades in addition to the verifier."""

    judge: str = ""
    """Model that grades in addition to the verifier: policy, the policy itself; folder:<policy
    folder>; server:<model>, at the address OPENAI_BASE_URL with the key OPENAI_API_KEY of the
    environment; or module:function, from messages to text. Its grades, in [0, 1], are the first
    rewards of the task, for methods that weigh rewards. Empty: no judge."""
    judge_rubric: str = ""
    """JSON file of the judge's criteria: objects with a name and optional text, maximum, weight and
    kind. Weights, vetoes and factual criteria that the file sets must equal those of the method.
    Empty: one number for the whole response."""
    judge_prompt: str = ""
    """Text file of the judge's prompt, with {prompt}, {response} and optional {reference}; or
    pairs: two answers, which methods with a tournament compare, as a file with {other} does;
    constraints: whether the response meets all soft constraints of the prompt (meta["soft"]), 1 or
    0; or, for the judge policy, again: whether it repeats an answer that its prompt shows, 1 or 0.
    Empty: a request for a number from 0 to 10."""
    judge_options: tuple[str, ...] = ()
    """Options of the judge as name=value: temperature (0), tries (1), tokens (512; response_tokens
    for policy) and seconds (60) of a reply, at_once (32), retries (4), highest (10) number without
    a rubric, visible (false): the judge sees only the text after <response>."""
    judge_budget: tuple[str, ...] = ()
    """Most calls and tokens of the run, as calls=1000 tokens=1000000; further responses are
    ungraded."""


@dataclass(frozen=True)
class SamplingSettings:
    """How the responses of a step are sampled."""

    prompts_per_step: Count = 16
    """Prompts of a rollout batch."""
    samples_per_prompt: Count = 8
    """Rollouts per prompt: the size of a group."""
    response_tokens: NonNegativeInt = 0
    """Budget of a response in tokens; 0: the task's budget."""
    stop: tuple[str, ...] = ()
    """Texts, each one token of the tokenizer, that end a response like the end of sequence."""
    temperature: Annotated[float, Range(LEAST_TEMPERATURE, fix="--top-k 1 is greedy")] = 1.0
    """Temperature of the sampler and the scorer."""
    top_k: NonNegativeInt = 0
    """Number of most probable tokens that the sampler chooses from; 1: greedy; 0: all."""
    top_p: Share = 1.0
    """Probability mass of the most probable tokens that the sampler chooses from; 1: all."""
    min_p: _BelowOne = 0.0
    """Least probability of a token, as a fraction of the most probable token's; 0: all."""
    mask_truncated: bool = True
    """Mask truncated responses in the loss; their rewards stay in their groups."""
    dynamic_sampling: NonNegativeInt = 0
    """Most batches that are sampled to fill a step with groups of mixed outcomes; 0: the method's
    number, or one."""
    sampling_batches: NonNegativeInt = 0
    """Sampling batches per rollout batch, split by prompts, then by the samples of each; more save
    memory and do not change the rollouts. 0: one."""
    rows_at_once: NonNegativeInt = 0
    """Rows that a call of the sampler computes at the same time (continuous batching): the next row
    takes the slot of a finished one. The rollouts do not change. 0: all."""


@dataclass(frozen=True)
class UpdateSettings:
    """How a rollout batch is split into optimizer updates."""

    minibatches: Count = 1
    """Optimizer updates per pass over a rollout batch."""
    epochs: Count = 1
    """Passes over a rollout batch."""
    micro_batches: NonNegativeInt = 0
    """Micro-batches per update; more save memory. 0: one, or on a CPU as many as fit the
    activations into its caches."""
    critic_epochs: Count = 1
    """Passes of the critic over a rollout batch, in the same minibatches."""


@dataclass(frozen=True)
class OptimizerSettings:
    """Adam with decoupled weight decay, for policy and critic."""

    learning_rate: float | None = None
    """Adam learning rate (constant after warm-up); None: 1e-6, or 2e-5 for adapters."""
    warmup_updates: NonNegativeInt = 10
    """Updates in which the learning rate rises linearly from 0."""
    adam_b1: _BelowOne = 0.9
    """Decay of Adam's first moment."""
    adam_b2: _BelowOne = 0.95
    """Decay of Adam's second moment."""
    weight_decay: NonNegative = 0.0
    """Decoupled weight decay, times the learning rate."""
    max_gradient_norm: Bound = 1.0
    """Norm to which longer gradients are scaled down; the logged norm is the one before."""
    critic_learning_rate: NonNegative = 0.0
    """Adam learning rate of the critic, if the method has one; 0: five times learning_rate."""


@dataclass(frozen=True)
class DeviceSettings:
    """Devices to train and to sample on."""

    mesh: str = ""
    """Devices as axis=size of data, fsdp and tensor, like data=2,fsdp=4; empty: one device, and on
    a CPU one per core to sample from a small model and for large evaluations."""
    sample_mesh: str = ""
    """Mesh of the sampler on the same devices; empty: mesh."""
    compile_cache: bool = True
    """Store compiled functions in the user's cache directory, and load them from there."""


@dataclass(frozen=True)
class EvaluationSettings:
    """Held-out evaluations, and the stored samples."""

    evaluate_every: NonNegativeInt = 0
    """Steps between evaluations; 0: a tenth of the run."""
    evaluation_prompts: Count = 256
    """Held-out prompts of an evaluation; all evaluations of a run have the same prompts."""
    evaluation_samples: Count = 64
    """Rollouts per held-out prompt, up to whole groups of samples_per_prompt; pass@k is estimated
    for k up to half of them."""
    samples_stored: NonNegativeInt = 8
    """Rollouts per step that are written to samples/."""


@dataclass(frozen=True)
class TrainConfig:
    """One run: a method, a task, a policy, and how much of everything.

    A step samples prompts_per_step × samples_per_prompt rollouts. Each of the `epochs` splits them
    by whole groups into `minibatches` optimizer updates. Micro-batches only save memory: the
    gradient does not depend on them.
    """

    method: str = "grpo"
    """Name of a published method (`python -m rlvr_jax.methods` lists them)."""
    hyperparameters: tuple[str, ...] = ()
    """Hyperparameters of the method, as name=value."""
    preset: Annotated[str, tyro.conf.Fixed] = ""
    """Preset of task and method that the settings start from; --no-preset: none, but the defaults
    of all settings and the published hyperparameters."""
    experience: str = ""
    """Name of a method whose experience (curriculum, sampler, stages) replaces that of `method`;
    empty: no replacement."""
    stage: tuple[str, ...] = ()
    """Custom stages that act last, each as module:function or module:function:name=value,…."""
    run_dir: Path = Path("runs/run")
    """Directory of the run; refused if it exists, unless resuming."""
    steps: Count = 300
    """Rollout batches."""
    sampled_tokens: NonNegativeInt = 0
    """Budget of generated tokens: the run ends, with an evaluation, at the first step that reaches
    it, or at its last step; 0: no budget."""
    seed: NonNegativeInt = 0
    """Seed of everything random: prompts, rollouts, minibatches, the method's choices."""
    resume: bool = False
    """Continue the run in run_dir from its last checkpoint."""
    checkpoint_every: NonNegativeInt = 0
    """Steps between checkpoints; 0: every five minutes. One is always written at the end."""
    log_to: tuple[str, ...] = ()
    """Further receivers of the metrics in metrics.jsonl: wandb, trackio, or a custom
    module:function, called with (metrics, step)."""
    verbose: bool = False
    """Print every setting and the whole self-check before the first step (config.json has the
    settings in any case), and the traceback of an error that ends the run."""

    policy: PolicySettings = PolicySettings()
    data: DataSettings = DataSettings()
    judging: JudgeSettings = JudgeSettings()
    sampling: SamplingSettings = SamplingSettings()
    update: UpdateSettings = UpdateSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    devices: DeviceSettings = DeviceSettings()
    evaluation: EvaluationSettings = EvaluationSettings()

    @classmethod
    def of(cls, **settings: Any) -> "TrainConfig":
        """The default settings, but for these ones."""
        return cls().replace(**settings)

    def replace(self, **settings: Any) -> "TrainConfig":
        """The settings with others in the place of some, by their names.

        Raises:
          ValueError: an unknown name (closest names).
        """
        own: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            group = setting_of(name).group
            (groups.setdefault(group, {}) if group else own)[name] = value
        for group, values in groups.items():
            own[group] = dataclasses.replace(getattr(self, group), **values)
        return dataclasses.replace(self, **own)

    @functools.cached_property
    def flat(self) -> dict[str, Any]:
        """All settings by name."""
        holders = {"": self} | {group: getattr(self, group) for group in GROUPS}
        return {name: getattr(holders[each.group], name) for name, each in SETTINGS.items()}

    def sampler(self, prescribed: Mapping[str, Any] | None = None) -> Sampling:
        """The sampler's settings.

        Args:
          prescribed: settings that the method's sampler sets.
        Raises:
          ValueError: a prescribed name that is not a setting of the sampler, or a setting with
            another value.
        """
        given = self.sampling
        own = Sampling(given.temperature, given.top_k, given.top_p, given.min_p)
        prescribed = dict(prescribed or {})
        known = [field.name for field in dataclasses.fields(Sampling)]
        for name, value in prescribed.items():
            if name not in known:
                raise ValueError(
                    f"the draw of method {self.method!r} must name settings of the sampler"
                    f" ({', '.join(known)}), got {name!r}"
                )
            if getattr(own, name) not in (getattr(Sampling(), name), value):
                raise ValueError(
                    f"{flag(name)} must be {value}, which method {self.method!r} prescribes,"
                    f" got {getattr(own, name)}"
                )
        return dataclasses.replace(own, **prescribed)

    def sampling_batch(self, samples: int = 0) -> tuple[int, int]:
        """Prompts, and samples of each, of one sampling batch.

        Args:
          samples: responses of a group that are sampled at first; 0: samples_per_prompt.
        """
        shards = row_shards(self.devices.sample_mesh or self.devices.mesh)
        prompts = self.sampling.prompts_per_step
        samples = samples or self.sampling.samples_per_prompt
        known = {
            prompts * samples // (part * own): (part, own)
            for part, own in sampling_batches(prompts, samples, shards)
        }
        wanted = self.sampling.sampling_batches or 1
        if wanted not in known:
            raise ValueError(
                f"--sampling-batches must be one of {', '.join(map(str, known))} for"
                f" {prompts} prompts x {samples} samples with rows in {shards} parts, got {wanted}"
            )
        return known[wanted]

    def slots(self) -> int | None:
        """Rows that a call of the sampler computes at the same time; None: all of the call."""
        sizes = mesh_sizes(self.devices.sample_mesh or self.devices.mesh)
        devices = math.prod(sizes.values())
        if self.sampling.rows_at_once and sizes["data"] < devices:
            raise ValueError(
                "--rows-at-once must be 0 on a --sample-mesh of other axes than data, got"
                f" {self.sampling.rows_at_once} on {self.devices.sample_mesh or self.devices.mesh}"
            )
        if self.sampling.rows_at_once % devices:
            raise ValueError(
                f"--rows-at-once must be a multiple of the {devices} devices that"
                f" sample, got {self.sampling.rows_at_once}"
            )
        return self.sampling.rows_at_once or None

    @functools.cached_property
    def plan(self) -> BatchPlan:
        """How a batch is split into updates."""
        return BatchPlan(
            self.sampling.prompts_per_step,
            self.sampling.samples_per_prompt,
            self.update.minibatches,
            self.update.epochs,
            self.update.micro_batches,
            self.update.critic_epochs,
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values of all settings by name."""
        own = self.flat | {"run_dir": str(self.run_dir)}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}


def setting_of(name: str) -> "Setting":
    """The setting of a name.

    Raises:
      ValueError: there is none (closest names).
    """
    if name not in SETTINGS:
        close = difflib.get_close_matches(name, SETTINGS, n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        raise ValueError(f"{name!r} is not a setting{hint}")
    return SETTINGS[name]


def flag(name: str) -> str:
    """The flag of a setting, which errors name."""
    return f"--{name.replace('_', '-')}"


GROUPS: Mapping[str, Any] = {
    field.name: field.type
    for field in dataclasses.fields(TrainConfig)
    if dataclasses.is_dataclass(field.type)
}
"""The groups of settings by the field of `TrainConfig` that holds them."""


class Setting(NamedTuple):
    """A setting: the group that holds it, "" for `TrainConfig` itself, and its annotated type."""

    group: str
    type: Any


SETTINGS: Mapping[str, Setting] = {
    field.name: Setting(group, field.type)
    for group, holder in {"": TrainConfig, **GROUPS}.items()
    for field in dataclasses.fields(holder)
    if field.name not in GROUPS
}
"""All settings by name."""
