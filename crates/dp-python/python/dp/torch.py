"""Sound noise, secret batches and a certificate for training in PyTorch with Opacus.

Opacus computes and clips the gradient of each record. In place of its noise, which PyTorch draws in floating point,
:func:`attach` adds noise drawn exactly from a cryptographic generator; :func:`loader` draws the batches; :func:`finish` writes
the certificate::

    plan = Plan(len(dataset), batch_size=256, epochs=10, max_grad_norm=1.0, epsilon=3.0, delta=1e-6)
    model, optimizer, batches = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader(plan, dataset), poisson_sampling=False,
        noise_multiplier=plan.noise_multiplier, max_grad_norm=plan.max_grad_norm)
    attach(optimizer, plan)
    for epoch in range(10):
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
    finish(plan, model).save("model.certificate.json")

The certificate says what was taken on trust: that Opacus clipped, and the rounding of its sums. Gradients may be on any device:
they go to the processor and back once in each step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, default_collate

from dp.errors import DpError, PrivacyError
from dp.steps import Plan, Release

__all__ = ["Plan", "Release", "attach", "finish", "loader", "weights"]

# Whose sums are of gradients clipped to one norm, and whose only noise is that of `add_noise`.
_OPTIMIZERS = ("DPOptimizer", "DPOptimizerFastGradientClipping")


def attach(optimizer: Any, plan: Plan) -> None:
    """Makes the plan's noise that of an optimizer of Opacus, before its first step.

    Args:
        optimizer: the ``DPOptimizer`` of ``make_private``, also with ``grad_sample_mode="ghost"``.
        plan: a plan that has no optimizer yet.

    Raises:
        DpError: for another optimizer, and parameters that are not floating-point numbers.
        PrivacyError: for a plan that has an optimizer, and a larger clipping norm than the plan's.
    """
    kind = type(optimizer)
    is_ghost = kind.__name__ == _OPTIMIZERS[1]
    if kind.__name__ not in _OPTIMIZERS or kind.__module__.split(".")[0] != "opacus":
        raise DpError(
            f"optimizer is a {kind.__name__}",
            "usage.value",
            "optimizer",
            "a DPOptimizer of Opacus that clips to one norm",
            "the optimizer that PrivacyEngine().make_private returns, with clipping='flat'",
        )
    if plan._attached is not None:
        message = "the plan has an optimizer already: the gradient of a record would have two parts, clipped by themselves"
        raise PrivacyError(message, "privacy.steps", "plan", "one optimizer for all parameters")
    _check_norm("optimizer", optimizer.max_grad_norm, plan)
    for i, parameter in enumerate(optimizer.params):
        if not parameter.dtype.is_floating_point:
            raise DpError(f"parameter {i} is of type {parameter.dtype}", "usage.value", "optimizer", "floating-point numbers")
    plan._attached = optimizer
    # By which Opacus divides the noisy sum.
    optimizer.expected_batch_size = plan.mean_batch_size
    is_torn = False
    norms, are_fresh = _norms(optimizer), True

    def zero_grad(optimizer: Any, set_to_none: bool = False) -> None:
        # Ghost clipping computes norms, calls this and goes back a second time.
        nonlocal norms, are_fresh
        before, norms = norms, _norms(optimizer)
        are_fresh = all(one is None or one is not other for one, other in zip(before, norms))
        kind.zero_grad(optimizer, set_to_none)

    def add_noise(optimizer: Any) -> None:
        _check_norm("optimizer", optimizer.max_grad_norm, plan)
        _add_noise(optimizer, plan)

    def signal_skip_step(optimizer: Any, do_skip: bool = True) -> None:
        # `BatchMemoryManager` draws a part of a batch.
        plan._turns.draw_part(len(optimizer._step_skip_queue))
        kind.signal_skip_step(optimizer, do_skip)

    def pre_step(optimizer: Any, closure: Any = None) -> Any:
        nonlocal is_torn
        signals, has_parts, left = list(optimizer._step_skip_queue), optimizer._is_last_step_skipped, plan.steps_left
        _check_parts(optimizer, is_torn)
        if is_ghost and not are_fresh:
            message = "Opacus clipped by the norms of another backward pass, which ended with an error"
            raise PrivacyError(message, "privacy.steps", "optimizer", "a training from the start, with a new plan")
        try:
            return kind.pre_step(optimizer, closure)
        except BaseException:
            if plan.steps_left == left:
                # The step can be tried again, unless it left some of its gradients in the sum of the parts before it.
                optimizer._step_skip_queue[:] = signals
                is_torn = has_parts
                if not has_parts:
                    _forget_sums(optimizer)
            raise

    for method in (add_noise, signal_skip_step, pre_step, zero_grad):
        setattr(optimizer, method.__name__, MethodType(method, optimizer))


def _check_norm(owner: str, norm: float, plan: Plan) -> None:
    if not norm <= plan.max_grad_norm:
        message = f"the {owner} clips to {norm!r}"
        expected = f"max_grad_norm={plan.max_grad_norm!r}, as the plan says, or less"
        raise PrivacyError(message, "privacy.steps", "max_grad_norm", expected)


def _check_parts(optimizer: Any, is_torn: bool) -> None:
    """Checks that a step adds each record of a batch to its sum once."""
    if is_torn:
        message = "a step on a part of a batch ended with an error: its sum may hold a part of its gradients"
        raise PrivacyError(message, "privacy.steps", "optimizer", "a training from the start, with a new plan")
    if optimizer._is_last_step_skipped and not optimizer._step_skip_queue:
        message = "the sum of a batch lacks the parts that were not handed out"
        raise PrivacyError(message, "privacy.steps", "optimizer", "a training from the start, with a new plan")
    kept = [getattr(parameter, "grad_sample", None) for parameter in optimizer.params]
    passes = max((len(one) for one in kept if isinstance(one, list)), default=1)
    if passes != 1:
        # Opacus would also divide by their number, which may tell the size of the batch.
        message = f"{passes} backward passes were made for one step"
        expected = "one for each batch: BatchMemoryManager splits large ones"
        raise PrivacyError(message, "privacy.steps", "optimizer", expected)


def _norms(optimizer: Any) -> list[Any]:
    """Returns the norms by which ghost clipping clips."""
    return [getattr(parameter, "_norm_sample", None) for parameter in optimizer.params]


def _forget_sums(optimizer: Any) -> None:
    for parameter in optimizer.params:
        parameter.summed_grad = None


def _add_noise(optimizer: Any, plan: Plan) -> None:
    """Sets the gradients of all parameters to their sums with noise."""
    sums = [parameter.summed_grad for parameter in optimizer.params]
    for i, total in enumerate(sums):
        if total is None:
            message = f"parameter {i} has no summed gradient"
            expected = "a gradient for each record: it takes part in the loss, and Opacus supports its layer"
            raise DpError(message, "steps.no_gradient", f"params[{i}]", expected, "or freeze it: requires_grad_(False)")
        if getattr(total, "_processed", False):
            message = f"the gradient of parameter {i} has noise already"
            raise PrivacyError(message, "privacy.steps", f"params[{i}]", "zero_grad() before each backward pass")
    plan._turns.check_step()
    # Numbers of fewer digits are represented exactly; what is rounded to them afterwards has noise already.
    kind = np.float64 if all(total.dtype == torch.float64 for total in sums) else np.float32
    flat = np.empty(sum(total.numel() for total in sums), dtype=kind)
    buffer, ends = torch.from_numpy(flat), np.cumsum([total.numel() for total in sums])
    places = [slice(int(end) - total.numel(), int(end)) for total, end in zip(sums, ends)]
    for total, place in zip(sums, places):
        buffer[place].copy_(total.detach().reshape(-1))
    # A device without enough memory ends the step before its noise is drawn, so that no batch can be omitted after it.
    gradients = [torch.empty_like(parameter) for parameter in optimizer.params]
    noisy = torch.from_numpy(plan.add(flat))
    for parameter, gradient, total, place in zip(optimizer.params, gradients, sums, places):
        parameter.grad = gradient.copy_(noisy[place].to(parameter.dtype).view_as(parameter))
        # As Opacus marks it, so that no gradient is used twice.
        total._processed = True


def loader(plan: Plan, dataset: Any, *, collate_fn: Callable[[list[Any]], Any] | None = None, **options: Any) -> Any:
    """Returns a ``DataLoader`` of the plan's batches; each pass over it is an epoch.

    An empty batch is made of tensors without rows. Further ``options`` are those of ``DataLoader``.

    Each batch must have its step before the next one, also in parts: which batches are omitted, for example because memory does
    not hold them, may depend on records.

    Raises:
        DpError: for a data set of another size, and options that say how batches are made; PrivacyError, on the way to the next
            part, batch or epoch, and by :func:`finish`, if the last one had no step.
    """
    if len(dataset) != plan.records:
        message = f"the data set has {len(dataset)} records"
        raise DpError(message, "usage.value", "dataset", f"{plan.records}, as the plan says")
    for name in ("batch_size", "batch_sampler", "drop_last", "sampler", "shuffle"):
        if name in options:
            raise DpError(f"{name} is given beside a plan", "usage.conflict", name, "nothing: the plan makes the batches")
    collate = _Collate(dataset, collate_fn or default_collate)
    return _Loader(plan, dataset, collate_fn=collate, **options)


class _Loader(DataLoader):  # type: ignore[misc]
    """A loader that yields the next batch after the step on the last one."""

    def __init__(self, plan: Plan, dataset: Any, **options: Any) -> None:
        self._plan = plan
        batches = _Batches(plan)
        super().__init__(dataset, batch_sampler=batches, **options)
        batches.ahead = self.num_workers * (self.prefetch_factor or 0)

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            self._plan._turns.hand_out()
            yield batch
            self._plan._turns.check()


class _Batches:
    """The batches of an epoch, also for `BatchMemoryManager`, which splits them.

    Without workers each is drawn after the step on the last one. Workers draw ``ahead`` parts before they are handed out.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.ahead = 0

    def __len__(self) -> int:
        return self._plan.steps_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        turns = self._plan._turns
        # Also after a loop that an error ended.
        turns.start(self.ahead)
        for batch in self._plan.batches():
            turns.draw()
            yield batch.tolist()
            if not self.ahead:
                turns.check()


