"""Two policy folders and a task: what is drawn, kept and said; the pair that ships in docs."""

import json
import re
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from analysis_runs import write_run

from rlvr_jax import policy, tasks
from rlvr_jax.analysis.diagnosis import diagnose_answers
from rlvr_jax.analysis.diagnosis.winners import INFLUENCE
from rlvr_jax.diagnosis.__main__ import main
from rlvr_jax.diagnosis.held_out import evaluation_settings
from rlvr_jax.diagnosis.influence import influence
from rlvr_jax.diagnosis.policy_pair import changed_most, compare_policies, draw_pair, shown_rows
from rlvr_jax.diagnosis.stored_pair import load_answers, save_pair
from rlvr_jax.policy.scoring import run_in_chunks
from rlvr_jax.rollout import load_rollouts

DOCS = Path(__file__).parents[2] / "docs"
PAIR = DOCS / "results" / "brackets" / "pair"
START = tasks.load("brackets").base_model
FEW = ["--task", "brackets", "--prompts", "6", "--samples", "2"]
LARGEST = 2_000_000  # bytes of the pair
ATOL = 1e-4  # nats; float32 on another machine than the one that wrote the file
STORED = ["Solved problems", "Responses", "Same tokens", "Formats", "Ties of the reward"]
STORED += ["Differential information", "Interference between problems"]
SIZES = dict(evaluation_prompts=6, evaluation_samples=2)


@pytest.mark.parametrize(
    ("method", "verdict"),
    [("grpo", "Sharpened at a price"), ("clip_cov", "Solves more")],
)
def test_the_answers_that_ship_say_what_each_method_did(method, verdict):
    reach, _, same, *_ = diagnose_answers(*load_answers(PAIR / method / "rollouts"))
    assert reach.sentences[0].startswith(verdict)
    reached = reach.numbers["support"]["found_above_floor"]
    assert (reached["low"] > 0) == (method == "clip_cov")
    assert same.numbers["entropy_change"]["high"] < 0


@pytest.mark.thorough
def test_the_answers_that_ship_are_of_the_policies_that_ship():
    score = jax.jit(policy.score, static_argnums=0)
    for method in ("grpo", "clip_cov"):
        folders = [START, str(PAIR / method)]
        for name, (drew, other) in (("before", folders), ("after", folders[::-1])):
            rollouts, stats, _ = load_rollouts(PAIR / method / "rollouts" / f"{name}.npz")
            for folder, logp in ((drew, rollouts.old_logp), (other, stats.logp)):
                own = policy.load(folder)
                found = run_in_chunks(lambda rows, own=own: score(*own, rows).logp, rollouts)
                np.testing.assert_allclose(found, logp, atol=ATOL, rtol=0)


def test_the_notebook_of_the_docs_is_run_as_it_stands(tmp_path, monkeypatch, capsys):
    (tmp_path / "docs").symlink_to(DOCS)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "analysis.md").read_text(), re.DOTALL)
    exec(block, {})
    assert "GRPO minus base" in capsys.readouterr().out
    assert "Sharpened at a price" in (tmp_path / "pair.html").read_text()


def test_answers_that_were_kept_without_branching_are_read(tmp_path):
    kept = shutil.copytree(PAIR / "grpo" / "rollouts", tmp_path / "kept")
    _, _, same, *_ = diagnose_answers(*load_answers(kept))
    assert same.numbers["branching"]["value"] < 0 and "formal" in same.numbers["classes"]
    (kept / "words.json").write_text('{"no number": "x"}')
    with pytest.raises(ValueError, match=r"words.json of .* must be as they were written"):
        load_answers(kept)
    (kept / "words.json").unlink()
    (kept / "branching.npz").unlink()
    _, _, same, *_ = diagnose_answers(*load_answers(kept))
    assert len(same.missing) == 2 and not {"branching", "classes"} & same.numbers.keys()


