"""The report: one file that loads nothing, survives hostile text and stays small."""

import html.parser
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from analysis_runs import HOSTILE, write_run
from numpy.testing import assert_allclose

from rlvr_jax.analysis import report
from rlvr_jax.analysis.curves import sections, thinned
from rlvr_jax.analysis.law_section import law_section
from rlvr_jax.analysis.report import LARGEST_PAGE, labels_of, main, write_report
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.analysis.samples import shown_samples

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
LOADING = ("src", "href", "srcset", "action", "poster", "data")


class Page(html.parser.HTMLParser):
    """Counts elements, keeps scripts and everything that could load."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.loads, self.handlers, self.scripts, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.loads += [value for name, value in attrs if name in LOADING]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.elements and self.elements[-1] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        write_run(folder / "a", steps=60, extra=["\n", " ", "", "\ud800", *HOSTILE]),
        write_run(folder / "b", method="clip_cov", steps=60),
    ]


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    path = write_report(tmp_path_factory.mktemp("out") / "deep" / "report.html", runs)
    return path, Page(path.read_text("utf-8"))


def data_of(page):
    return json.loads(page.scripts[0], parse_constant=pytest.fail)


def test_the_page_loads_nothing(page):
    path, parsed = page
    text = path.read_text("utf-8")
    assert not parsed.loads and not parsed.handlers
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(parsed.elements)
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    assert "default-src 'none'" in text


def test_the_page_is_small(page):
    assert page[0].stat().st_size < LARGEST_PAGE / 5


def test_hostile_text_stays_text(page):
    _, parsed = page
    assert parsed.elements.count("script") == 2
    tokens = data_of(parsed)["samples"][0]["groups"][0]["responses"][0]["tokens"]
    assert [t for t in HOSTILE if t not in tokens] == []


def test_hostile_settings_and_names_stay_text(tmp_path):
    hostile = "".join(HOSTILE) + "{{data}}"
    run = write_run(tmp_path / "r", method=hostile, steps=6, settings={hostile: hostile})
    parsed = Page(write_report(tmp_path / "r.html", [run], title=hostile).read_text("utf-8"))
    assert parsed.elements.count("script") == 2 and "img" not in parsed.elements
    assert parsed.text.count(hostile) >= 3
    assert data_of(parsed)["runs"] == [{"label": hostile}]


def test_the_cards_show_first_and_last(page, runs):
    cards = {card["title"]: card for card in data_of(page[1])["cards"]}
    assert list(cards) == ["pass@1", "pass@8", "pass@32", "Entropy", "Truncated"]
    values = load_run(runs[1]).series("held_out/pass@32")[1]
    row = cards["pass@32"]["rows"][1]
    assert_allclose([row["first"], row["last"]], values[[0, -1]], rtol=1e-3)  # 4 digits are kept
    assert "n = 64 samples per prompt" in cards["pass@32"]["note"]


def test_every_chart_says_its_unit_and_its_n(page):
    charts = [c for s in data_of(page[1])["sections"] for c in s["charts"]]
    assert len(charts) > 20
    for chart in charts:
        assert chart["unit"] and chart["x"]["label"], chart["title"]
        assert re.search(r"n = \d+|one point per 10 steps", chart["note"]), chart["title"]


def test_the_entropy_curve_has_its_quantile_band(page, runs):
    charts = [c for s in data_of(page[1])["sections"] for c in s["charts"]]
    series = next(c for c in charts if c["title"] == "Token entropy")["series"][0]
    high = load_run(runs[0]).series("entropy/p90")[1]
    assert_allclose([row[2] for row in series["band"]], high, rtol=1e-3)  # 4 digits are kept


def test_the_law_is_found_where_the_curve_obeys_it(page):
    (section,) = (s for s in data_of(page[1])["sections"] if s["title"] == "Entropy law")
    run, a, b, ceiling, r_squared, points = section["table"]["rows"][0]
    assert run == "grpo" and points == 6 and float(r_squared) > 0.8
    assert_allclose(float(ceiling), float(b) - float(a), atol=1e-3)  # 3 digits are shown


@pytest.mark.parametrize(
    "name, column, cell",
    [("entropy", 1, "no fit: the entropy does not vary"), ("reward", 4, "–")],
)
def test_a_number_that_stands_still_is_said_to_give_no_law(name, column, cell, tmp_path):
    run = write_run(tmp_path / "r", steps=50)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows = [row | {name: 0.25} for row in rows]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    section = law_section([load_run(run)], ["grpo"])
    assert section["table"]["rows"][0][column] == cell


@pytest.mark.parametrize(
    "steps, intro, window",
    [
        (48, "Every step.", 1),
        (60, "Thin: every step; thick: mean of 10 steps, where a curve has 50 or more.", 10),
        (450, "Thin: the steps, averaged to 400 points; thick: mean of 11 steps,", 10),
    ],
)
def test_the_intro_says_what_the_lines_are(steps, intro, window, tmp_path):
    found = sections([load_run(write_run(tmp_path / "r", steps=steps))], ["grpo"])
    (answers,) = (section for section in found if section["title"] == "Training answers")
    assert answers["intro"].startswith(intro)
    assert answers["charts"][0]["series"][0]["window"] == window  # in points of the curve


def test_runs_of_different_lengths_have_both_in_the_note(tmp_path):
    runs = [load_run(write_run(tmp_path / str(n), steps=n, every=5)) for n in (5, 15)]
    charts = {c["title"]: c["note"] for s in sections(runs, ["a", "b"]) for c in s["charts"]}
    assert charts["Reward"] == "of the trained responses · n = 5 to 15 steps"
    assert charts["Held-out pass@1"] == "2 to 4 evaluations, n = 64 samples per prompt"


def test_settings_that_differ_are_set_off(page):
    text = page[0].read_text("utf-8")
    assert re.search(
        r'<tr class="differs"><td>loss_terms</td><td>ppo_clip</td><td>ppo_clip \+', text
    )
    assert re.search(r"<tr><td>learning_rate</td><td>0.0003</td><td>0.0003</td>", text)


def test_a_run_in_progress_is_shown_as_far_as_it_is(tmp_path):
    run = write_run(tmp_path / "r", steps=30)
    (run / "summary.json").unlink()
    (run / "timings.jsonl").unlink()
    lines = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(lines[: len(lines) // 2])
    shutil.rmtree(run / "samples")
    parsed = Page(write_report(tmp_path / "r.html", [run]).read_text("utf-8"))
    assert "not finished" in parsed.text
    assert data_of(parsed)["samples"] == []


def test_a_run_that_took_all_its_steps_is_finished_before_it_has_a_summary(tmp_path):
    run = write_run(tmp_path / "r", steps=10)
    (run / "summary.json").unlink()
    assert "not finished" not in write_report(tmp_path / "r.html", [run]).read_text("utf-8")


def test_a_page_that_is_written_again_loads_itself_and_another_does_not(tmp_path, runs):
    for live in (True, False):
        page = Page(write_report(tmp_path / "r.html", runs, live=live).read_text("utf-8"))
        assert data_of(page)["reload_seconds"] == (30 if live else None)
        assert ("reloads every 30 s" in page.text) == live
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]  # nothing is left beside it


def test_numbers_that_never_moved_are_folded(page):
    still, moving = "Constant metrics", data_of(page[1])["sections"]
    (folded,) = (section for section in moving if section["title"] == still)
    rows = {row[0]: row[1:] for row in folded["table"]["rows"]}
    assert folded["folded"] and not folded["charts"]
    assert rows["truncated_fraction"] == ["0", "0"] and rows["chosen_fraction"] == ["0", "0.0075"]
    shown = {chart["title"] for section in moving for chart in section["charts"]}
    assert "Truncated" not in shown and "Ratio" not in shown and "Reward" in shown
    assert rows["ratio/max"] == ["1.7", "1.7"]  # of the band, which did not move either


def test_a_number_that_one_run_moved_is_shown(tmp_path):
    for name, value in (("a", 0.0), ("b", 1.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        rows = [{"step": step, "mine": value * step} for step in range(3)]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    found = sections([load_run(tmp_path / name) for name in "ab"], ["a", "b"])
    assert [section["title"] for section in found] == ["Further numbers"]
    (still,) = sections([load_run(tmp_path / "a")], ["a"])
    assert still["table"]["rows"] == [["mine", "0"]]


def test_every_setting_is_said_once_as_it_came_to(tmp_path):
    given = {"method": "grpo", "task": "brackets", "seed": 0, "model": "", "response_tokens": 0}
    given |= {"temperature": 1.0, "steps": 6}
    run = write_run(
        tmp_path / "r",
        steps=6,
        settings=given,
        model="folder",
        response_tokens=24,
        resolved={"response_tokens": 24, "temperature": 0.5},  # the method's own temperature
    )
    older = write_run(tmp_path / "old", steps=6, settings=given, model="folder")
    text = write_report(tmp_path / "r.html", [run]).read_text("utf-8")
    for name, value in (
        *(("method", "grpo"), ("task", "brackets"), ("seed", "0"), ("model", "folder")),
        *(("response_tokens", "24"), ("temperature", "0.5"), ("steps", "6")),
    ):
        assert text.count(f"<td>{name}</td>") == text.count(f"<td>{name}</td><td>{value}</td>") == 1
    both = write_report(tmp_path / "both.html", [run, older]).read_text("utf-8")
    assert both.count("<td>response_tokens</td><td>24</td><td>0</td>") == 1


def test_many_runs_share_a_page(tmp_path):
    run = write_run(tmp_path / "r", steps=450)
    path = write_report(tmp_path / "r.html", [run] * 15)
    data = data_of(Page(path.read_text("utf-8")))
    assert path.stat().st_size < LARGEST_PAGE
    reward = next(c for s in data["sections"] for c in s["charts"] if c["title"] == "Reward")
    assert len(data["runs"]) == len(reward["series"]) == 15


def test_a_page_that_would_be_too_large_has_fewer_points(tmp_path, monkeypatch):
    run = write_run(tmp_path / "r", steps=400)
    plain = write_report(tmp_path / "r.html", [run]).stat().st_size
    monkeypatch.setattr(report, "LARGEST_PAGE", plain // 2)
    data = data_of(Page(write_report(tmp_path / "r.html", [run]).read_text("utf-8")))
    reward = next(c for s in data["sections"] for c in s["charts"] if c["title"] == "Reward")
    assert len(reward["series"][0]["points"]) == 100 and not data["samples"]


def test_the_time_of_a_run_is_the_sum_over_its_steps_and_the_first_evaluation(page):
    numbers = ["0.064", "0.002", "0.12", "0.8", "48,000", "17.6"]  # 60 · 0.2 + 7 · 0.8
    cells = "".join(f"<td>{number}</td>" for number in ["grpo", *numbers])
    assert cells in page[0].read_text("utf-8")


def test_a_run_of_nothing_but_a_config_gives_a_page(tmp_path):
    (tmp_path / "config.json").write_text('{"method": "grpo"}')
    parsed = Page(write_report(tmp_path / "r.html", [tmp_path]).read_text("utf-8"))
    assert data_of(parsed)["sections"] == []
    assert "grpo" + 6 * "–" in parsed.text


def test_a_run_before_its_first_step_shows_its_first_evaluation(tmp_path):
    run = write_run(tmp_path / "r", steps=3)
    first = (run / "metrics.jsonl").read_text().splitlines()[0]
    (run / "metrics.jsonl").write_text(first + "\n")
    data = data_of(Page(write_report(tmp_path / "r.html", [run]).read_text("utf-8")))
    assert data["cards"][0]["rows"][0]["change"] == 0
    assert data["cards"][-1]["rows"][0]["last"] is None


def test_a_metric_that_nobody_knows_gets_its_chart(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    rows = [json.dumps({"step": step, "temperature/mine": step / 2}) for step in range(5)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    (section,) = data_of(Page(write_report(tmp_path / "r.html", [tmp_path]).read_text()))[
        "sections"
    ]
    assert section["title"] == "Further numbers"
    assert section["charts"][0]["series"][0]["points"][-1] == [4.0, 2.0]


def test_numbers_that_are_not_finite_become_null(tmp_path):
    run = write_run(tmp_path / "r", steps=6, responses=1)
    file = run / "samples" / "step_000006.jsonl"
    row = json.loads(file.read_text()) | {"outcome": None}
    row["entropy"][0], row["ratio"][1] = float("nan"), float("inf")
    file.write_text(json.dumps(row))
    parsed = Page(write_report(tmp_path / "r.html", [run]).read_text("utf-8"))
    response = data_of(parsed)["samples"][1]["groups"][0]["responses"][0]
    assert response["entropy"][0] is None and response["ratio"][1] is None
    assert response["outcome"] is None


def test_a_response_counts_as_right_above_one_half_as_in_the_curves():
    rows = [{"prompt": "p", "outcome": outcome, "tokens": ["a"]} for outcome in (0.5, 0.6, 1.0)]
    (sample,), *_ = shown_samples([(0, 1, rows)], 1000)
    assert sample["groups"][0]["note"] == "2 of 3 correct"


def test_many_long_responses_and_runs_stay_below_the_limit(tmp_path):
    run = write_run(tmp_path / "r", steps=450, responses=8, extra=["word"] * 1500)
    path = write_report(tmp_path / "r.html", [run] * 3)
    assert path.stat().st_size < LARGEST_PAGE
    samples = data_of(Page(path.read_text("utf-8")))["samples"]
    shown = [r for s in samples for g in s["groups"] for r in g["responses"]]
    assert shown and all(len(r["tokens"]) <= 500 < r["length"] for r in shown)


def test_a_page_that_cannot_fit_is_refused(tmp_path, runs, monkeypatch):
    monkeypatch.setattr(report, "LARGEST_PAGE", 1000)
    with pytest.raises(ValueError, match="write_report: runs must fit on a page of 1000 bytes"):
        write_report(tmp_path / "r.html", runs)
    with pytest.raises(ValueError, match="runs must name a run directory, got none"):
        write_report(tmp_path / "r.html", [])


def test_thinning_keeps_the_ends_and_the_mean():
    points = np.stack([np.arange(1000.0), np.sin(np.arange(1000.0))], axis=1)
    short = thinned(points, 100)
    assert short.shape == (100, 2)
    assert_allclose(short[[0, -1]], points[[0, -1]])
    assert np.all(np.diff(short[:, 0]) > 0)
    assert thinned(points[:50], 100) is not None and len(thinned(points[:50], 100)) == 50


def test_labels_tell_runs_apart(tmp_path):
    paths = [write_run(tmp_path / f"r{i}", seed=seed, steps=2) for i, seed in enumerate([0, 1, 1])]
    runs = [load_run(path) for path in paths]
    assert labels_of(runs[:1]) == ["grpo"]
    assert labels_of(runs[:2]) == ["grpo, seed 0", "grpo, seed 1"]
    assert len(set(labels_of(runs))) == 3
    assert len(set(labels_of([runs[0], runs[0]]))) == 2


def test_the_command_line_writes_and_explains_itself(tmp_path, runs, capsys):
    main([str(runs[0]), "--out", str(tmp_path / "r.html"), "--title", "A title"])
    assert capsys.readouterr().out.strip() == str(tmp_path / "r.html")
    with pytest.raises(SystemExit, match=r"^error: RUN must be a run directory"):
        main([str(tmp_path / "nowhere")])


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_draws_the_page_without_a_complaint(page, tmp_path):
    command = [
        CHROMIUM,
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--no-first-run"),
        *("--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"),
        f"--user-data-dir={tmp_path / 'profile'}",
        page[0].as_uri(),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in result.stderr
    assert len(re.findall(r'<svg class="chart"[^>]*><line class="grid"', result.stdout)) > 20
    assert result.stdout.count('class="response"') == 16


@pytest.mark.parametrize(
    ("row", "said"),
    (
        ({"answer": "15", "stage": "exact"}, "answer 15 · exact"),
        ({"answer": None, "stage": "no answer"}, "no answer"),
        ({"answer": "x" * 500, "stage": "", "timed_out": True}, f"answer {'x' * 100}… · timed out"),
        ({"stage": "lost", "verdict": False}, "lost · ungraded"),
        ({}, ""),  # of a run that did not write it
    ),
)
def test_what_the_verifier_read_and_where_it_decided_is_shown(row, said):
    row = {"prompt": "a", "tokens": ["b"], "response": "b", **row}
    samples, *_ = shown_samples([(0, 1, [row])], 100)
    assert samples[0]["groups"][0]["responses"][0]["verifier"] == said
