"""Verilog: what is read of a text, what is refused, and both engines on the cases and beyond."""

from pathlib import Path

import check_cases
import pytest
from case_adapters.verilog_verifier import verdict
from own_cpu import own_cpu

from rlvr_jax.verifiers.programs import verilog_verifier
from rlvr_jax.verifiers.programs.verilog_text import modules, plain, refused, renamed, top_module

SECONDS_OF_CPU = 0.5  # a quadratic reader takes several on 50,000 characters
CASES = check_cases.rows(Path(__file__).parents[2] / "cases", "verilog_verifier")
AND = "module g(input a, input b, output y); assign y = a & b; endmodule"
SEQUENTIAL = {
    "counter": (
        "module g(input clk, input rst, output reg [3:0] q);"
        " always @(posedge clk) if (rst) q <= 0; else q <= q + 1; endmodule",
        "module m(input clk, input rst, output [3:0] q); reg [3:0] s; assign q = s;"
        " always @(posedge clk) s <= rst ? 4'd0 : s + 4'd1; endmodule",
        1,
    ),
    "counter_wraps_early": (
        "module g(input clk, input rst, output reg [2:0] q);"
        " always @(posedge clk) if (rst) q <= 0; else q <= q + 1; endmodule",
        "module m(input clk, input rst, output reg [2:0] q);"
        " always @(posedge clk) if (rst || q == 6) q <= 0; else q <= q + 1; endmodule",
        0,
    ),
    "latch_for_gates": (
        AND,
        "module m(input a, input b, output reg y); always @* if (a) y = b; endmodule",
        0,
    ),
    "loop_without_delay": (
        AND,
        "module m(input a, input b, output y); reg r; assign y = r;"
        " always @* begin r = 0; while (1) r = ~r; end endmodule",
        0,
    ),
    "reads_the_gold": (
        AND,
        "module m(input a, input b, output y); assign y = g.y; endmodule",
        0,
    ),
}


@pytest.fixture(params=verilog_verifier.ENGINES)
def engine(request):
    if request.param not in verilog_verifier.installed():
        pytest.skip(f"{request.param} is not installed")
    return request.param


def test_each_engine_says_what_the_cases_say(engine):
    for row in CASES:
        assert verdict(row["input"], row["gold"], (engine,)) == row["verdict"], row["input"]


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_registers_and_hostile_modules_are_told_apart(name, engine):
    gold, answer, wanted = SEQUENTIAL[name]
    found = verilog_verifier.check(answer, gold, engines=(engine,), seconds=3.0)
    assert found.outcome == wanted, found


def test_one_of_several_golds_suffices(engine):
    other = AND.replace("&", "|")
    assert verilog_verifier.check(AND, [other, AND], engines=(engine,)).outcome == 1
    assert verilog_verifier.check(AND, [other, other], engines=(engine,)).outcome == 0


def test_a_gold_that_no_tool_reads_is_no_verdict(engine):
    broken = AND.replace("a & b", "a &")
    assert verilog_verifier.check(AND, broken, engines=(engine,)).outcome is None


@pytest.mark.parametrize(
    "body",
    (
        'initial $fopen("x");',
        'initial $readmemh("/etc/passwd", m);',
        "initial \\$display (1);",
        "`define x 1",
        "`ifdef YOSYS",
        'import "DPI-C" function int getpid();',
        '/* */ initial $system("ls");',
        "initial $root.x = 1;",
    ),
)
def test_what_calls_the_outside_is_refused_without_a_tool(body):
    code = f"module m(input a, input b, output y); {body} endmodule"
    assert verilog_verifier.check(code, AND, engines=()).outcome == 0


@pytest.mark.parametrize(
    "code",
    (
        "// $display\n" + AND,
        "/* `include */" + AND,
        "`timescale 1ns/1ps\n" + AND,
        "module m(output [3:0] y); assign y = $clog2(9) + $signed(1); endmodule",
        "module m(input a$b, output y); assign y = a$b; endmodule",
        "module m(input a); always @(*) x = (* keep *) a; endmodule",
    ),
)
def test_what_stays_inside_is_not_refused(code):
    assert not refused(plain(code))


def test_comments_end_where_verilog_ends_them_and_texts_keep_theirs():
    assert plain('a // b\nc "// d" /* e */ f').split() == ["a", "c", '"//', 'd"', "f"]
    assert "always @(*)" in plain("always @(*) (* full_case *) x")
    assert "full_case" not in plain("always @(*) (* full_case *) x")


@pytest.mark.parametrize(
    ("header", "wanted"),
    (
        ("m(input a, b, output [3:0] y);", {("a", "input", ""), ("b", "input", "")}),
        ("m(input wire signed [ 3 : 0 ] a, output reg [3:0] y);", {("a", "input", "[3:0]")}),
        (
            "m #(parameter W = (2 + 2)) (input [W-1:0] a, output [3:0] y);",
            {("a", "input", "[W-1:0]")},
        ),
        ("m(a, y); input [1:0] a; output [3:0] y;", {("a", "input", "[1:0]")}),
        (
            "m(a, y); input a; output [3:0] y; function f; input z; f = z; endfunction",
            {("a", "input", "")},
        ),
    ),
)
def test_ports_are_read_in_both_styles(header, wanted):
    (module,) = modules(f"module {header} endmodule")
    assert module.ports == {*wanted, ("y", "output", "[3:0]")}


def test_the_top_is_the_one_module_that_no_other_instantiates():
    half = "module h(input a, output y); assign y = a; endmodule"
    used = "module m(input a, output y); h #(.x(1)) u (a, y); endmodule"
    assert top_module(modules(f"{half} {used}")).name == "m"
    assert top_module(modules(f"{used} {half}")).name == "m"
    assert top_module(modules(f"{half} {AND}")) is None
    assert top_module(modules(f"{half} {half}")) is None
    assert top_module([]) is None


def test_modules_are_renamed_where_they_are_declared_and_used_and_nowhere_else():
    source = (
        "module y(input a, output y); h y_1 (a, y); endmodule module h(input a, output h);"
        " endmodule"
    )
    assert renamed(source, "_x") == (
        "module y_x(input a, output y); h_x y_1 (a, y); endmodule module h_x(input a, output h);"
        " endmodule"
    )


def test_tags_can_be_left_out_where_the_reading_says_so():
    fence = f"```verilog\n{AND}\n```"
    assert verilog_verifier.extract(fence) is None
    assert verilog_verifier.extract(fence, tags=False) == AND
    assert verilog_verifier.extract(f"<think>{fence}", tags=False) is None


@pytest.mark.parametrize(
    "code",
    (
        "(*" * 24_000,
        '"' + '\\"' * 24_000,
        "module m(" * 5_000,
        "module m(a); " + "function " * 5_000 + "endmodule",
        "module m(a); " + "input " * 8_000 + "endmodule",
        "".join(f"module m{number};endmodule " for number in range(1_800)),
        "module a; endmodule module m; " + "a a[" * 9_000 + " endmodule",
    ),
)
def test_texts_are_read_in_linear_time(code):
    with own_cpu() as spent:
        text = plain(code)
        refused(text)
        if top_module(modules(text)):  # without one nothing is renamed
            renamed(text, "_x")
    assert spent[0] < SECONDS_OF_CPU
