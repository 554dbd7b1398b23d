"""Private models of tables, certified privacy accounting, and sound noise.

``dp.accounting`` answers questions about planned releases, which ``dp.events`` describes. :class:`DPLogisticRegression`,
:class:`DPLinearSVC`, :class:`DPRidge` and :class:`DPRanker` are estimators of scikit-learn, which is imported when they are
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dp import accounting, errors, events
from dp._dp import __version__

if TYPE_CHECKING:
    from dp.estimators import DPGridSearch, DPLinearSVC, DPLogisticRegression, DPRanker, DPRidge, load

__all__ = [
    "DPGridSearch",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPRanker",
    "DPRidge",
    "__version__",
    "accounting",
    "errors",
    "events",
    "load",
]

_ESTIMATORS = ("DPGridSearch", "DPLinearSVC", "DPLogisticRegression", "DPRanker", "DPRidge", "load")


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        from dp import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'dp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
