"""Private models of tables, certified privacy accounting, and sound noise.

``dp.accounting`` answers questions about planned releases, which ``dp.events`` describes. :class:`DPLogisticRegression`,
:class:`DPLinearSVC`, :class:`DPRidge` and :class:`DPRanker` are estimators of scikit-learn, which is imported when they are
used. ``dp.steps`` gives any training sound noise and a certificate, and ``dp.torch`` that of a network with Opacus.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dp import accounting, errors, events, steps
from dp._dp import __version__

if TYPE_CHECKING:
    from dp.files import load
    from dp.linear import DPLinearSVC, DPLogisticRegression, DPRidge
    from dp.ranker import DPRanker
    from dp.search import DPGridSearch

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
    "steps",
]

_MODULES = {
    "DPGridSearch": "dp.search",
    "DPLinearSVC": "dp.linear",
    "DPLogisticRegression": "dp.linear",
    "DPRanker": "dp.ranker",
    "DPRidge": "dp.linear",
    "load": "dp.files",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'dp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