def test_the_pair_is_small():
    files = [path for path in PAIR.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST


@pytest.mark.thorough
def test_the_command_draws_from_both_and_keeps_what_it_drew(tmp_path, capsys):
    arguments = [str(PAIR / "grpo"), "--against", START, *FEW]
    main([*arguments, "--json", "--keep", str(tmp_path / "kept")])
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert list(told) == [*STORED, INFLUENCE, "Weights"]
    assert (
        told["Solved problems"]["numbers"]["samples"] == 2
        and told["Solved problems"]["numbers"]["problems"] == 6
    )
    assert told["Same tokens"]["numbers"]["kl"]["last_to_first"]["value"] > 0
    assert told["Weights"]["sentences"][0].startswith("The 14 matrices moved")
    sampled = {}
    for name in ("before", "after", "again"):
        sampled[name], _, texts = load_rollouts(tmp_path / "kept" / f"{name}.npz")
        assert {*texts["kind"]} == {"easy", "hard"}
    assert not np.array_equal(sampled["before"].tokens, sampled["again"].tokens)
    main(["--answers", str(tmp_path / "kept"), "--json"])
    stored = json.loads(capsys.readouterr().out)
    assert stored == {title: told[title] for title in STORED}
    main([*arguments, "--out", str(tmp_path / "page.html"), "--no-weights"])
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "page.html")
    (embedded,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "page.html").read_text())
    data = json.loads(embedded)
    assert [(sample["run"], sample["step"]) for sample in data["samples"]] == [(0, None), (1, None)]
    response = data["samples"][0]["groups"][0]["responses"][0]
    assert len(response["prob_delta"]) == len(response["tokens"]) and data["bounds"]["prob_delta"]


@pytest.mark.thorough
def test_policies_with_other_tokens_are_compared_by_their_verdicts(tmp_path, capsys):
    other, kept = tasks.load("hinted_brackets").base_model, tmp_path / "kept"
    kept.mkdir()
    (kept / "branching.npz").write_text("of a pair that was kept here before")
    arguments = [str(PAIR / "grpo"), "--against", other, *FEW, "--keep", str(kept)]
    main([*arguments, "--json"])
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["Solved problems"]["numbers"]["problems"] == 6
    assert {"correct", "different_responses"} <= told["Responses"]["numbers"].keys()
    assert not {"tokens_per_response", "entropy_per_token", "calibration"} & (
        told["Responses"]["numbers"].keys()
    )
    for topic in ("Responses", "Same tokens"):
        (line,) = [line for line in told[topic]["missing"] if "one vocabulary" in line]
        assert f"those of {other} and {PAIR / 'grpo'}" in line
    assert not told["Same tokens"]["sentences"] and told["Weights"]["missing"]
    main(["--answers", str(kept), "--json"])
    stored = json.loads(capsys.readouterr().out)
    assert stored == {title: told[title] for title in STORED}
    main([*arguments, "--out", str(tmp_path / "page.html")])
    (embedded,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "page.html").read_text())
    data = json.loads(embedded)
    assert len(data["samples"]) == 2 and "column" not in data
    assert "prob_delta" not in data["samples"][0]["groups"][0]["responses"][0]


@pytest.mark.slow
def test_equal_policies_are_at_no_distance(tmp_path):
    copy = shutil.copytree(START, tmp_path / "copy")
    settings = evaluation_settings("brackets", model=str(copy), **SIZES)
    topics, _ = compare_policies(settings, START, ("one", "two"))
    topics = {topic.title: topic for topic in topics}
    for found in topics["Same tokens"].numbers["kl"].values():
        assert found["value"] == 0
    assert topics["Weights"].sentences[0].startswith("No matrix")


