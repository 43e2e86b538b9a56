"""Scripts of a report's page, run by Node."""

import json
import shutil
import subprocess
from importlib import resources

import pytest

from rlvr_jax import analysis
from rlvr_jax.analysis.samples import shown_samples

NODE = shutil.which("node")
# Two periods of a page's clock, with a touch in the middle of either one or without.
CLOCK = """
let now = 1000, period, loaded = 0; const touches = [];
Date.now = () => now;
globalThis.addEventListener = (name, act) => touches.push(act);
globalThis.location = { reload: () => { loaded += 1; } };
globalThis.setInterval = (act, ms) => { period = { act, ms }; };
function run(touched) {
  for (let i = 0; period && i < 2; i++) {
    now += period.ms / 2;
    if (touched) touches[0]();
    now += period.ms / 2;
    period.act();
  }
  console.log(loaded);
}
"""


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_a_moving_mean_of_n_steps_takes_n_points():
    script = (resources.files(analysis) / "charts.js").read_text("utf-8")
    script += "const points = [...Array(20).keys()].map((i) => [i, 2 ** i]);"
    script += "console.log(JSON.stringify([5, 10].map((width) => movingMean(points, width))));"
    shown = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True).stdout
    for width, means in zip([5, 10], json.loads(shown), strict=True):
        # a sum of different powers of two says which ones it has
        members = [f"{round(width * y):b}".count("1") for _, y in means[width // 2 : -(width // 2)]]
        assert members == [width] * len(members)
        assert means[7][0] == 7 and int(width * means[7][1]) & 2**7


@pytest.mark.skipif(NODE is None, reason="needs node")
@pytest.mark.parametrize(("seconds", "touched", "loads"), [(30, 0, 2), (30, 1, 0), ("null", 0, 0)])
def test_a_page_is_not_loaded_anew_under_its_reader(seconds, touched, loads):
    script = (resources.files(analysis) / "report.js").read_text("utf-8")
    follow = script[script.index("function follow") : script.index("legend(document")]
    shown = subprocess.run(
        [NODE, "-e", CLOCK + follow + f"follow({seconds}); run({touched});"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert int(shown) == loads


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_only_columns_that_some_response_has_are_offered():
    responses = [{"tokens": ["a", "b"], "entropy": 0.5, "prob_delta": [None, 0.25]}]
    data = {"samples": [{"groups": [{"responses": responses}]}]}
    script = f"const data = {json.dumps(data)};"
    script += (resources.files(analysis) / "tokens.js").read_text("utf-8")
    script += "console.log(JSON.stringify(presentColumns().map((c) => c.name)));"
    shown = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(shown) == ["entropy", "probability, second − first"]


# As much of a document as drawing a response asks for.
DOCUMENT = """
const element = (tag) => ({
  tag, marks: [], children: [], style: {},
  classList: { toggle(name, on) { if (on) this.of.marks.push(name); } },
  append(...all) { this.children.push(...all); },
  get lastElementChild() { return (this.inner ??= made("div")); },
});
const made = (tag) => { const e = element(tag); e.classList.of = e; return e; };
const document = { createElement: made };
const shown = (e) => typeof e === "string" ? e : e.tag === "hr" ? "|"
  : e.textContent + e.marks.map((name) => "." + name).join("");
"""


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_turns_stand_apart_and_what_tools_wrote_is_grey():
    row = {"prompt": "a", "response": "x y 4 z", "tokens": ["x", "y", "4", "z"]}
    row |= {"turn": [0, 0, 1, 2], "origin": [0, 0, 2, 0], "chosen": [0, 1, 0, 0]}
    samples, *_ = shown_samples([(0, 1, [row])], 100)
    data = {"samples": samples, "bounds": {"entropy": 1.0}}
    script = DOCUMENT + f"const data = {json.dumps(data)};"
    script += (resources.files(analysis) / "tokens.js").read_text("utf-8")
    script += "const drawn = responseElement(data.samples[0].groups[0].responses[0]);"
    script += "console.log(JSON.stringify(drawn.lastElementChild.children.map(shown)));"
    script += "console.log(describe(data.samples[0].groups[0].responses[0], 2));"
    script = script.replace("readable(value)", "String(value)")  # of charts.js
    told = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True).stdout
    children, _, described = told.partition("\n")
    wanted = ["x", "y.chosen", "|", "4.told", "|", "z"]
    assert [each for each in json.loads(children) if each != " "] == wanted
    assert "written by a tool" in described
    assert ".tokens .told { color: var(--faint)" in (
        resources.files(analysis) / "page.css"
    ).read_text("utf-8")
