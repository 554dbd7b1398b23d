"""Schemas from the arguments of estimators: bounds of columns, classes or a range of the label."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dp._columns import Column
from dp.errors import DataError, DpError

_MOST_CATEGORIES = 1000

# The bounds of a Boolean column, which needs none.
_OF_ITSELF = object()


def text_of(value: Any) -> str:
    """Returns a class or a category as the text of a table."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) <= 2**53 else repr(number)
    return str(value)


def quoted(text: str) -> str:
    """Returns a string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _strings(texts: Iterable[str]) -> str:
    return "[" + ", ".join(quoted(text) for text in texts) + "]"


def shown(value: Any) -> str:
    """Returns a value as text, shortened; an int may have more digits than Python prints."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of very many digits"
    return text if len(text) <= 100 else f"{text[:100]}..."


def number(value: Any, where: str) -> float:
    """Returns a real number of any type as a double.

    Raises:
        DpError: ``usage.value`` for something else, and what is not finite.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DpError(f"{where} is {shown(value)}", "usage.value", where, "a number")
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise DpError(f"{where} is {shown(value)}", "usage.value", where, "a finite number")
    return real


def range_of(value: Any, where: str) -> tuple[float, float]:
    """Returns a range: ``(min, max)``."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise DpError(f"{where} is {value!r}", "usage.value", where, "a range (min, max)") from None
    low, high = number(low, f"{where}[0]"), number(high, f"{where}[1]")
    if low > high:
        raise DpError(f"{where} is ({low!r}, {high!r})", "bounds.order", where, "a minimum that is at most the maximum")
    return low, high


def observed_range(column: Column) -> tuple[float, float]:
    """Returns the range of the numbers of a column."""
    low, high = math.inf, -math.inf
    for cells in column.blocks():
        if isinstance(cells, np.ndarray) and cells.dtype == np.float64:
            values = cells
        else:
            values = np.array([math.nan if is_missing(cell) else float(cell) for cell in cells], dtype=np.float64)
        values = values[~np.isnan(values)]
        if values.size:
            low, high = min(low, float(values.min())), max(high, float(values.max()))
    if not (math.isfinite(low) and math.isfinite(high)):
        what = "infinity (inf)" if low < math.inf else "no number"
        raise DataError(f"column `{column.name}` holds {what}", "bounds.missing", column.name, "finite numbers")
    return low, high


