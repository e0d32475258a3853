"""The one exception that reaches a user from this package."""


class ConfigError(ValueError):
    """A setting that cannot be served. `str(error)` is one line: which key, what is wrong, what to do."""

    def __init__(self, key: str, problem: str, fix: str = "") -> None:
        self.key = key
        self.problem = problem
        self.fix = fix
        super().__init__(f"{key}: {problem}" + (f"; {fix}" if fix else ""))
