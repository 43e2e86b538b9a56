"""InterCode's shell: what commands do to a folder, and what that is worth."""

import pickle

import pytest

from rlvr_jax.sandbox import Limits
from rlvr_jax.tasks import Prompt
from rlvr_jax.tools.intercode_shell import changes, shell_episodes

FILES = {"a.txt": "one\n", "docs/b.txt": "two\n"}
GOLD = "mkdir new && cp a.txt new/c.txt && cat docs/b.txt"


def played(*actions, gold=GOLD, **options):
    world = shell_episodes(lambda prompt: prompt.answer, lambda prompt: FILES, **options)
    state, told = world.start(Prompt("?", gold))[0], []
    for action in actions:
        reply = world.reply(state, action)
        state = pickle.loads(pickle.dumps(reply.state))
        told.append(reply)
    return told


def test_commands_see_what_those_before_them_did():
    replies = played("cd docs\n", "echo three > c.txt; exit 3\n", "cat c.txt; pwd; ls -a\n")
    assert [reply.text for reply in replies[:2]] == ["", ""]
    assert replies[2].text == "three\n/sandbox/work/docs\n.\n..\nb.txt\nc.txt\n"
    assert all(not reply.done and reply.info == {"actions": 1.0} for reply in replies)


def test_errors_of_commands_are_what_they_print():
    (reply,) = played("cat nothing")
    assert "No such file" in reply.text and not reply.done


@pytest.mark.parametrize(
    ("actions", "reward"),
    [
        (["mkdir new", "cp a.txt new/c.txt", "cat docs/b.txt"], 1.0),
        # One change of another content: .01 + .33 + 0 + .33.
        (["mkdir new", "cp docs/b.txt new/c.txt", "cat docs/b.txt"], 0.67),
        # The change is missing: .01 + .33 (1 - erf 1) + .33 + .33.
        (["cat docs/b.txt"], 0.72),
        # Two more, and no output: .01 + .33 (1 - erf 2) + .33 + 0.
        (["cp a.txt new.txt; cp a.txt more.txt; mkdir new; cp a.txt new/c.txt"], 0.34),
        ([], 0.39),
    ],
)
def test_a_folder_is_paid_for_changes_contents_and_output(actions, reward):
    end = played(*actions, "submit\n")[-1]
    assert end.done and end.reward == pytest.approx(reward)
    assert end.outcome == float(reward == 1)


def test_a_removed_and_a_changed_file_are_changes():
    gold = "rm a.txt; echo more >> docs/b.txt"
    assert played(gold, "submit", gold=gold)[-1].reward == 1
    # What a changed file holds is not compared, as in the authors' code; a name is.
    assert played("rm a.txt; echo > docs/b.txt", "submit", gold=gold)[-1].reward == 1
    before, after = {"a": "1", "b": "2"}, {"b": "3", "c": "4"}
    assert changes(before, after) == {("a", "removed"), ("b", "changed"), ("c", "added")}


def test_a_command_that_passes_a_limit_is_told_and_not_done():
    slow, after, end = played("echo x > y; sleep 9", "ls", "skip", limits=Limits(wall_seconds=1.0))
    assert slow.text == "Error: stopped: the command passed its limit of wall\n"
    assert slow.info == {"errors": 1.0} and after.text == "a.txt\ndocs\n"
    assert end.done and end.reward == end.outcome == 0.0


def test_who_ends_the_shell_that_looks_is_paid_nothing():
    *_, end = played("(sleep 0.1; kill -9 -1) & kill -9 -1", "submit")
    assert end.done and end.outcome == 0 and end.reward < 0.5


def test_nothing_of_the_gold_command_is_to_be_found():
    # All files of a busy machine.
    limits = Limits(wall_seconds=60.0, cpu_seconds=30.0)
    looking = "cat /proc/*/cmdline | tr '\\0' ' '; env; find / -name '*.txt' 2>/dev/null"
    (reply,) = played(looking, limits=limits)
    assert "new/c.txt" not in reply.text and "docs/b.txt" in reply.text


def test_a_gold_command_that_passes_a_limit_gives_no_verdict():
    end = played("ls", "submit", gold="sleep 9", limits=Limits(wall_seconds=1.0))[-1]
    assert end.done and end.lost and end.info == {"gold_errors": 1.0}


def test_the_same_actions_give_the_same_replies():
    actions = ("ls", "wc -l a.txt", "submit")
    one, two = played(*actions), played(*actions)
    assert [reply.text for reply in one] == [reply.text for reply in two]
    assert one[-1].reward == two[-1].reward
