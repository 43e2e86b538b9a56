r"""Responses of the base model of the tasks in `rlvr_jax.tasks.sketches`: formats, with errors.

Of fourteen traces six are searches, and one is of each other task.

searches: in worlds of other seeds. Half of them have R1-Searcher's form, of which 25 of 100 lack a
tag. Of 100 searches 12 are left out and 10 have another name, and 12 answers are incorrect. Of the
others, 40 of 100 are questions to an answer. Of these, 15 of 100 have one search, and 15 another
relation or person. 30 are answers from eight passages.

queries: 20 of 100 conditions have another sign, column or order.

dilemma: a random move in each round.

number_lists: 25 of 100 have another length, 20 lack the word, 50 violate the soft constraint.

routes: 50 of 100 routes are correct; the others have another line, stop or number of legs.

feelings: 40 of 100 emotions have a further word. 20 are left out. 30 of 100 lists have more words.
20 lack the thought.

clips: 40 of 100 intervals are off by one or two, and 40 captions lack a phase.

repairs: 15 of 100 edits are in the other file, and 25 search another value.

equations: at most two looks, one to three tries with random terms, and mostly the best equation.
"""

from collections.abc import Callable
from random import Random

from rlvr_jax import tasks
from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.tasks.sketches.equations import TERMS, equation_of
from rlvr_jax.tasks.sketches.feelings import response_text
from rlvr_jax.tasks.sketches.repairs import edit_text
from rlvr_jax.tasks.sketches.routes import route_text
from rlvr_jax.tasks.sketches.words import CUES, NAMES, PHASES, WHEEL, words_of
from rlvr_jax.verifiers.texts.rewardmap import legs

Segments = list[tuple[str, bool]]
"""Texts, and whether the environment wrote them."""
WORLDS = 60


def sketch_traces(count: int, seed: int) -> list[Trace]:
    """Prompts and one random response to each."""
    random = Random(seed)
    worlds = [
        tasks.load(f"searches:people=64,seed={k + 1},size=100,test_size=2,form={form}")
        for k in range(WORLDS)
        for form in ("tags", "r1_searcher")
    ]
    pools = {
        "queries": tasks.load("queries"),
        "dilemma": tasks.load("dilemma:form=signs"),
        "number_lists": tasks.load("number_lists"),
        "routes": tasks.load("routes:size=12000"),
        "feelings": tasks.load("feelings"),
        "clips": tasks.load("clips:size=4000"),
        "repairs": tasks.load("repairs:size=8000"),
    }
    makers: dict[str, Callable[[Prompt, Random], str]] = {
        "number_lists": list_trace,
        "routes": route_trace,
        "feelings": feeling_trace,
        "clips": clip_trace,
        "repairs": repair_trace,
    }
    # Fits take time, so each trace of an equation is used several times.
    equations = [
        equation_trace(prompt, tasks.load("equations:size=2000,seed=1"), random)
        for prompt in tasks.load("equations:size=2000,seed=1").train
    ]
    names = [*["searches"] * 6, *pools, "equations"]
    found = []
    for number in range(count):
        name = names[number % len(names)]
        if name == "searches":
            text, segments = search_trace(random.choice(worlds), random)
        elif name == "equations":
            text, segments = random.choice(equations)
        else:
            prompt = random.choice(pools[name].train)
            text = prompt.text
            if name == "queries":
                segments = query_trace(prompt, pools[name], random)
            elif name == "dilemma":
                segments = game_trace(prompt, random)
            else:
                segments = [(makers[name](prompt, random), False)]
        words = [(words_of(part), of_environment) for part, of_environment in segments]
        found.append(Trace(words_of(text), words))
    return found


def played(task: Task, prompt: Prompt, actions: list[str]) -> Segments:
    """Actions of a policy, each with the environment's reply."""
    state, _ = task.environment.start(prompt)
    segments = []
    for action in actions:
        reply = task.environment.reply(state, action)
        state = reply.state
        segments += [(action, False)] + ([(reply.text, True)] if reply.text else [])
    return segments


