"""The columns of arrays and frames, taken a few thousand rows at a time.

A column is a function of two row numbers that returns what its cells are and the cells: ``("number", float64)``,
``("boolean", bool)``, ``("time", (int64, units in a second))`` or ``("object", an iterable)``. Missing values are NaN, the
missing time of numpy, None, and the markers of pandas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dp.errors import DataError

Kind = Literal["number", "boolean", "time", "object"]
Chunk = Callable[[int, int], tuple[Kind, Any]]

_EXACT = 2**53
_IN_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Column:
    """A named column of ``rows`` cells."""

    name: str
    kind: Kind
    rows: int
    chunk: Chunk
    values: Any
    """What the column was made of."""

    def named(self, name: str) -> Column:
        """Returns the column with another name."""
        return replace(self, name=name)

    def blocks(self, rows: int = 1 << 16) -> Any:
        """Yields the cells, some rows at a time."""
        for start in range(0, self.rows, rows):
            yield self.chunk(start, min(start + rows, self.rows))[1]


def _numbers(values: np.ndarray[Any, Any]) -> tuple[Kind, Any]:
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        if low < -_EXACT or high > _EXACT:
            # Doubles would round them.
            return "object", values.tolist()
    return "number", np.ascontiguousarray(values, dtype=np.float64)


def of_array(name: str, values: np.ndarray[Any, Any]) -> Column:
    """Returns the column of a one-dimensional array."""
    kind = values.dtype.kind
    rows = len(values)
    if kind in "iuf":
        return Column(name, "number", rows, lambda start, stop: _numbers(values[start:stop]), values)
    if kind == "b":
        return Column(name, "boolean", rows, lambda start, stop: ("boolean", np.ascontiguousarray(values[start:stop])), values)
    if kind == "M":

        def times(start: int, stop: int) -> tuple[Kind, Any]:
            part = values[start:stop]
            unit = np.datetime_data(part.dtype)
            if unit[0] not in _IN_SECOND or unit[1] != 1:
                part = part.astype("datetime64[us]")
            in_second = _IN_SECOND[np.datetime_data(part.dtype)[0]]
            return "time", (np.ascontiguousarray(part).view(np.int64), in_second)

        return Column(name, "time", rows, times, values)
    if kind in "OUT":
        return Column(name, "object", rows, lambda start, stop: ("object", values[start:stop].tolist()), values)
    raise DataError(
        f"column `{name}` is of type {values.dtype}",
        "table.type",
        name,
        "numbers, texts, Booleans, dates or missing values",
    )


def _of_pandas(name: str, series: Any) -> Column:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind != "O":
        return of_array(name, series.to_numpy())

    def objects(start: int, stop: int) -> tuple[Kind, Any]:
        return "object", series.iloc[start:stop].to_numpy(dtype=object)

    kinds: dict[str, Kind] = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "time"}
    kind = kinds.get(getattr(series.dtype, "kind", "O"), "object")
    return Column(name, kind, len(series), objects, series)


def _of_polars(name: str, series: Any) -> Column:
    dtype = series.dtype
    # numpy has no integers of 128 bits.
    is_number = bool(dtype.is_integer() or dtype.is_float()) and "128" not in str(dtype)

    def cells(start: int, stop: int) -> tuple[Kind, Any]:
        part = series.slice(start, stop - start)
        if is_number and (dtype.is_float() or part.null_count() == 0):
            return _numbers(part.to_numpy())
        return "object", part.to_list()

    kind: Kind = "number" if is_number else "object"
    if str(dtype) == "Boolean":
        kind = "boolean"
    if dtype.is_temporal():
        kind = "time"
    return Column(name, kind, len(series), cells, series)


def library(values: Any) -> str:
    """Returns the package that a value is from."""
    return str(type(values).__module__.split(".")[0])


def is_frame(values: Any) -> bool:
    """Returns whether a value is a frame of pandas or polars."""
    return library(values) in ("pandas", "polars") and type(values).__name__ == "DataFrame"


def selected(frame: Any, names: Any) -> Any:
    """Returns these columns of a frame, if it has all of them; otherwise the frame."""
    names = list(names)
    there = [str(name) for name in frame.columns]
    if not names or any(there.count(name) != 1 for name in names):
        return frame
    return frame[[frame.columns[there.index(name)] for name in names]]


def check_names(frame: Any) -> list[str]:
    """Returns the names of the columns of a frame; refuses one that occurs twice.

    Raises:
        DataError: ``csv.duplicate_column``.
    """
    names = [str(name) for name in frame.columns]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"two columns are named `{twice}`", "csv.duplicate_column", twice)
    return names


def of_frame(frame: Any) -> list[Column]:
    """Returns the columns of a frame."""
    names = check_names(frame)
    if library(frame) == "pandas":
        return [_of_pandas(name, frame.iloc[:, i]) for i, name in enumerate(names)]
    return [_of_polars(name, frame.get_column(name)) for name in names]


def of_matrix(matrix: np.ndarray[Any, Any], names: list[str]) -> list[Column]:
    """Returns the columns of a two-dimensional array."""
    return [of_array(name, matrix[:, i]) for i, name in enumerate(names)]
