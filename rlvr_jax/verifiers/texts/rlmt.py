"""The part of a response that a reward model reads: the answer, never the thought.

    from after the first <response> up to the next </response>

Without an opening tag, the reward model reads the whole text. In the strict reading, a text that
lacks one of the tags is NULL. An empty answer is also NULL (ours), because a reward model could
give it any score.

Source: https://github.com/princeton-pli/RLMT.
"""

OPEN, CLOSE = "<response>", "</response>"
NULL = "[NULL]"


def visible(response: str, strict: bool = False) -> str:
    """The answer, or `NULL`.

    Args:
      strict: both delimiters must be there.
    """
    _, opened, behind = response.partition(OPEN)
    # White space before the end is dropped only where there is one.
    answer = behind.lstrip() if opened else response
    answer, closed, _ = answer.partition(CLOSE)
    if strict and not (opened and closed):
        return NULL
    if closed:
        answer = answer.rstrip()
    return answer if answer.strip() else NULL