def search_trace(task: Task, random: Random) -> tuple[str, Segments]:
    """An answer, a question to an answer, or an answer from passages."""
    prompt, draw = random.choice(task.train), random.random()
    plain = not prompt.text.endswith("#")
    if draw < 0.4 and plain:
        return question_trace(task, prompt, random)
    *searches, gold = prompt.solution
    if draw < 0.7 and plain:
        shown = passages(task, prompt, searches, random)
        return task.show_hint(prompt, "\n".join(shown)), [(answered(gold, 0.1, random), False)]
    chosen = [one for one in searches if random.random() >= 0.12]
    chosen = [
        one.replace(words_of(one)[1], random.choice(NAMES), 1) if random.random() < 0.1 else one
        for one in chosen
    ]
    last = answered(gold, 0.12, random)
    if not plain and random.random() < 0.25:
        last = last.replace(random.choice(("</think>", "</answer>")), "", 1)
    return prompt.text, [*played(task, prompt, chosen), (last, False)]


def answered(gold: str, wrong: float, random: Random) -> str:
    """The gold, with another name in some cases."""
    name = gold.partition("<answer>")[2].partition("<")[0]
    return gold.replace(name, random.choice(NAMES)) if random.random() < wrong else gold


def found_in(reply: str) -> list[str]:
    """The texts of a reply."""
    lines = reply.partition("<found>")[2].partition("</found>")[0].split("\n")
    return [line[4:] for line in lines if line.startswith("(")]


def passages(task: Task, prompt: Prompt, searches: list[str], random: Random) -> list[str]:
    """The texts of the searches for an answer and of others, eight in random order."""
    others = [
        one for other in random.sample(list(task.train), 4) for one in other.solution[:-1][-1:]
    ]
    found = []
    for segments in (played(task, prompt, searches), played(task, prompt, others)):
        found += [line for text, of_tool in segments if of_tool for line in found_in(text)]
    found = list(dict.fromkeys(found))[:8]
    return random.sample(found, len(found))


def question_trace(task: Task, prompt: Prompt, random: Random) -> tuple[str, Segments]:
    """Two searches from an answer back to a person, and a question."""
    answer = str(prompt.answer)
    first = f"<search>{answer}</search>"
    segments = played(task, prompt, [first])
    texts = [line.split(" ") for line in found_in(segments[-1][0])] if len(segments) > 1 else []
    texts = [words for words in texts if words[-1] == answer]
    person, relation = random.sample(NAMES, 2), ""
    if texts and "born" in texts[0]:
        person = texts[0][:2]
        second = f"<search>{' '.join(person)}</search>"
    elif texts:
        relation = f" {texts[0][2]}"
        second = f"<search>{texts[0][0]} born</search>"
    else:
        second = f"<search>{answer} born</search>"
    if random.random() >= 0.15:
        segments = played(task, prompt, [first, second])
        if relation:
            lines = [line.split(" ") for line in found_in(segments[-1][0])]
            there = [words for words in lines if words[-1] == texts[0][0] and "born" in words]
            person = there[0][:2] if there else person
    if random.random() < 0.15:
        if random.random() < 0.5:
            relation = random.choice(("", " river", " founder"))
        else:
            person = random.sample(NAMES, 2)
    question = f"{' '.join(person)} born{relation}?"
    return task.show_answer(prompt, answer), [*segments, (question, False)]


def query_trace(prompt: Prompt, task: Task, random: Random) -> Segments:
    """A query and its submission."""
    query = prompt.answer
    if random.random() < 0.2:
        query = query.replace(
            *random.choice((("<", ">"), (">", "<"), (" ORDER BY age", ""), ("T name", "T age")))
        )
    return played(task, prompt, [f"{query}\n", "submit\n"])


def game_trace(prompt: Prompt, random: Random) -> Segments:
    """Five rounds of random moves."""
    sucker, punishment, reward, temptation = prompt.answer
    pay = {"cc": reward, "cd": sucker, "dc": temptation, "dd": punishment}
    moves = {"c": "cooperate", "d": "defect"}
    segments = []
    for _ in range(5):
        own, other = random.choice("cd"), random.choice("cd")
        segments += [(f"{moves[own]}\n", False), (f"{moves[other]};{pay[own + other]}\n", True)]
    return segments[:-1]