@pytest.mark.slow
def test_rows_that_are_kept_have_the_log_probs_of_both(tmp_path):
    settings = evaluation_settings("brackets", model=str(PAIR / "clip_cov"), **SIZES)
    pair = draw_pair(settings, START)
    save_pair(tmp_path, pair)
    before, after, again = pair.answers()
    rollouts, stats, texts = load_rollouts(tmp_path / "after.npz")
    assert np.array_equal(rollouts.old_logp, np.asarray(after.logp, np.float32))
    assert np.array_equal(stats.entropy, np.asarray(after.other_entropy, np.float32))
    assert [text or None for text in texts["answer"]] == after.answer
    # What is shown of either policy is the second one less the first.
    lost, own = shown_rows(pair)
    for rows, batch, other, sign in (
        (lost, pair.before.rollouts, pair.of_before, 1),
        (own, pair.after.rollouts, pair.of_after, -1),
    ):
        shown = rows[0]
        (row,) = np.flatnonzero(
            (batch.group == shown["group"])
            & np.isclose(
                np.sum(np.where(batch.mask, batch.old_logp, 0), 1), sum(shown["logp"]), 0, 1e-3
            )
        )[:1]
        change = sign * (np.exp(other.logp[row]) - np.exp(batch.old_logp[row]))
        np.testing.assert_allclose(
            shown["prob_delta"], change[: len(shown["tokens"])], atol=1e-4, rtol=0
        )
    assert before.weights.sum() == pytest.approx(1) and again.other_logp is None
    # sampler and scorer agree
    sampled = pair.before.rollouts
    np.testing.assert_allclose(sampled.old_logp, sampled.behaviour_logp, atol=ATOL, rtol=0)


@pytest.mark.parametrize(
    "change, shown",
    (
        ([0.25, 0.5, 0.75, -0.5, 0, 1], [5, 2, 1, 0, 3]),
        ([0.5, 0, 0.5, 0.5, 0.5, 0.25, 0], [0, 2, 3, 4, 5]),
        ([0, 0, 0.5, 0, 0], [2]),
        ([0.0] * 6, [0, 1, 2, 3]),
    ),
)
def test_problems_that_changed_are_shown_and_no_others(change, shown):
    assert changed_most(np.array(change)) == shown


@pytest.mark.slow
def test_a_run_that_ended_is_set_against_its_start(tmp_path, capsys):
    run = write_run(tmp_path / "run", model=START)
    shutil.copytree(PAIR / "grpo", run / "policy", ignore=shutil.ignore_patterns("rollouts"))
    main([str(run), *FEW, "--out", str(tmp_path / "page.html")])
    assert "Weights: The 14 matrices moved" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text()
    assert f"Diagnosis: {run / 'policy'}, brackets" in page and START not in page


@pytest.fixture
def start_in_a_file(tmp_path, monkeypatch):
    """A .gguf file that is read as the base model of brackets, whose tokens GGUF does not know."""
    file = tmp_path / "start.gguf"
    file.touch()

    def of_start(read):
        return lambda path, *others: read(START if str(path) == str(file) else path, *others)

    monkeypatch.setattr(policy, "load", of_start(policy.load))
    monkeypatch.setattr(policy, "tokenizer", of_start(policy.tokenizer))
    return file


@pytest.mark.thorough
def test_a_start_in_a_file_has_weights_that_are_compared(start_in_a_file, tmp_path, capsys):
    page = ["--out", str(tmp_path / "page.html")]
    run = write_run(tmp_path / "run", model=str(start_in_a_file))
    shutil.copytree(PAIR / "grpo", run / "policy", ignore=shutil.ignore_patterns("rollouts"))
    main([str(run), *page])
    assert "Weights: The 14 matrices moved" in capsys.readouterr().out
    main([str(PAIR / "grpo"), "--against", str(start_in_a_file), *FEW, *page])
    said = capsys.readouterr().out
    assert "Weights: The 14 matrices moved" in said and "Solved problems:" in said
    with pytest.raises(SystemExit, match="task must be given for the policy"):
        main([str(start_in_a_file)])
    start_in_a_file.unlink()
    main([str(run), "--json"])
    assert f"Weights need safetensors in {start_in_a_file}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "either RUN or --answers must be given"),
        (["--answers", "nowhere"], "nowhere must hold before.npz"),
        ([str(PAIR / "grpo")], "task must be given for the policy "),
        (["nowhere", *FEW], "RUN must be a policy folder, .* or a finished run, got nowhere"),
        ([str(PAIR / "grpo"), *FEW], "against must be given"),
        (
            [str(PAIR / "grpo"), "--against", START, *FEW, "--samples", "0"],
            "--samples must be at least 1, got 0",
        ),
    ],
)
def test_what_cannot_be_compared_ends_in_a_sentence(arguments, sentence):
    with pytest.raises(SystemExit, match=sentence):
        main(arguments)


