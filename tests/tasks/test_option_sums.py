"""Option sums: forms of a sum that the base model reads."""

import numpy as np

from rlvr_jax import policy
from rlvr_jax.tasks import load
from rlvr_jax.tasks.base import Response
from rlvr_jax.tasks.derived.reformulations import reformulated
from rlvr_jax.tasks.selfcheck import self_check
from rlvr_jax.tasks.sums.option_sums import BASE_MODEL


def test_splits_have_no_sum_in_common_and_only_train_prompts_have_forms():
    task = load("option_sums")
    assert self_check(task).problems == ()
    train, test = (
        {tuple(sorted(prompt.text[:-1].split("+"))) for prompt in split}
        for split in (task.train, task.test)
    )
    assert not train & test
    assert all(len(prompt.meta["variants"]) == 3 for prompt in task.train)
    assert not any(prompt.meta for prompt in task.test)


def test_the_base_model_reads_every_form_and_writes_its_answer_in_the_budget():
    task, reader = load("option_sums"), policy.tokenizer(BASE_MODEL)
    random = np.random.default_rng(0)
    for prompt in task.train:
        for name in prompt.meta["variants"]:
            shown = reformulated(prompt, name, random)
            text = f"\\boxed{{{shown.answer}}}"
            for words in (shown.text, text):
                ids = reader(words, add_special_tokens=False)["input_ids"]
                assert reader.decode(ids, clean_up_tokenization_spaces=False) == words
                assert reader.unk_token_id not in ids and reader.eos_token_id not in ids
            assert len(ids) < task.response_tokens
            (grade,) = task.verify([shown], [Response(text)])
            assert (grade.outcome, grade.info["format"]) == (1, 1)
