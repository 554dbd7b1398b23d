"""Sound noise, secret batches and a certificate for a training whose gradients are computed elsewhere.

:class:`Plan` works on arrays of numpy, so that any framework can use it; :mod:`dp.torch` connects it with Opacus.

>>> import numpy as np
>>> from dp.steps import Plan
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1, 1, (2000, 3))
>>> y = np.sign(X @ [1.0, -1.0, 0.0])
>>> plan = Plan(len(X), batch_size=200, epochs=2, max_grad_norm=1.0, epsilon=2.0, delta=1e-6)
>>> weights = np.zeros(3)
>>> while plan.steps_left > 0:
...     for batch in plan.batches():
...         gradients = -(y[batch] / (1 + np.exp(y[batch] * (X[batch] @ weights))))[:, None] * X[batch]
...         clipped = np.minimum(1.0, 1.0 / (np.linalg.norm(gradients, axis=1) + 1e-6))
...         weights -= plan.add(clipped @ gradients) / plan.mean_batch_size
>>> release = plan.finish({"weights": weights}, clipped_by="example 1.0")
>>> release.verify({"weights": weights}) == (release.epsilon, 1e-6)
True
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp import _arguments, _dp, _fits
from dp._output import write_new
from dp._turns import Turns
from dp.errors import DpError, PrivacyError, VerificationError

__all__ = ["Plan", "Release", "load", "weights_sha256"]

_LONGEST_NAME = 100


class Plan:
    """A training with noise in every step, which is paid for from the start.

    ::

        batch  each record by itself with probability 1 - exp(-batch_size / records)
        sum    of the gradients of its records, each clipped to norm max_grad_norm: computed by the caller
        noisy  sum + noise of standard deviation std_dev, drawn exactly on a grid of floating-point numbers

    Args:
        records: number of records, which is public.
        batch_size: mean size of a batch, at most 16,384; ``mean_batch_size`` is the exact one, slightly less.
        steps: number of steps; or
        epochs: number of passes over ``records / batch_size`` batches, rounded up.
        max_grad_norm: the norm to which the caller clips the gradient of each record.
        epsilon: epsilon of the guarantee, for which the least noise is computed; or
        noise_multiplier: standard deviation of the noise, divided by the sensitivity.
        delta: delta of the guarantee, far below 1 / records.
        adjacency: ``"add-remove"`` (a record is replaced by none) or ``"replace-one"``.
        random_state: None draws from the system's generator. An int makes noise and batches reproducible, and the certificate
            claims nothing.
        n_jobs: number of threads that draw noise; all by default. The noise does not depend on it.

    The sensitivity is ``max_grad_norm`` and a margin of 1% for the rounding of sums in single precision. What the caller does
    is taken on trust, and the certificate says so: clipping, and one step on each batch with the records of that batch.

    Raises:
        DpError: for arguments that are not usable; PrivacyError for a guarantee that is not possible.
    """

    def __init__(
        self,
        records: int,
        *,
        batch_size: int,
        max_grad_norm: float,
        delta: float,
        epsilon: float | None = None,
        noise_multiplier: float | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        adjacency: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        _one_of("steps", steps, "epochs", epochs)
        _one_of("epsilon", epsilon, "noise_multiplier", noise_multiplier)
        for name, value in (("records", records), ("batch_size", batch_size), ("steps", steps), ("epochs", epochs)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
                raise DpError(f"{name} is {value!r}", "usage.value", name, "a whole number of at least 1")
        if delta == 0:
            raise DpError("Gaussian noise needs delta > 0", "usage.value", "delta", "a number above 0, far below 1 / records")
        self.records, self.batch_size = int(records), int(batch_size)
        self.steps_per_epoch = -(-self.records // self.batch_size)
        self.max_grad_norm = max_grad_norm
        self.delta = delta
        options = {
            "records": self.records,
            "batch_size": self.batch_size,
            "steps": int(steps) if steps is not None else int(epochs or 0) * self.steps_per_epoch,
            "max_grad_norm": max_grad_norm,
            "epsilon": epsilon,
            "noise_multiplier": noise_multiplier,
            "delta": delta,
            "adjacency": adjacency,
            "seed": _arguments.seed(random_state, stacklevel=3),
            "threads": _arguments.threads(n_jobs),
        }
        self.steps = options["steps"]
        self._steps = _dp.NoisySteps.start(options)
        self._process = _fits.process()
        self._attached: Any = None
        self._turns = Turns(lambda: self.steps_left)

    def __reduce__(self) -> Any:
        raise TypeError("a plan holds the state of its noise, which must not exist twice: it cannot be copied or pickled")

    def _here(self) -> _dp.NoisySteps:
        if self._process != _fits.process():
            message = "the plan belongs to the process that this one was forked from: both would draw the same noise"
            raise PrivacyError(message, "privacy.fork", None, "a plan that was made in this process")
        return self._steps

    @property
    def std_dev(self) -> float:
        """The standard deviation of the noise in each coordinate of a sum."""
        return self._steps.std_dev

    @property
    def noise_multiplier(self) -> float:
        """The standard deviation of the noise, divided by the sensitivity."""
        return self._steps.noise_multiplier

    @property
    def mean_batch_size(self) -> float:
        """The mean number of records in a batch, by which a noisy sum is divided."""
        return self._steps.mean_batch_size

    @property
    def steps_left(self) -> int:
        """The number of steps that were not taken yet."""
        return self._steps.left

    def batches(self) -> Iterator[NDArray[np.int64]]:
        """Yields the batches of an epoch, or those that are left: positions of records, in no particular order.

        A batch may be empty; its step is taken like any other. Batches are secret, and so are their sizes.

        Raises:
            PrivacyError: if no batch is left.
        """
        left = self._here().batches_left
        if left == 0:
            raise PrivacyError(
                f"the batches of all {self.steps} steps of the plan were drawn",
                "privacy.steps",
                "steps",
                "no more epochs than were planned",
                "plan more steps: they cost more",
            )
        for _ in range(min(left, self.steps_per_epoch)):
            yield self._here().batch()

    def add(self, total: Any) -> NDArray[Any]:
        """Returns the sum of a step's clipped gradients with noise, an array of the same shape, which may be published.

        Raises:
            DpError: for a sum that is not usable; PrivacyError for a step without a batch, or one that was not planned, and for
                a sum that is not finite or is longer than the clipping norm times the largest batch, which ends the training.
        """
        try:
            array = np.asarray(total)
        except (TypeError, ValueError, RuntimeError):
            message = f"the sum is a {type(total).__name__} that numpy cannot read"
            expected = "an array of float32 or float64"
            raise DpError(message, "usage.value", "total", expected, "of a tensor: total.detach().cpu().float()") from None
        if array.dtype not in (np.float32, np.float64):
            raise DpError(f"the sum is of type {array.dtype}", "usage.value", "total", "numbers of float32 or float64")
        if array.size == 0:
            raise DpError("the sum has no coordinate", "usage.value", "total", "at least one")
        flat = np.ascontiguousarray(array).reshape(-1)
        steps = self._here()
        noisy: NDArray[Any] = steps.add_to_singles(flat) if array.dtype == np.float32 else steps.add_to_doubles(flat)
        return noisy.reshape(array.shape)

    def finish(self, weights: Mapping[str, Any], *, clipped_by: str, public: Sequence[str] = ()) -> Release:
        """Ends the training and certifies its weights, which may depend on noisy sums and public numbers alone.

        Steps that were not taken stay paid for.

        Args:
            weights: arrays by name.
            clipped_by: the program that clipped the gradients, and its version.
            public: names of those that were not trained, and that no record influenced.

        Raises:
            DpError: for arguments that are not usable; PrivacyError if the training has ended already, or a sum has ended it.
        """
        if not isinstance(clipped_by, str) or not 0 < len(clipped_by.encode(errors="replace")) <= _LONGEST_NAME:
            raise DpError(f"clipped_by is {clipped_by!r}", "usage.value", "clipped_by", "the name of a program")
        if isinstance(public, str) or not isinstance(public, Sequence):
            raise DpError(f"public is {public!r}", "usage.value", "public", "a list of names")
        unknown = [name for name in public if name not in weights]
        if unknown:
            raise DpError(f"public names {unknown[0]!r}", "usage.value", "public", f"some of {sorted(weights)}")
        digest = weights_sha256(weights)
        return Release(self._here().finish(digest, clipped_by, sorted(public)))


class Release:
    """The certificate of a training, bound to its weights by their hash."""

    def __init__(self, released: _dp.Release) -> None:
        self._released = released

    def __reduce__(self) -> Any:
        return _parsed, (self._released.text().encode(),)

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate, as in the file."""
        return dict(json.loads(self._released.certificate))

    @property
    def epsilon(self) -> float:
        """Epsilon of the guarantee; infinite if there is none."""
        reached = self._released.reached
        return reached[0] if reached else math.inf

    @property
    def delta(self) -> float:
        """Delta of the guarantee."""
        reached = self._released.reached
        return reached[1] if reached else 0.0

    @property
    def weights_sha256(self) -> str:
        """The hash of the weights."""
        return self._released.weights[0]

    @property
    def steps_taken(self) -> int:
        """The number of steps that were taken; all steps of the plan are paid for."""
        return self._released.weights[2]

    def verify(self, weights: Mapping[str, Any] | None = None) -> tuple[float, float]:
        """Recomputes the guarantee from the certificate alone, and compares the hash of ``weights``; returns epsilon and delta.

        Raises:
            VerificationError: if the guarantee does not follow, none is claimed, or the weights are others.
        """
        if weights is not None and weights_sha256(weights) != self.weights_sha256:
            message = "the certificate is not one of these weights"
            raise VerificationError(message, "verify.model_hash", "weights", f"SHA-256 {self.weights_sha256}")
        return self._released.verify()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file of the certificate, which ``dp verify`` and :func:`load` read. It does not hold the weights.

        Raises:
            FileExistsError: for a file that exists: none is replaced.
        """
        write_new(Path(path), self._released.text())


def load(path: str | os.PathLike[str]) -> Release:
    """Reads the file of a certificate.

    Raises:
        VerificationError: for another file, or one whose seals are broken.
    """
    return _parsed(Path(path).read_bytes())


def _parsed(content: bytes) -> Release:
    return Release(_dp.Release.parse(content))


def weights_sha256(weights: Mapping[str, Any]) -> str:
    """Returns the hash of arrays of numpy or tensors of PyTorch by name.

    ::

        SHA-256 of, for each array in the order of the names:  JSON of [name, type, shape], a line feed,
                                                               its numbers in C order, in little-endian bytes
    """
    if not isinstance(weights, Mapping) or not weights or not all(isinstance(name, str) for name in weights):
        raise DpError("the weights are no arrays by name", "usage.value", "weights", "a dictionary such as a state_dict")
    digest = hashlib.sha256()
    for name in sorted(weights):
        kind, shape, cells = _cells(name, weights[name])
        digest.update(json.dumps([name, kind, shape]).encode() + b"\n")
        digest.update(cells)
    return digest.hexdigest()


def _cells(name: str, value: Any) -> tuple[str, list[int], Any]:
    """Returns the type, the shape and the bytes of an array or a tensor."""
    if hasattr(value, "detach"):
        import torch

        tensor = value.detach().cpu().contiguous()
        return str(tensor.dtype).removeprefix("torch."), list(tensor.shape), tensor.reshape(-1).view(torch.uint8).numpy().data
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise DpError(f"weights[{name!r}] is of type {array.dtype}", "usage.value", "weights", "numbers")
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return array.dtype.name, list(array.shape), little.reshape(-1).view(np.uint8).data


def _one_of(first: str, value: Any, second: str, other: Any) -> None:
    if (value is None) == (other is None):
        message = f"{first} is missing" if value is None else f"{first} and {second} are both given"
        code = "usage.missing" if value is None else "usage.conflict"
        raise DpError(message, code, first, f"{first} or {second}")
