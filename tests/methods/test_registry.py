"""The folder is the registry."""

import dataclasses
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType

import golden_vectors as golden
import numpy as np
import pytest

from rlvr_jax import methods
from rlvr_jax.experience import experience
from rlvr_jax.experience.grades import check_task
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import __main__ as printed, method, names, recipe
from rlvr_jax.methods._untrained import UNTRAINED
from rlvr_jax.objectives import UpdatePlan
from rlvr_jax.runs import parse_config
from rlvr_jax.training.update import check_needs
from rlvr_jax.types import Method

# Numbers that are read beside another hyperparameter only.
BESIDE = {
    "entropy_bonus": {"target": 1.0},
    "entropy_dynamics": {"vocabulary_deviations": 1.0},
    "ppl_position_shaping": {"position_size": 1.0},
}


def test_names_are_the_files_of_the_room():
    folder = Path(printed.__file__).parent
    assert names() == sorted(p.stem for p in folder.glob("*/*.py") if not p.stem.startswith("_"))
    assert "clip_cov" in names()


def test_listing_names_loads_no_jax():
    code = "import sys, rlvr_jax.methods as m; m.names(); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """The registry over a folder of the test, which begins with one theme and one method."""
    (tmp_path / "a_theme").mkdir()
    (tmp_path / "a_theme/__init__.py").write_text("")
    (tmp_path / "a_theme/mine.py").write_text("")
    monkeypatch.setattr(methods, "__path__", [str(tmp_path)])
    methods.themes.cache_clear()
    yield tmp_path
    methods.themes.cache_clear()


def test_two_methods_of_one_name_are_refused(registry):
    assert methods.themes() == {"mine": "a_theme"}
    methods.themes.cache_clear()
    (registry / "b_theme").mkdir()
    (registry / "b_theme/__init__.py").write_text("")
    (registry / "b_theme/mine.py").write_text("")
    with pytest.raises(ValueError, match=r"unique, got a_theme/mine.py and b_theme/mine.py; rena"):
        methods.names()


def test_a_file_without_a_card_is_refused(registry):
    with pytest.raises(
        ValueError, match=r"a_theme/mine.py must have its card, METHOD = Method\(mi"
    ):
        method("mine")
    for name in ("rlvr_jax.methods.a_theme.mine", "rlvr_jax.methods.a_theme"):
        sys.modules.pop(name, None)


def test_the_docstring_of_a_file_gives_the_texts_of_its_card(monkeypatch):
    file = ModuleType("paper", 'Paper: a line.\n\n"Its\ntitle", https://a.b/c, d\n\nTraps: a,\nb\n')
    monkeypatch.setitem(sys.modules, "paper", file)

    def paper():
        pass

    paper.__module__ = "paper"
    card, other = Method(paper, reports="r"), Method(paper, "Another title", traps="c")
    assert (card.title, card.url, card.traps, card.reports) == (
        "Its title",
        "https://a.b/c",
        "a, b",
        "r",
    )
    assert (other.title, other.url, other.traps, other.left_out) == ("Another title", "", "c", "")
    assert card.definition.endswith("https://a.b/c, d")


def test_an_unknown_method_is_refused_with_the_closest_names():
    with pytest.raises(ValueError, match=r"closest: clip_cov.*got 'clipcov'"):
        method("clipcov")
    with pytest.raises(ValueError, match=r"method \(all: python -m rlvr_jax.methods\), got '1'"):
        method("1")


def test_what_has_no_method_is_refused_with_the_reason(capsys, monkeypatch):
    assert not set(UNTRAINED) & set(names())
    monkeypatch.setattr(sys, "argv", ["methods"])
    printed.main()
    table = capsys.readouterr().out
    page = printed.markdown()
    for name, one in UNTRAINED.items():
        told = re.escape(f"got {name!r}: {one.why}. It is here as {one.here}")
        with pytest.raises(ValueError, match=told):
            method(name)
        assert re.search(rf"^  {name} +{re.escape(one.why)}$", table, re.MULTILINE)
        assert name in page and one.title in page
    with pytest.raises(ValueError, match="trains no weights"):
        parse_config(["--method", "rast", "--task", "brackets"])


def test_every_method_is_fed_by_its_own_experience():
    """So that training refuses none by its name."""
    for name in names():
        own = recipe(name)
        given = own.experience.writes if own.experience else frozenset()
        check_needs(own, name, 1, given)


def test_what_a_method_reads_of_a_task_is_said_of_it():
    bare = dataclasses.replace(numbered_task(), answers=False, rewards=(), score_steps=None)
    refused = set()
    for name in names():
        chain = recipe(name).experience
        for stage in chain.stages.values() if chain else ():
            own = numpy_actor.setting(experience(), task=chain.graded(bare))
            try:
                check_task(stage.label, stage.of_task, own.task)
                stage.init(own)
            except ValueError as error:
                wanted = re.findall(r"Task\.(\w+)", str(error))
                refused |= {(name, field) for field in wanted}
                assert not wanted or f"Task.{wanted[0]}" in printed.needs(name), name
    assert {("empo", "answers"), ("rubric_rewards", "rewards")} <= refused
    assert ("gen_prm_thoughts", "score_steps") in refused
    assert "Task.rewards" not in printed.needs("tp_judge")  # its own verifier gives them
    assert "flow_scorer (scorer)" in printed.needs("rlfr")


def test_an_unknown_hyperparameter_is_refused_with_the_closest_names():
    with pytest.raises(ValueError, match=r"grpo's \(closest: kl_coefficient\), got 'kl_coeff'"):
        recipe("grpo", kl_coeff=0.1)
    with pytest.raises(ValueError, match=r"rloo's \(it has none\), got 'fraction'"):
        recipe("rloo", fraction=0.1)


def test_hyperparameters_reach_the_parts():
    assert "drop_high_covariance(fraction=0.0075, low=1, high=5)" in (
        recipe("clip_cov", fraction=0.0075).objective.labels
    )


def numbers_of(name):
    """The hyperparameters that may be a float."""
    hints = typing.get_type_hints(method(name).recipe)
    return [key for key, hint in hints.items() if float in (hint, *typing.get_args(hint))]


def test_no_number_of_a_method_may_be_nan():
    accepted = set()
    for name in names():
        for number in numbers_of(name):
            try:
                recipe(name, **{**BESIDE.get(name, {}), number: np.nan})
            except ValueError as error:
                assert re.match(r"\w+: [\w ,]+ must .*\bnan\b", str(error))
            else:
                accepted.add(f"{name} {number}")
    assert not accepted


@pytest.mark.parametrize(
    ("name", "number", "value", "message"),
    [
        ("bapo", "balance_epsilon", -1.0, "bapo: balance_epsilon must be at least 0, got -1"),
        ("dapo", "overlong_factor", -1.0, "dapo: overlong_factor must be at least 0, got -1"),
        ("dcpo", "gap_cap", -1.0, "dcpo: gap_cap must be at least 0, got -1"),
        ("gdro", "max_weight", -1.0, "gdro: max_weight must be positive, got -1"),
        ("gdro", "mixing", 7.0, r"gdro: mixing must be in \[0, 1\], got 7"),
        ("gdro", "rate", 7.0, r"gdro: rate must be in \[0, 1\], got 7"),
        ("hapo", "pivot", 7.0, r"hapo: pivot must be in \[0, 1\], got 7"),
        ("lite_ppo", "epsilon", 0.0, "lite_ppo: epsilon must be positive, got 0"),
        ("ma_rlhf", "reward_clip", -1.0, "ma_rlhf: reward_clip must be positive, got -1"),
        ("ngrpo", "epsilon", 0.0, "ngrpo: epsilon must be positive, got 0"),
        ("ngrpo", "num_virtual", -1, "ngrpo: num_virtual must be at least 0, got -1"),
        ("ppo", "discount", 7.0, r"ppo: discount must be in \[0, 1\], got 7"),
        ("reinforce", "discount", -1.0, r"reinforce: discount must be in \[0, 1\], got -1"),
        ("riskpo", "epsilon", 0.0, "riskpo: epsilon must be positive, got 0"),
        ("riskpo", "max_value", -1.0, "riskpo: max_value must be positive, got -1"),
        ("riskpo", "tail_weight", -1.0, "riskpo: tail_weight must be at least 0, got -1"),
        ("riskpo", "track_rate", -1.0, "riskpo: track_rate must be at least 0, got -1"),
        ("soft_grpo", "noise_low", 7.0, "with_soft_tokens: low must be below high 3.0, got 7"),
        ("t_ppo", "trace_decay", 7.0, r"t_ppo: trace_decay .* \[0, 1\], got 7"),
        ("verl_effective_rank", "divisor", 0.0, "verl_effective_rank: divisor .* positive, got 0"),
    ],
)
def test_a_number_outside_its_range_is_refused(name, number, value, message):
    with pytest.raises(ValueError, match=message):
        recipe(name, **{number: value})


def test_without_a_coefficient_no_reference_is_needed():
    assert "reference_logp" in recipe("grpo").objective.reads
    assert "reference_logp" not in recipe("grpo", kl_coefficient=0.0).objective.reads


@pytest.mark.slow
def test_keeping_every_token_is_clip_higher():
    everything = golden.evaluate(recipe("forking_tokens", fraction=1.0), "b")
    plain = recipe("entropy_bonus", entropy_coefficient=0.0, kl_coefficient=0.0, clip_high=0.28)
    golden.assert_agrees(everything.loss, golden.evaluate(plain, "b").loss)


def test_methods_that_cannot_act_on_policy_say_so():
    once = UpdatePlan(updates_per_batch=1, group_size=8)
    silent = {name for name in names() if not recipe(name).objective.remarks(once)}
    # These weigh or regress on their first update as on any other.
    assert silent == {
        *(
            "agent_rlvr",
            "cgpo",
            "copg",
            "dpo_q",
            "expert_iteration",
            "f_dpg",
            "ghpo",
            "gpg",
            "gtpo",
            "hpt",
        ),
        *("hybrid_npg", "implicit_prm", "luffy_mixed", "oblr_po", "opo", "reinforce", "rl_v"),
        *("rloo", "sweet_rl", "vpo", "critique_ft", "g2rpo_a", "intervention_training", "opd"),
        *("prefix_rl", "rgr_grpo", "rl_plus", "rlmec", "sdpo", "ssb", "stp", "bfs_prover_v2"),
        *("rstar_math", "sweet_rl_policy"),
    }


def test_methods_that_weigh_old_rollouts_are_not_told_that_they_do_not():
    often = UpdatePlan(updates_per_batch=4, group_size=8)
    (age,) = recipe("gpg").objective.remarks(often)
    assert "does not correct for the age" in age
    assert recipe("rapid").objective.remarks(often) == []
    assert recipe("copg").objective.remarks(often) == []


def test_an_outer_step_of_another_number_of_updates_is_remarked():
    plan = UpdatePlan(updates_per_batch=4, group_size=8)
    (remark,) = recipe("mdpo").objective.remarks(plan)
    assert "an outer step every 10 updates, and a batch has 4" in remark
    assert recipe("mdpo", updates_per_step=4).objective.remarks(plan) == []


@pytest.mark.parametrize("name", ["earl", "gtpo", "simko"])
def test_a_statistic_of_one_row_does_not_ask_for_those_of_the_batch(name):
    assert "batch_statistics" not in recipe(name).objective.reads


def test_what_a_form_does_not_read_it_does_not_ask_for():
    assert "logp" not in recipe("ma_rlhf", kl_coefficient=0.0).objective.once_reads
    hidden = {"second_prompt_logp", "old_second_prompt_logp"}
    assert recipe("papo").objective.reads & hidden == {"old_second_prompt_logp"}
    assert recipe("papo", train_hidden=True).objective.reads & hidden == {"second_prompt_logp"}
    assert "hidden" in recipe("oblr_po", reads=("logp", "hidden")).objective.reads


def test_the_page_of_methods_is_that_of_the_registry():
    page = Path(__file__).parents[2] / "docs" / "methods.md"
    assert page.read_text() == printed.markdown() + "\n"


def test_a_method_of_ones_own_goes_by_module_and_function(tmp_path, monkeypatch):
    source = """
