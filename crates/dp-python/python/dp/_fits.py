"""The number of fits of an estimator and of its clones.

Every fit spends privacy. A fit counts once its model is released; one that raises released nothing.
"""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dp.errors import PrivacyError

_HELP = (
    "every fit on the same people adds to what is spent, and selection by their data is not free: choose settings by "
    "DPGridSearch, or say allow_refit=True and account for the sum of all fits"
)


class Lineage:
    """The fits of an estimator and of its clones, as far as this process knows."""

    def __init__(self, token: str | None = None, home: str | None = None) -> None:
        self.token = token or uuid.uuid4().hex
        # The process in which it began.
        self.home = home or _process
        self.fits = 0
        self.running = 0
        self.has_clones = False
        # True for a clone from another process, whose fits this process does not know.
        self.is_from_elsewhere = False

    def check(self) -> None:
        """Refuses a further fit.

        Raises:
            PrivacyError: ``privacy.refit``.
        """
        fits = self.fits + self.running
        if fits > 0:
            message = f"this estimator, or one that it was cloned from or to, was fitted already ({fits} in all)"
            raise PrivacyError(message, "privacy.refit", "allow_refit", None, _HELP)
        if self.is_from_elsewhere:
            message = "this estimator is a clone from another process, which may have fitted it already"
            raise PrivacyError(message, "privacy.refit", "allow_refit", None, _HELP)


_lineages: weakref.WeakKeyDictionary[Any, Lineage] = weakref.WeakKeyDictionary()
# Those of pickles, which outlive their estimators.
_pickled: dict[str, Lineage] = {}
_lock = threading.Lock()
_process = uuid.uuid4().hex


def _after_fork() -> None:
    # Another thread may have held the lock, and the other process goes on by itself.
    global _lock, _process
    _lock = threading.Lock()
    _process = uuid.uuid4().hex
    for one in (*_lineages.values(), *_pickled.values()):
        one.is_from_elsewhere = one.has_clones


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def process() -> str:
    """Returns a name of this process, which a fork changes."""
    return _process


def lineage(estimator: Any) -> Lineage:
    """Returns the lineage of an estimator."""
    with _lock:
        return _lineages.setdefault(estimator, Lineage())


def join(copy: Any, estimator: Any) -> None:
    """Makes ``copy`` a clone of ``estimator``."""
    of_both = lineage(estimator)
    with _lock:
        of_both.has_clones = True
        _lineages[copy] = of_both


def state(estimator: Any) -> tuple[str, int, bool, str]:
    """Returns what a pickle keeps of a lineage."""
    kept = lineage(estimator)
    with _lock:
        _pickled[kept.token] = kept
    return kept.token, kept.fits, kept.has_clones, _process


def restore(estimator: Any, kept: tuple[str, int, bool, str]) -> None:
    """Sets the lineage of an estimator from a pickle: the one of this process, if it is known here."""
    token, fits, has_clones, process = kept
    with _lock:
        known = _pickled.setdefault(token, Lineage(token, process))
        # Another pickle of the lineage may know less.
        known.fits = max(known.fits, fits)
        known.has_clones |= has_clones
        # A clone that returns was refused where it was.
        known.is_from_elsewhere |= has_clones and process != _process != known.home
        _lineages[estimator] = known


@contextmanager
def counted(estimator: Any, allowed: bool) -> Iterator[None]:
    """Counts a fit, unless it raises; refuses a second one that is not allowed, also at the same time.

    Raises:
        PrivacyError: ``privacy.refit``.
    """
    of_estimator = lineage(estimator)
    with _lock:
        if not allowed:
            of_estimator.check()
        of_estimator.running += 1
    released = 0
    try:
        yield
        released = 1
    finally:
        with _lock:
            of_estimator.running -= 1
            of_estimator.fits += released
