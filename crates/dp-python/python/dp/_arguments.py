"""Arguments that mean the same everywhere."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from dp.errors import DpError, NotPrivateWarning


def seed(random_state: Any, stacklevel: int) -> int | None:
    """Returns the seed, and warns if there is one."""
    value = random_state
    if isinstance(value, np.random.RandomState):
        value = int(value.randint(2**31))
    elif isinstance(value, np.random.Generator):
        value = int(value.integers(2**31))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**64:
        raise DpError(f"random_state is {value!r}", "usage.value", "random_state", "None, or an int from 0 to 2^64 - 1")
    warnings.warn(
        "random_state makes the noise reproducible, so that anyone who guesses it can subtract the noise: the "
        "certificate claims nothing. Omit it for a model to be published",
        NotPrivateWarning,
        stacklevel=stacklevel,
    )
    return int(value)


def threads(n_jobs: Any) -> int | None:
    """Returns the number of threads; None for all."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise DpError(f"n_jobs is {n_jobs!r}", "usage.value", "n_jobs", "a number of threads, -1 for all, or None")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
