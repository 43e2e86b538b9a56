"""Judges of a user's own, named on command lines of tests."""


def longer(messages):
    """One that likes words: a tenth for each, none for answers without any."""
    words = messages[-1]["content"].split()[:-1]
    return f"so many\n{len(words)}" if words else "nothing there"


def broken(messages):
    """One that fails."""
    raise OSError("gone")


def fair(messages):
    """Points of two criteria."""
    assert "long (0 to 2)" in messages[-1]["content"]
    return "long: 1.5\nkind: 1"


def kept(messages):
    """Keeps what has an even number in it."""
    answer = messages[-1]["content"].partition("Answer:\n")[2].partition("\n")[0]
    return "YES" if any(word in "02468" for word in answer.split()) else "NO"


def thirds(messages):
    """Accepts every third length."""
    answer = messages[-1]["content"].partition("Answer:\n")[2].partition("\n\n")[0]
    return "10" if len(answer) % 3 == 0 else "0"


def wordier(messages):
    """Prefers the answer of more words, a point for each."""
    one, two = (part.splitlines()[0].split() for part in messages[-1]["content"].split("|")[1:3])
    return f"so\n{min(10, 1 + len(one))}, {min(10, 1 + len(two))}"


def approving(messages):
    """A critic that finds every candidate correct."""
    return "Fine. Conclusion: right [END]"
