"""The conventions of scikit-learn: its own checks, at a small and at a large epsilon, and by the defaults that refuse."""

import warnings

import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from dp import DPLinearSVC, DPLogisticRegression, DPRidge
from dp.errors import CuratorWarning, NotPrivateWarning, UselessModelWarning

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::dp.errors.{warning.__name__}")
    for warning in (CuratorWarning, NotPrivateWarning, UselessModelWarning)
] + [pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")]


def classifier(kind, epsilon):
    return kind(epsilon=epsilon, delta=1e-6, bounds="from-data", classes="from-y", allow_refit=True, n_jobs=1)


def ridge(epsilon):
    return DPRidge(epsilon=epsilon, delta=1e-6, bounds="from-data", y_bounds="from-y", allow_refit=True, n_jobs=1)


@parametrize_with_checks(
    [
        maker
        for epsilon in (1.0, 1e6)
        for maker in (classifier(DPLogisticRegression, epsilon), classifier(DPLinearSVC, epsilon), ridge(epsilon))
    ]
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


# By the defaults, what is not known is refused. These checks want another message than ours.
OWN_MESSAGE = {
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_nan_inf",
    "check_positive_only_tag_during_fit",
    "check_regressors_no_decision_function",
}


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC, DPRidge])
def test_by_defaults_only_what_fits_fails_because_it_is_refused(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(kind(), on_fail=None, on_skip=None)
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert {"check_no_attributes_set_in_init", "check_parameters_default_constructible", "check_set_params"} <= passed
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    refused = {name for name, message in failed.items() if "epsilon is missing" in message}
    assert len(refused) >= 20
    assert set(failed) - refused <= OWN_MESSAGE, failed