def is_missing(cell: Any) -> bool:
    """Returns whether a cell or a label is missing."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell))


def observed_categories(column: Column) -> list[str]:
    """Returns the texts that a column holds, sorted."""
    found: set[str] = set()
    for cells in column.blocks():
        found.update(text_of(cell) for cell in cells if not is_missing(cell))
        if len(found) > _MOST_CATEGORIES:
            raise DataError(
                f"column `{column.name}` holds more than {_MOST_CATEGORIES} different texts",
                "schema.columns",
                column.name,
                "categories",
                "leave it out by bounds={..., " + repr(column.name) + ": None}",
            )
    if not found:
        raise DataError(f"column `{column.name}` holds no value", "schema.columns", column.name, "categories")
    return sorted(found)


def _example(columns: Sequence[Column], names_are_given: bool) -> str:
    """Returns the line to write for bounds that are missing."""
    columns = [column for column in columns if column.kind != "boolean"]
    if not names_are_given and all(column.kind == "number" for column in columns):
        return "bounds=(0, 100)  # or one (min, max) for each column"
    shown = [f"{column.name!r}: " + ("(0, 100)" if column.kind == "number" else "['A', 'B']") for column in columns[:3]]
    return "bounds={" + ", ".join(shown) + (", ...}" if len(columns) > 3 else "}")


def _each(bounds: Any, columns: Sequence[Column]) -> list[Any]:
    """Returns the bounds of each column."""
    if isinstance(bounds, Mapping):
        names = [column.name for column in columns]
        unknown = [name for name in bounds if name not in names]
        if unknown:
            raise DpError(
                f"bounds names {unknown[0]!r}, which is no column", "schema.unknown_column", "bounds", f"one of {names}"
            )
        missing = [column for column in columns if column.name not in bounds and column.kind != "boolean"]
        if missing:
            raise DpError(
                f"column `{missing[0].name}` has no bounds",
                "bounds.missing",
                f"bounds[{missing[0].name!r}]",
                "(min, max) that hold for everyone, a list of categories, or None to leave it out",
                f"add {_example(missing, True)[8:-1]}",
            )
        return [bounds.get(column.name, _OF_ITSELF) for column in columns]
    try:
        pair = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pair = np.empty(0)
    width = len(columns)
    if pair.shape == (2,):
        return [(float(pair[0]), float(pair[1]))] * width
    if pair.shape == (width, 2):
        return [(float(low), float(high)) for low, high in pair]
    raise DpError(
        f"bounds is of shape {pair.shape}" if pair.size else f"bounds is {shown(bounds)}",
        "usage.value",
        "bounds",
        f"(min, max), {width} of them, a dictionary by column, or 'from-data'",
    )


def columns_section(columns: Sequence[Column], bounds: Any, missing: str, names_are_given: bool) -> tuple[str, list[str]]:
    """Returns the columns of a schema, and the names of those that were taken from the data."""
    if missing not in ("error", "neutral"):
        raise DpError(f"missing is {missing!r}", "usage.value", "missing", "'error' or 'neutral'")
    if bounds is None and any(column.kind != "boolean" for column in columns):
        raise DpError(
            "the ranges and categories of the columns are not known",
            "bounds.missing",
            "bounds",
            "ranges and categories that hold for everyone, known without looking at this data",
            f"add {_example(columns, names_are_given)}; or bounds='from-data', which the certificate states as an assumption",
        )
    from_data = isinstance(bounds, str) and bounds == "from-data"
    if isinstance(bounds, str) and not from_data:
        raise DpError(f"bounds is {bounds!r}", "usage.value", "bounds", "'from-data', or ranges")
    each = [_OF_ITSELF] * len(columns) if from_data or bounds is None else _each(bounds, columns)
    text, assumed = [], []
    for column, bound in zip(columns, each):
        lines = [f"[columns.{quoted(column.name)}]"]
        reviewed = True
        if bound is None:
            lines.append("type = 'drop'")
        elif column.kind == "boolean":
            if not (bound is _OF_ITSELF or isinstance(bound, tuple)):
                raise DpError(
                    f"the bounds of column `{column.name}`, which holds Booleans, are {bound!r}",
                    "usage.value",
                    f"bounds[{column.name!r}]",
                    "no bounds, or None to leave it out",
                )
            lines.append("type = 'indicator'")
        elif from_data and column.kind == "number":
            low, high = observed_range(column)
            lines.append(f"type = 'numeric'\nmin = {low!r}\nmax = {high!r}")
            reviewed = False
        elif from_data and column.kind == "object":
            lines.append(f"type = 'categorical'\ncategories = {_strings(observed_categories(column))}")
            reviewed = False
        elif from_data:
            raise DpError(
                f"column `{column.name}` holds times",
                "table.type",
                column.name,
                "numbers or categories",
                "give a schema, in which a column of type 'date' has a range",
            )
        elif isinstance(bound, tuple) and len(bound) == 2 and not any(isinstance(end, str) for end in bound):
            low, high = range_of(bound, f"bounds[{column.name!r}]")
            lines.append(f"type = 'numeric'\nmin = {low!r}\nmax = {high!r}")
        elif isinstance(bound, str) or not isinstance(bound, Iterable):
            raise DpError(
                f"the bounds of column `{column.name}` are {bound!r}",
                "usage.value",
                f"bounds[{column.name!r}]",
                "a tuple (min, max), a list of categories, or None to leave it out",
            )
        else:
            lines.append(f"type = 'categorical'\ncategories = {_strings(text_of(value) for value in bound)}")
        if lines[-1] != "type = 'drop'":
            lines.append(f"on_missing = {quoted(missing)}")
        if not reviewed:
            lines.append("reviewed = false")
            assumed.append(column.name)
        text.append("\n".join(lines))
    return "\n".join(text), assumed


def classes_section(column: str, classes: Sequence[Any], reviewed: bool) -> str:
    """Returns the label of a schema: of two classes the second is the positive one."""
    texts = [text_of(value) for value in classes]
    if len(set(texts)) < len(texts):
        raise DpError(f"two classes have the same text: {texts}", "schema.label", "classes", "classes that differ")
    lines = ["[label]", f"column = {quoted(column)}"]
    if len(texts) == 2:
        lines += [f"negative = {quoted(texts[0])}", f"positive = {quoted(texts[1])}"]
    else:
        lines.append(f"classes = {_strings(texts)}")
    return "\n".join(lines + ([] if reviewed else ["reviewed = false"]))


def range_section(column: str, bounds: tuple[float, float], reviewed: bool) -> str:
    """Returns the label of a schema that is a number."""
    low, high = bounds
    lines = ["[label]", f"column = {quoted(column)}", "type = 'numeric'", f"min = {low!r}", f"max = {high!r}"]
    return "\n".join(lines + ([] if reviewed else ["reviewed = false"]))
