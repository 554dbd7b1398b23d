"""The exceptions and warnings of the package."""

from __future__ import annotations

__all__ = [
    "CuratorWarning",
    "DataError",
    "DpError",
    "NotPrivateWarning",
    "PrivacyError",
    "UselessModelWarning",
    "VerificationError",
]


class DpError(ValueError):
    """An argument, a file or a record is refused.

    ``str(error)`` is the whole message. Its parts are attributes:

    message:
        what is wrong.
    code:
        a stable code, such as ``usage.value``. Those of the program have a page each: ``dp explain CODE``.
    field:
        the argument, with its index in an array, such as ``noise_multiplier[1]``.
    expected:
        what was expected.
    help:
        what to do.
    """

    def __init__(
        self,
        message: str,
        code: str = "usage.value",
        field: str | None = None,
        expected: str | None = None,
        help: str | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.field = field
        self.expected = expected
        self.help = help
        super().__init__(message, code, field, expected, help)

    def __str__(self) -> str:
        expected = f"; expected {self.expected}" if self.expected else ""
        help = f"\n{self.help}" if self.help else ""
        return f"{self.message}{expected}{help}"


class PrivacyError(DpError):
    """No theorem gives the guarantee that was asked for, or it would be broken."""


class VerificationError(DpError):
    """A model file or its guarantee is refused."""


class DataError(DpError):
    """A schema or a record is refused. The message may quote a record: it is for whoever holds the data."""


class NotPrivateWarning(UserWarning):
    """What is computed has no privacy guarantee."""


class UselessModelWarning(UserWarning):
    """Public numbers alone say that the model will be of no use."""


class CuratorWarning(UserWarning):
    """Something about the records, for whoever holds the data alone."""
