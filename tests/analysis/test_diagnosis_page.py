"""The page and the command of a diagnosis: text, JSON, legends, and errors in one sentence."""

import html.parser
import json
import re

import numpy as np
import pytest
from analysis_runs import HOSTILE, write_run
from counted_runs import PROBLEMS, write_counted

from rlvr_jax.analysis.diagnosis.of_run import diagnose_run
from rlvr_jax.analysis.diagnosis.page import as_json, write_page
from rlvr_jax.diagnosis.__main__ import main


class Page(html.parser.HTMLParser):
    """Collects elements and the text outside scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        if self.elements and self.elements[-1] != "script":
            self.text += data


def test_the_page_has_verdicts_first_and_hostile_text_stays_text(tmp_path):
    hostile = "".join(HOSTILE)
    run = write_counted(tmp_path / "run", np.full(PROBLEMS, 12), method=hostile, extra=HOSTILE)
    topics = diagnose_run(run)
    parsed = Page(write_page(tmp_path / "out" / "page.html", topics, hostile).read_text("utf-8"))
    assert parsed.elements.count("script") == 2 and "img" not in parsed.elements
    assert hostile in parsed.text
    cards = ["pass@1", "pass@8", "Entropy", "What changed", "Not decided"]
    places = [parsed.text.index(card) for card in cards]
    assert places == sorted(places) and places[-1] < parsed.text.index("Solved problems")
    assert parsed.text.index("Solves more") < parsed.text.index("Problems solved with 8 samples")


@pytest.mark.parametrize(
    ("against", "legend", "colours"),
    [
        (None, ["start", "end"], [0, 1]),
        ("this_model", ["start", "end"], [0, 1]),
        ("other", ["other", "this"], [1, 1]),
    ],
)
def test_the_legend_names_what_is_drawn(tmp_path, monkeypatch, against, legend, colours):
    monkeypatch.chdir(tmp_path)
    for name, correct in (("this", 12), ("other", 8)):
        write_counted(tmp_path / name, np.full(PROBLEMS, correct))
    main(["this", *(["--against", against] if against else []), "--no-weights"])
    (embedded,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "diagnosis.html").read_text())
    data = json.loads(embedded)
    assert [run["label"] for run in data["runs"]] == legend
    (kept,) = (
        chart
        for charts in data["charts"]
        for chart in charts
        if chart["title"] == "Entropy by position in the response"
    )
    # the responses are those of this run, also if another run is the start of the comparison
    assert [line["run"] for line in kept["series"]] == colours
    assert kept["variants"] == ([] if colours[0] == 0 else ["step 1", "step 60"])


def test_the_command_prints_json_or_writes_a_page(tmp_path, capsys):
    run = write_counted(tmp_path / "run", np.full(PROBLEMS, 12))
    main([str(run), "--json"])
    printed = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert printed == json.loads(json.dumps(as_json(diagnose_run(run))))
    main([str(run), "--out", str(tmp_path / "page.html"), "--no-weights"])
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "page.html")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "must be a run directory with a config.json"),
        (["run", "--against", "nowhere"], "against must be a run directory or a policy folder"),
        (["run", "--formats", "code"], "--formats must be NAME=REGEX, got 'code'"),
        (["run", "--formats", "code=("], "--formats must have a regular expression"),
    ],
)
def test_what_is_no_run_ends_in_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=sentence):
        main(arguments)
