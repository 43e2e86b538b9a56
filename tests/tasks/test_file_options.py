"""The page of options of files names all of them, and its examples earn what it says."""

import json
import re
import shlex
from pathlib import Path

import pytest

from rlvr_jax.tasks import Response, load
from rlvr_jax.tasks.data.files import jsonl
from rlvr_jax.tasks.options import known_options, pairs_of

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text()
EXAMPLES = re.findall(r"#.*→  \"(.*)\"\n    --task-options (.*)\n", PAGE)


def test_the_page_has_every_option_of_files():
    named = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(named) == sorted(known_options(jsonl).keys() - {"path"})


@pytest.mark.parametrize(("response", "options"), EXAMPLES)
def test_an_example_for_models_without_boxes_earns_its_reward(tmp_path, response, options):
    choices = "choice" in options
    rows = [{"prompt": f"What is {n} + 7?", "answer": str(n + 7)} for n in range(12, 40)]
    if choices:
        rows = [{"prompt": f"Which is {n}? (A) 0 (B) {n}", "answer": "B"} for n in range(12, 40)]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = load(f"jsonl:{file}", **pairs_of(shlex.split(options), "options"))
    (prompt,) = [one for one in (*task.train, *task.test) if "12" in one.text]
    instruction = re.search(r'instruction="(.*?)"', options)[1]
    assert prompt.text.endswith(f"\n\n{instruction}")
    given, other = Response(response), Response(response.replace("19", "20").replace("(B)", "(A)"))
    assert [grade.outcome for grade in task.verify([prompt, prompt], [given, other])] == [1, 0]


def test_the_page_has_three_examples():
    assert len(EXAMPLES) == 3
