"""Two training loops of tinker_cookbook, unmodified, against a server: sums of one-digit numbers.

    python tests/server/cookbook_loops.py supervised TOKENIZER_FOLDER STEPS LOG_FOLDER
    python tests/server/cookbook_loops.py rl TOKENIZER_FOLDER STEPS LOG_FOLDER [LOSS]

The interpreter has tinker and tinker_cookbook; it needs nothing of this library. The last part of
the tokenizer's folder is the name of the model. The loops write `metrics.jsonl` to the log folder.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import chz
import numpy as np
from tinker_cookbook import renderers
from tinker_cookbook.recipes.math_rl.arithmetic_env import ArithmeticEnv
from tinker_cookbook.rl import train as rl_train
from tinker_cookbook.rl.problem_env import ProblemGroupBuilder
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, RLDatasetBuilder
from tinker_cookbook.supervised import train as supervised_train
from tinker_cookbook.supervised.data import FromConversationFileBuilder
from tinker_cookbook.supervised.types import ChatDatasetBuilderCommonConfig
from tinker_cookbook.tokenizer_utils import get_tokenizer, register_tokenizer
from transformers import AutoTokenizer

RENDERER = "qwen3_instruct"  # ChatML, the format of SmolLM2


class Sums(RLDataset):
    """Batches of 16 sums, with 4 responses each."""

    def __init__(self, renderer, steps):
        self.renderer, self.steps = renderer, steps

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        pairs = np.random.default_rng(index).integers(0, 10, (16, 2)).tolist()
        prefix = ArithmeticEnv.standard_fewshot_prefix()
        return [
            ProblemGroupBuilder(
                partial(ArithmeticEnv, x, y, renderer=self.renderer, convo_prefix=prefix), 4
            )
            for x, y in pairs
        ]

    def __len__(self) -> int:
        return self.steps


@chz.chz
class SumsBuilder(RLDatasetBuilder):
    """The sums in tokens of a model."""

    model: str
    steps: int

    async def __call__(self):
        renderer = renderers.get_renderer(RENDERER, tokenizer=get_tokenizer(self.model))
        return Sums(renderer, self.steps), None


def supervised(model: str, steps: int, log: Path) -> None:
    """Sums with their answers in a sentence, 16 a step."""
    log.mkdir(parents=True, exist_ok=True)
    file = log / "sums.jsonl"
    pairs = np.random.default_rng(0).integers(0, 10, (16 * steps, 2)).tolist()
    rows = [
        [
            {"role": "user", "content": f"What is {x} + {y}?"},
            {"role": "assistant", "content": f"{x} plus {y} makes {x + y}."},
        ]
        for x, y in pairs
    ]
    file.write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
    common = ChatDatasetBuilderCommonConfig(
        model_name_for_tokenizer=model, renderer_name=RENDERER, max_length=64, batch_size=16
    )
    config = supervised_train.Config(
        log_path=str(log),
        model_name=model,
        recipe_name="sums",
        renderer_name=RENDERER,
        dataset_builder=FromConversationFileBuilder(common_config=common, file_path=str(file)),
        learning_rate=5e-4,
        lora_rank=16,
        eval_every=0,
        save_every=0,
    )
    asyncio.run(supervised_train.main(config))


def rl(model: str, steps: int, log: Path, loss: str = "importance_sampling") -> None:
    """Sums rewarded for the correct number."""
    config = rl_train.Config(
        learning_rate=3e-4,
        dataset_builder=SumsBuilder(model=model, steps=steps),
        model_name=model,
        recipe_name="sums",
        max_tokens=12,
        log_path=str(log),
        renderer_name=RENDERER,
        lora_rank=16,
        loss_fn=loss,
        remove_constant_reward_groups=True,
        eval_every=0,
        save_every=0,
    )
    asyncio.run(rl_train.main(config))


if __name__ == "__main__":
    name, folder, number, log_folder, *others = sys.argv[1:]
    model_name = Path(folder).name
    register_tokenizer(model_name, lambda: AutoTokenizer.from_pretrained(folder))
    {"supervised": supervised, "rl": rl}[name](model_name, int(number), Path(log_folder), *others)
