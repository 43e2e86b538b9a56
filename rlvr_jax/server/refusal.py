"""The refusal of a request: a sentence for the client, and the HTTP status of its reply."""


class Refused(ValueError):
    """A request that this server does not execute.

    Fields:
      status: HTTP status, if the request has no future that could carry the sentence.
    """

    def __init__(self, sentence: str, status: int = 400):
        super().__init__(sentence)
        self.status = status