class _Collate:
    """Makes a batch of records, also of none."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any]) -> None:
        self._dataset, self._collate = dataset, collate

    def __call__(self, records: list[Any]) -> Any:
        # The form of a batch is that of one with a record.
        return self._collate(records) if records else _emptied(self._collate([self._dataset[0]]))


def _emptied(batch: Any) -> Any:
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return batch[:0]
    if isinstance(batch, Mapping):
        return type(batch)({name: _emptied(part) for name, part in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_emptied, batch))
    if isinstance(batch, (list, tuple)):
        # A list of texts has one for each record, other lists one part for each column.
        return type(batch)() if all(isinstance(part, str) for part in batch) else type(batch)(map(_emptied, batch))
    message = f"a batch holds a {type(batch).__name__}"
    raise DpError(message, "usage.value", "collate_fn", "tensors, in lists, tuples or dictionaries")


def finish(plan: Plan, model: Any) -> Release:
    """Ends the training and certifies the weights of a model, all of whose trained parameters are the optimizer's.

    Frozen parameters and buffers were not trained with noise: the certificate names them as public.

    Raises:
        DpError: for a model with other parameters than the optimizer's; PrivacyError if the training has ended already, a batch
            of the loader had no step, or the model clips to a larger norm than the plan's.
    """
    plan._turns.check()
    optimizer = plan._attached
    if optimizer is None:
        raise DpError("the plan has no optimizer", "usage.missing", "plan", "attach(optimizer, plan) before the first step")
    # By which ghost clipping clips.
    _check_norm("model", getattr(model, "max_grad_norm", optimizer.max_grad_norm), plan)
    trained = {id(parameter) for parameter in optimizer.params}
    module = _unwrapped(model)
    named = dict(module.named_parameters(remove_duplicate=False))
    loose = [name for name, parameter in named.items() if parameter.requires_grad and id(parameter) not in trained]
    if loose:
        message = f"the parameter `{loose[0]}` can be trained, but is not one of the plan's optimizer"
        raise DpError(message, "usage.value", "model", "a model that the optimizer trains", "freeze it: requires_grad_(False)")
    if not trained <= {id(parameter) for parameter in named.values()}:
        raise DpError("the optimizer has parameters that the model has not", "usage.value", "model", "the optimizer's model")
    all_weights = weights(model)
    public = [name for name in all_weights if id(named.get(name)) not in trained]
    version = getattr(sys.modules.get("opacus"), "__version__", "of unknown version")
    return plan.finish(all_weights, clipped_by=f"opacus {version}", public=public)


def weights(model: Any) -> dict[str, torch.Tensor]:
    """Returns the weights of a model that a certificate is about, for :meth:`Release.verify`.

    Raises:
        DpError: for a model with a state that is no tensor.
    """
    state = _unwrapped(model).state_dict()
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise DpError(f"the model's `{name}` is a {type(value).__name__}", "usage.value", "model", "a state of tensors")
    return dict(state)


def _unwrapped(model: Any) -> Any:
    """Returns the module within the one that Opacus makes."""
    return getattr(model, "_module", model)
