"""Steps with code in them: what is run, what is said, and when an episode is over."""

from dataclasses import replace

import pytest

from rlvr_jax.sandbox import Limits
from rlvr_jax.tools import Lost, code_steps


def told(*steps, **options):
    """The last reply to some steps, one behind the other."""
    world = code_steps(**options)
    state, messages = world.start(None)
    assert not messages
    for step in steps:
        reply = world.reply(state, step)
        state = reply.state
    return reply


def test_code_is_run_at_every_step_and_its_output_is_said_behind_its_end():
    begun = "First.\n<code>\na = 6 * 7\nprint('a', a)<end_of_step>"
    reply = told(begun)
    assert reply.text == "" and not reply.done
    assert reply.info == {"calls": 1.0, "tool_errors": 0.0}
    # What is printed is that of the whole block, once.
    reply = told(begun, "\nprint(a + 1)<end_of_code>")
    assert reply.text == "\n<output>a 42\n43<end_of_output>\n"


def test_a_block_knows_nothing_of_the_one_before():
    reply = told("<code>\na = 1<end_of_code>", "<code>\nprint(a)<end_of_code>")
    assert "NameError: name 'a' is not defined" in reply.text
    assert reply.info["tool_errors"] == 1


def test_a_step_without_code_is_not_run():
    reply = told("Let a be 1.<end_of_step>")
    assert reply.text == "" and reply.info == {"calls": 0.0, "tool_errors": 0.0}
    assert told("a = 1<end_of_code>").text == ""
    # What follows the output of a block is no code.
    assert told("<code>\nprint(1)<end_of_code>", "so 1 / 0<end_of_step>").info["calls"] == 0


WRONG = "<code>\n1 / 0<end_of_code>"


def test_the_second_error_in_a_row_ends_the_episode():
    once = told(WRONG)
    assert once.text == "\n<output>ZeroDivisionError: division by zero<end_of_output>\n"
    twice = told(WRONG, WRONG)
    assert twice.done and twice.outcome == 0 and not once.done
    # A step without one begins again, whether it has code or not.
    for between in ("<code>\nprint(1)<end_of_code>", "So.<end_of_step>"):
        assert not told(WRONG, between, WRONG).done
    assert told(WRONG, errors=1).done and not told(WRONG, WRONG, errors=3).done
    # The lines of a step that failed stay in its block.
    assert told("<code>\n1 / 0<end_of_step>", "a = 1<end_of_step>").done


SHORT = Limits(wall_seconds=1.0, cpu_seconds=1.0)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True: pass", "Error: stopped: the program passed its limit of"),
        ("print('y' * 5_000_000)", "Error: stopped: the program passed its limit of output"),
        ("import os; os.kill(os.getpid(), 9)", ""),
        ("raise SystemExit(3)", ""),
        ("open('/etc/passwd').read()", "Error"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_what_goes_wrong_is_an_error_in_words(code, said):
    reply = told(f"<code>\n{code}<end_of_code>", limits=SHORT)
    assert reply.info == {"calls": 1.0, "tool_errors": 1.0}
    assert said in reply.text and len(reply.text) < 2100 and not reply.lost


def test_what_is_printed_is_no_step():
    reply = told("<code>\nprint('<end' + '_of_code><' + 'code>', 'x' * 3000)<end_of_code>")
    assert reply.text.startswith("\n<output>< end_of_code>< code> xxx")
    assert "(2000 of 3" in reply.text


def test_a_lost_sandbox_is_no_error():
    def gone(code):
        raise Lost("gone")

    world = replace(code_steps(), run=gone)
    reply = world.reply(("", 1), WRONG)
    assert reply.lost and reply.done and reply.outcome is None
    assert reply.info == {"calls": 1.0, "tool_errors": 0.0}


def test_a_response_that_ends_in_the_middle_of_a_step_is_not_answered():
    assert told("<code>\nprint(1)").text is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"errors": 0}, "errors must be at least 1, got 0"),
        ({"step": " "}, "step must be a text, got ' '"),
        ({"end": ""}, "end must be a text, got ''"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=f"code_steps: {message}"):
        code_steps(**options)
