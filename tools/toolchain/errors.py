"""The one exception of this package that reaches a user."""


class ToolchainError(RuntimeError):
    """Something is missing or failed. `str(error)` is one line: what, where, what to do."""

    def __init__(self, item: str, problem: str, fix: str) -> None:
        self.item = item
        self.problem = problem
        self.fix = fix
        super().__init__(f"{item}: {problem}; {fix}")