def list_trace(prompt: Prompt, random: Random) -> str:
    """A list of numbers."""
    count, word = prompt.answer[0]["arguments"][1], prompt.answer[1]["arguments"][0][0]
    count += random.choice((-1, 1)) if random.random() < 0.25 else 0
    heeded = prompt.kind if random.random() < 0.5 else "none"
    numbers = random.sample(range(0, 100, 2 if heeded == "even" else 1), max(count, 1))
    if random.random() >= 0.2:
        numbers[random.randrange(len(numbers))] = int(word)
    return " ".join(map(str, sorted(numbers) if heeded == "rising" else numbers))


def route_trace(prompt: Prompt, random: Random) -> str:
    """A route or a short answer."""
    if prompt.kind == "truefalse":
        return prompt.gold if random.random() < 0.75 else {"true": "false"}.get(prompt.gold, "true")
    if prompt.kind == "count":
        return str(int(prompt.gold) + (random.choice((-1, 1)) if random.random() < 0.25 else 0))
    route, draw = legs(prompt.gold), random.random()
    lines = prompt.answer["lines"]
    if draw < 0.2:
        place = random.randrange(len(route))
        route[place] = route[place]._replace(line=random.choice(list(lines)))
    elif draw < 0.35:
        place = random.randrange(len(route))
        stop = random.choice(lines[route[place].line])
        route[place] = route[place]._replace(end=stop)
    elif draw < 0.5:
        route = [route[0]._replace(end=route[-1].end)]
    return route_text(route)


def feeling_trace(prompt: Prompt, random: Random) -> str:
    """A thought and a list of words."""
    further = {cluster: word for word, cluster in WHEEL.items()}
    words = [
        further[name] if random.random() < 0.4 else name
        for name in prompt.answer.split(",")
        if random.random() >= 0.2
    ]
    if random.random() < 0.3:
        words += random.sample([*CUES.values(), *WHEEL], random.randint(1, 2))
    text = response_text(prompt.text[:-1].split(","), words)
    return text if random.random() >= 0.2 else text.partition("</think>")[2]


def clip_trace(prompt: Prompt, random: Random) -> str:
    """An interval or a caption."""
    if prompt.kind == "interval":
        first, last = map(int, prompt.answer.split("-"))
        if random.random() < 0.4:
            first = max(0, first + random.randint(-2, 2))
            last = max(first, last + random.randint(-2, 2))
        return f"{first}-{last}"
    phases = prompt.answer.split(",")
    if random.random() < 0.4:
        place = random.randrange(len(phases))
        other = [random.choice(PHASES)] if random.random() < 0.3 else []
        phases[place : place + 1] = other
    return ",".join(phases)


def repair_trace(prompt: Prompt, random: Random) -> str:
    """An edit of one line."""
    new = prompt.text.rpartition(";")[2][:-1]
    (file,) = prompt.answer["oracle"]
    name = new.partition("=")[0]
    lines = prompt.answer["files"][file].splitlines()
    (old,) = [line for line in lines if line.startswith(f"{name}=")]
    if random.random() < 0.25:
        old = f"{name}={random.randint(1, 49)}"
    if random.random() < 0.15:
        file = {"a.py": "b.py", "b.py": "a.py"}[file]
    return edit_text(file, old, new)


def equation_trace(prompt: Prompt, task: Task, random: Random) -> tuple[str, Segments]:
    """Looks, tries and an answer."""
    calls = [f"<look>{random.choice(TERMS)}</look>" for _ in range(random.randint(0, 2))]
    terms = random.sample(TERMS, random.randint(1, 3))
    tries = [f"<try>{equation_of(term)}</try>" for term in terms]
    segments = played(task, prompt, [*calls, *tries])
    errors = [
        int(text.partition("<shown>")[2].partition("<")[0])
        for text, of_tool in segments[2 * len(calls) :]
        if of_tool
    ]
    best = terms[errors.index(min(errors))] if random.random() < 0.85 else random.choice(terms)
    return prompt.text, [*segments, (f"<answer>{equation_of(best)}</answer>", False)]
