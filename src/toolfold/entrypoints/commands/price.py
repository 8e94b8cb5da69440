"""What tokens cost in dollars."""

from typing import Final

from toolfold.errors import ConfigError

_MILLION: Final = 1_000_000


class Price:
    """What tokens cost, for as many as work like this one."""

    def __init__(self, dollars: float | None, users: int) -> None:
        """Take dollars for a million tokens; None where no price is given.

        Raises:
            ConfigError: One of them cannot be.
        """
        if dollars is not None and not 0 <= dollars < _MILLION:
            raise ConfigError(f"--price takes dollars for a million tokens, not {dollars:g}.")
        if users < 1:
            raise ConfigError(f"--users takes a number of people above 0, not {users}.")
        self.dollars = dollars
        self.users = users

    def of(self, tokens: int) -> float | None:
        """Return what so many tokens of one user cost all of them."""
        if self.dollars is None:
            return None
        return round(tokens * self.users * self.dollars / _MILLION, 2)
