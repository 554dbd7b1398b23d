"""The package as a whole."""

import doctest
import subprocess
import sys

import numpy as np
import pytest

import dp
from dp import accounting, errors, events


@pytest.mark.parametrize("module", [accounting, errors, events])
def test_examples_of_the_documentation(module):
    with np.printoptions(legacy=False):
        found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_import_brings_numpy_alone():
    code = "import sys, dp; print(sorted({m.split('.')[0] for m in sys.modules} & set(sys.argv[1:])))"
    others = ["sklearn", "scipy", "pandas", "polars", "torch", "joblib"]
    run = subprocess.run([sys.executable, "-c", code, *others], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_errors_have_their_parts_and_survive_pickling():
    import pickle

    error = errors.PrivacyError("no", "privacy.adjacency", "adjacency", "replace-one", "ask for it")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "no; expected replace-one\nask for it"
    assert (copy.code, copy.field, copy.expected, copy.help) == (error.code, error.field, error.expected, error.help)
    assert issubclass(errors.DpError, ValueError)
    assert dp.__version__.count(".") == 2
