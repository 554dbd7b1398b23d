"""Every block of Python in the documentation runs."""

import doctest
import os
import re
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

FOLDER = Path(__file__).parents[1]
PAGES = [FOLDER / "README.md", *sorted((FOLDER / "docs").glob("*.md")), FOLDER.parents[1] / "README.md"]

PEOPLE = pandas.DataFrame({"age": [20 + i % 60 for i in range(1000)], "ward": ["A", "B"] * 500})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_every_block_of_a_page_runs(page, tmp_path, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    # The page of the workspace has no data of its own.
    names = {"people": PEOPLE, "ill": ["no", "yes"] * 500} if page == PAGES[-1] else {}
    before, left_out = os.getcwd(), 0
    os.chdir(tmp_path)
    try:
        for block in blocks:
            if "import torch" in block and find_spec("opacus") is None:
                left_out += 1
                continue
            with warnings.catch_warnings():
                if "import torch" in block:
                    # Those of torch and Opacus.
                    warnings.simplefilter("ignore")
                exec(compile(block, str(page), "exec"), names)
    finally:
        os.chdir(before)
    if left_out:
        pytest.skip(f"ran all blocks but {left_out}, which needs torch and Opacus")


def test_the_line_to_write_is_the_one_of_the_page(capsys):
    page = (FOLDER / "docs" / "scikit-learn.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shown = re.search(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names = {}
    exec(blocks[0], names)
    capsys.readouterr()
    exec(blocks[1], names)
    assert capsys.readouterr().out == shown[1]


@pytest.mark.parametrize("name", ["dp.linear", "dp.ranker", "dp.search", "dp.steps"])
def test_examples_of_estimators(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0 and found.failed == 0