def test_the_influence_of_problems_is_that_of_the_gradients_of_the_last_layer():
    model, params = policy.load(START)
    rollouts, _, _ = load_rollouts(PAIR / "grpo" / "rollouts" / "before.npz")
    # Two problems of two responses, one of either kind.
    rows = [
        np.flatnonzero((rollouts.group == group) & (rollouts.outcome == kind))[0]
        for group in range(96)
        for kind in (0, 1)
        if len(np.unique(rollouts.outcome[rollouts.group == group])) == 2
    ][:4]
    own = jax.tree.map(lambda values: values[rows], rollouts)
    hidden = policy.score(model, params, own, ("hidden",)).records["hidden"]

    def mean_logp(matrix):
        logp = jax.nn.log_softmax(hidden @ matrix.T)
        token = jax.numpy.take_along_axis(logp, own.tokens[..., None], -1)[..., 0]
        return jax.numpy.sum(token, axis=1, where=own.mask) / own.length.astype(np.float32)

    each = np.asarray(jax.jacobian(mean_logp)(model.unembedding(params)), float).reshape(4, -1)
    step = (each[[1, 3]] - each[[0, 2]]) / np.sqrt(2) / 2  # advantages ±1/√2 of two responses
    expected = step @ each[[1, 3]].T
    found = influence(model, params, own).influence
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    with pytest.raises(ValueError, match=r"two problems .* raise --samples or --prompts"):
        influence(model, params, jax.tree.map(lambda values: values[:2], own))


RULES = {"two attempts": ";", "left bracket": r"^\(", "right bracket": r"^\d"}
OF_UPDATE = {
    "entropy of q on the candidates": "set_entropy",
    "effective fraction of the candidates": "reinforced_fraction",
    "pairs with a positive log-margin": "pairs_won",
    "log-ratio of a correct response": "log_ratio_of_correct",
}


def assert_row(page: str, name: str, *numbers: float) -> None:
    """The row of a page has these numbers, rounded to the digits of the page."""
    text = (DOCS / page).read_text().replace("−", "-")
    (cells,) = re.findall(rf"^\| {re.escape(name)}.*? \| (.*) \|$", text, re.MULTILINE)
    written = re.findall(r"[-+]?\d+\.\d+", cells)
    assert len(written) == len(numbers), name
    for shown, number in zip(written, numbers, strict=True):
        places = len(shown.partition(".")[2])
        assert abs(float(shown) - number) <= 0.51 * 10**-places, (name, shown, number)


def interval(found):
    return found["value"], found["low"], found["high"]


def test_the_pages_have_the_numbers_of_the_stored_responses():
    both = []
    for method in ("grpo", "clip_cov"):
        topics = diagnose_answers(*load_answers(PAIR / method / "rollouts"), rules=RULES)
        both.append({topic.title: topic.numbers for topic in topics})
    published = "published_analyses.md"
    for name in ("self-BLEU", "Vendi score", "Jaccard distance"):
        found = [each["Responses"][name.replace(" ", "_")] for each in both]
        changes = [number for each in found for number in interval(each["difference"])]
        by_chance = interval(found[0]["floor"])
        assert_row(published, name, found[0]["first"], *changes, *by_chance)
    formats = both[0]["Formats"]
    for place, name in enumerate(("two attempts", "left bracket")):
        fractions = [100 * formats[f"fraction_{when}"][place] for when in ("before", "after")]
        rates = [formats[f"pass_rate_{when}"][place] for when in ("before", "after")]
        assert_row(published, name, *fractions, *rates)
    for name, key in OF_UPDATE.items():
        found = [each["Differential information"][key] for each in both]
        assert_row(published, name, *(number for each in found for number in interval(each)))
    same = [each["Same tokens"] for each in both]
    example = "analysis.md"
    found = [each["branching"]["last"] for each in same]
    assert_row(example, "tokens that have 95 % of the mass, on the responses of the base", *found)
    found = [number for each in same for number in interval(each["hardly_changed"])]
    assert_row(example, "tokens of the base whose probability changed by less than 0.01", *found)
    found = [each["entropy_change_by_outcome"] for each in same]
    parts = ("incorrect", "correct", "fractions")
    changes = [each[part] for each in found for part in parts]
    assert_row(example, "change of entropy, each policy on its own responses", *changes)