from rlvr_jax import methods

def half_clip(clip_low: float = 0.1):
    \"\"\"GRPO with half the clip.\"\"\"
    return methods.recipe("grpo", clip_low=clip_low, clip_high=0.1)
"""
    (tmp_path / "own_methods.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert method("own_methods:half_clip").title == "GRPO with half the clip."
    made = recipe("own_methods:half_clip", clip_low=0.05)
    assert "ppo_clip(low=0.05, high=0.1)" in made.objective.labels
    with pytest.raises(ValueError, match="closest: half_clip"):
        method("own_methods:half_clap")
    with pytest.raises(ValueError, match="no module 'nowhere' can be imported"):
        method("nowhere:half_clip")


def test_a_card_shows_what_is_needed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["methods", "dapo"])
    printed.main()
    card = capsys.readouterr().out
    assert "clip_high = 0.28" in card and "refill(when=uniform" in card
    assert "half-width of the trust region above a ratio of 1 (ε_high), at least 0" in card
    assert np.all([label in card for label in recipe("dapo").objective.labels])
    lines = printed.card("delethink").splitlines()
    text = lines[lines.index("  carry = None") + 1]
    assert text.endswith("a chunk sees (m). None: half of `response_tokens`. At least 1")
    condition = printed.card("kl_cov").partition("with one update per batch\n")[2]
    assert "penalize_high_covariance(fraction=0.002, coefficient=1) has no effect" in condition


def test_defaults_of_several_lines_are_printed_on_one():
    assert printed.defaults("spae")["separator"] == r".\n\n"
    assert not [(n, v) for n in names() for v in printed.defaults(n).values() if "\n" in v]


def test_a_card_needs_neither_a_docstring_nor_defaults(tmp_path, monkeypatch):
    code = "def bare(strength, low=0.1):\n    raise AssertionError\n"
    (tmp_path / "bare_methods.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    card = printed.card("bare_methods:bare")
    assert "strength = (must be given)" in card and "low = 0.1" in card


def test_a_bonus_that_is_zero_is_no_part_and_one_can_be_annealed():
    def parts(**changes):
        return " ".join(recipe("entropy_bonus", kl_coefficient=0, **changes).objective.labels)

    assert "entropy_bonus" not in parts(entropy_coefficient=0.0)
    assert "scheduled(part=entropy_bonus(coefficient=0.01)" in parts(
        entropy_coefficient=0.01, anneal_updates=50
    )
    with pytest.raises(ValueError, match="anneal_updates must be at least 0, got -1"):
        recipe("entropy_bonus", anneal_updates=-1)
