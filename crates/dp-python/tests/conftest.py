"""What the tests share."""

import os
import shutil
import subprocess

import numpy as np
import pytest


@pytest.fixture(scope="session")
def program():
    """Runs the program `dp`; skips where there is none."""
    found = os.environ.get("DP_PROGRAM") or shutil.which("dp")
    if not found:
        pytest.skip("there is no program `dp` to compare with: set DP_PROGRAM")

    def run(*arguments, **options):
        return subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, check=True, **options).stdout

    return run


@pytest.fixture(scope="session")
def people():
    """4,000 made-up people: numbers, texts, Booleans, and whether they buy."""
    rng = np.random.default_rng(7)
    n = 4000
    age = rng.integers(18, 90, n)
    income = np.round(np.minimum(rng.lognormal(10, 0.7, n), 190_000), 2)
    ward = rng.choice(["north", "south", "west"], n)
    member = rng.random(n) < 0.4
    score = (age - 50) / 15 + (ward == "south") + 0.8 * member - (income > 30_000)
    buys = np.where(score + rng.logistic(size=n) > 0, "yes", "no")
    return {"age": age, "income": income, "ward": ward, "member": member, "buys": buys, "score": score}


BOUNDS = {"age": (18, 90), "income": (0.0, 200_000.0), "ward": ["north", "south", "west"]}

SCHEMA = """
missing = ["", "NA"]
[label]
column = "buys"
positive = "yes"
negative = "no"
[columns.age]
type = "numeric"
min = 18
max = 90
[columns.income]
type = "numeric"
min = 0
max = 200000
[columns.ward]
type = "categorical"
categories = ["north", "south", "west"]
[columns.member]
type = "indicator"
"""
