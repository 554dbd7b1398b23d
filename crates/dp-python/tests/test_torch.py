"""Training in PyTorch with Opacus: noise, batches and certificates of a plan."""

import math
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import TensorDataset

from dp import steps
from dp.errors import DpError, NotPrivateWarning, PrivacyError, VerificationError
from dp.torch import Plan, attach, finish, loader, weights

# Those of torch and Opacus.
pytestmark = pytest.mark.filterwarnings("ignore")

N = 1200


def data(n=N):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, 10, generator=generator)
    return TensorDataset(X, (X[:, 0] - X[:, 1] > 0).long())


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))


def plan(**arguments):
    usual = {"batch_size": 100, "epochs": 5, "max_grad_norm": 1.0, "epsilon": 8.0, "delta": 1e-5}
    return Plan(arguments.pop("records", N), **{**usual, **arguments})


def private(made, model=None, mode="hooks", attached=True, dataset=None, workers=0, **options):
    """A model, its optimizer, the batches and the loss, as Opacus makes them."""
    model = network() if model is None else model
    made_by_opacus = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        criterion=nn.CrossEntropyLoss(),
        data_loader=loader(made, dataset or data(), num_workers=workers),
        noise_multiplier=made.noise_multiplier,
        max_grad_norm=made.max_grad_norm,
        poisson_sampling=False,
        grad_sample_mode=mode,
        **options,
    )
    if mode == "ghost":
        model, optimizer, loss, batches = made_by_opacus
    else:
        (model, optimizer, batches), loss = made_by_opacus, nn.CrossEntropyLoss()
    if attached:
        attach(optimizer, made)
    return model, optimizer, batches, loss


def train(model, optimizer, batches, loss):
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()


def one_step(optimizer, model, batches, loss):
    """Runs a step up to its noise; returns the sums and the noisy ones."""
    inputs, targets = next(iter(batches))
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    optimizer.pre_step()
    sums = torch.cat([parameter.summed_grad.reshape(-1) for parameter in optimizer.params])
    noisy = torch.cat([parameter.grad.reshape(-1) for parameter in optimizer.params])
    return sums.double().numpy(), noisy.double().numpy() * optimizer.expected_batch_size


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_network_is_trained_and_certified(mode, tmp_path):
    made = plan()
    model, optimizer, batches, loss = private(made, mode=mode)
    assert len(batches) == 12
    for _ in range(5):
        train(model, optimizer, batches, loss)
    with pytest.raises(PrivacyError, match="all 60 steps"):
        train(model, optimizer, batches, loss)
    X, y = data().tensors
    assert (model(X).argmax(1) == y).float().mean() > 0.85
    release = finish(made, model)
    assert 7.99 < release.epsilon <= 8.0 and release.delta == 1e-5 and release.steps_taken == 60
    release.save(tmp_path / "certificate.json")
    loaded = steps.load(tmp_path / "certificate.json")
    assert loaded.verify(weights(model)) == (release.epsilon, 1e-5)
    # Weights that were saved and loaded, without the module of Opacus.
    torch.save(model._module.state_dict(), tmp_path / "weights.pt")
    again = network()
    again.load_state_dict(torch.load(tmp_path / "weights.pt"))
    assert loaded.verify(weights(again)) == release.verify()
    with torch.no_grad():
        again[0].bias[0] += 1e-3
    with pytest.raises(VerificationError, match="not one of these weights"):
        loaded.verify(weights(again))
    derivation = loaded.certificate["derivation"]
    assert derivation["clipped_by"] == f"opacus {opacus.__version__}" and derivation["public_tensors"] == []


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_the_noise_in_the_gradients_is_that_of_the_plan(mode):
    stats = pytest.importorskip("scipy.stats")
    wide = nn.Sequential(nn.Linear(10, 5000), nn.Linear(5000, 2))
    made = plan()
    model, optimizer, batches, loss = private(made, wide, mode)
    sums, noisy = one_step(optimizer, model, batches, loss)
    assert len(sums) == 65_002 and np.linalg.norm(sums) > 10
    # Without a seed: a false alarm in a million runs.
    assert stats.kstest((noisy - sums) / made.std_dev, "norm").pvalue > 1e-6
    assert math.isclose(optimizer.expected_batch_size, made.mean_batch_size)


def test_last_digits_tell_the_sum_under_the_noise_of_torch_and_not_under_ours():
    def share(noisy):
        small = noisy[np.abs(noisy) < 1 / 16]
        assert len(small) > 1000
        return np.mean(small * 2.0**24 == np.round(small * 2.0**24))

    def shares(attached):
        found = []
        for total in (0.0, 1.0):
            # Noise of about one, and a clipping norm that admits the sum.
            made = plan(epsilon=None, noise_multiplier=0.1, max_grad_norm=10.0)
            _, optimizer, batches, _ = private(made, nn.Sequential(nn.Linear(100_000, 2)), attached=attached)
            next(iter(batches.batch_sampler))
            for parameter in optimizer.params:
                parameter.summed_grad = torch.full_like(parameter, total)
                parameter.grad_sample = torch.zeros(1, *parameter.shape)
            optimizer.add_noise()
            found.append(share(torch.cat([parameter.grad.reshape(-1) for parameter in optimizer.params]).double().numpy()))
        return found

    zero, one = shares(attached=False)
    assert zero < 0.1 and one == 1
    zero, one = shares(attached=True)
    # Five standard errors of shares near 0.05 of 10,000.
    assert abs(zero - one) < 0.015


@pytest.mark.parametrize(("size", "most"), [(2048, 1e-4), (16384, 5e-3)])
def test_the_margin_covers_the_rounding_of_sums(size, most):
    # Sums of neighbours as Opacus clips and adds them, farther apart than the clipping norm by rounding alone. Gradients that
    # point in nearly one direction make the largest sums; the margin is 1e-2.
    optimizer = private(plan(), nn.Sequential(nn.Linear(10, 1, bias=False)))[1]
    (parameter,) = optimizer.params
    generator = torch.Generator().manual_seed(size)

    def summed(gradients):
        parameter.summed_grad, parameter.grad_sample = None, gradients
        optimizer.clip_and_accumulate()
        return parameter.summed_grad.double()

    worst = 0.0
    for spread in (0.1, 10.0):
        for _ in range(3):
            direction = torch.randn(1, 1, 2048, generator=generator)
            gradients = 3 * (direction + spread * torch.randn(size, 1, 2048, generator=generator))
            without = gradients.clone()
            without[0] = 0
            total = summed(gradients.clone())
            for other in (summed(without), summed(gradients[1:].clone())):
                worst = max(worst, float((total - other).norm()) - 1)
    assert 0 < worst < most


def test_large_batches_may_go_through_in_parts():
    made = plan()
    model, optimizer, batches, loss = private(made)
    with BatchMemoryManager(data_loader=batches, max_physical_batch_size=16, optimizer=optimizer) as parts:
        train(model, optimizer, parts, loss)
    assert made.steps_left == 48


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_steps_on_empty_batches_are_taken(mode):
    made = plan(records=100, batch_size=1, epochs=1, epsilon=None, noise_multiplier=1.0)
    model, optimizer, batches, loss = private(made, mode=mode, dataset=data(100))
    before = weights(model)["0.weight"].clone()
    sizes = []
    for inputs, targets in batches:
        sizes.append(len(inputs))
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
    assert 0 in sizes and len(sizes) == 100 and made.steps_left == 0
    assert torch.isfinite(weights(model)["0.weight"]).all() and not torch.equal(before, weights(model)["0.weight"])


def test_empty_batches_have_the_form_of_others():
    class Named(torch.utils.data.Dataset):
        def __len__(self):
            return 50

        def __getitem__(self, i):
            return {"x": torch.ones(3, 2), "pair": (i, "text"), "y": [float(i)]}

    made = plan(records=50, batch_size=1, epochs=1)
    found = {len(batch["x"]): batch for batch in with_steps(made, loader(made, Named()))}
    empty, one = found[0], found[1]
    assert empty["x"].shape == (0, 3, 2) and empty["pair"][0].shape == (0,) and list(empty["pair"][1]) == []
    assert empty["y"][0].shape == (0,) and one["x"].shape == (1, 3, 2)
    strange = loader(plan(records=50, batch_size=1, epochs=1), Named(), collate_fn=lambda records: {1, 2})
    with pytest.raises(DpError, match="a batch holds a set"):
        list(with_steps(strange._plan, strange))


def with_steps(made, batches):
    """Yields the batches; on each the plan has a step."""
    for batch in batches:
        yield batch
        made.add(np.zeros(2, dtype=np.float32))


def test_workers_of_a_loader_draw_nothing():
    made = plan(epochs=1)
    assert len([len(inputs) for inputs, _ in with_steps(made, loader(made, data(), num_workers=2))]) == 12
    pickle.dumps(loader(plan(), data()).collate_fn)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_memory_does_not_hold_cannot_be_omitted(workers):
    made = plan()
    model, optimizer, _, loss = private(made)
    batches = loader(made, data(), num_workers=workers)

    def forward(inputs):
        if len(inputs) > 100:
            raise torch.OutOfMemoryError("out of memory")
        return model(inputs)

    taken = 0
    with pytest.raises(PrivacyError, match="the last batch had no step") as caught:
        for inputs, targets in batches:
            optimizer.zero_grad()
            try:
                loss(forward(inputs), targets).backward()
            except torch.OutOfMemoryError:
                continue
            optimizer.step()
            taken += 1
    assert caught.value.code == "privacy.steps" and "BatchMemoryManager" in str(caught.value)
    assert made.steps_left == 60 - taken > 0


def parts_of(optimizer, batches, size=16):
    return BatchMemoryManager(data_loader=batches, max_physical_batch_size=size, optimizer=optimizer)


@pytest.mark.parametrize(("mode", "workers"), [("hooks", 0), ("hooks", 2), ("ghost", 0)])
def test_parts_of_batches_are_trained_and_certified(mode, workers):
    made = plan(epochs=2)
    model, optimizer, batches, loss = private(made, mode=mode, workers=workers)
    for _ in range(2):
        with parts_of(optimizer, batches) as parts:
            train(model, optimizer, parts, loss)
    release = finish(made, model)
    assert release.steps_taken == 24 and release.verify(weights(model))[0] <= 8.0


@pytest.mark.parametrize(("mode", "workers"), [("hooks", 0), ("hooks", 2), ("ghost", 0)])
# The first part of a batch, one between, the last one, and whole batches.
@pytest.mark.parametrize(("size", "omitted"), [(40, 0), (40, 1), (40, -1), (1000, 0)])
def test_parts_and_batches_that_memory_does_not_hold_cannot_be_omitted(mode, workers, size, omitted):
    made = plan(epochs=2)
    model, optimizer, batches, loss = private(made, mode=mode, workers=workers)
    has_failed = False
    with parts_of(optimizer, batches, size) as parts, pytest.raises(PrivacyError, match="had no step") as caught:
        place = 0
        for inputs, targets in parts:
            # As its signal says.
            is_last = not optimizer._step_skip_queue[0]
            fails = not has_failed and (is_last if omitted == -1 else place == omitted)
            place = 0 if is_last else place + 1
            if fails:
                has_failed = True
                continue
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
    assert caught.value.code == "privacy.steps" and made.steps_left > 0
    # Neither another loop nor a certificate.
    for more in (lambda: next(iter(batches)), lambda: finish(made, model)):
        with pytest.raises(PrivacyError):
            more()


def test_a_batch_whose_parts_were_not_all_handed_out_has_no_step():
    made = plan()
    model, optimizer, batches, loss = private(made)

    def step(inputs, targets):
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()

    with parts_of(optimizer, batches) as parts, pytest.raises(PrivacyError, match="a part of a batch had no step"):
        for i, part in enumerate(parts):
            if i == 1:
                continue
            step(*part)
    step(*part)
    with pytest.raises(PrivacyError, match="lacks the parts that were not handed out"):
        step(*part)
    assert made.steps_left == 60


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_part_is_tried_again(mode):
    made = plan(epochs=1)
    model, optimizer, batches, loss = private(made, mode=mode)
    with parts_of(optimizer, batches) as parts:
        for inputs, targets in parts:
            # The first try ends with an error before the step.
            for _ in range(2):
                optimizer.zero_grad()
                loss(model(inputs), targets).backward()
            optimizer.step()
    assert finish(made, model).steps_taken == 12


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_no_record_is_in_a_sum_twice_after_a_step_that_ended_with_an_error(mode, monkeypatch):
    def full(*arguments, **options):
        raise torch.OutOfMemoryError("out of memory")

    for size, is_survived in ((1000, True), (16, False)):
        made = plan(epochs=1)
        model, optimizer, batches, loss = private(made, mode=mode)
        with parts_of(optimizer, batches, size) as parts:
            for inputs, targets in parts:
                optimizer.zero_grad()
                loss(model(inputs), targets).backward()
                if not optimizer._step_skip_queue[0]:
                    break
                optimizer.step()
            sums = [None if one.summed_grad is None else one.summed_grad.clone() for one in optimizer.params]
            with monkeypatch.context() as patched, pytest.raises(torch.OutOfMemoryError):
                patched.setattr("dp.torch.torch.empty_like", full)
                optimizer.step()
            if is_survived:
                assert sums == [one.summed_grad for one in optimizer.params] == [None] * 4
                optimizer.zero_grad()
                loss(model(inputs), targets).backward()
                optimizer.step()
                assert made.steps_left == 11
            else:
                with pytest.raises(PrivacyError, match="a step on a part of a batch ended with an error"):
                    optimizer.step()
                assert made.steps_left == 12


def test_several_backward_passes_for_a_part_are_refused():
    made = plan()
    model, optimizer, batches, loss = private(made)
    with parts_of(optimizer, batches) as parts, pytest.raises(PrivacyError, match="2 backward passes"):
        for inputs, targets in parts:
            for _ in range(2):
                loss(model(inputs), targets).backward()
            optimizer.step()
    assert made.steps_left == 60


def test_norms_of_another_backward_pass_are_refused(monkeypatch):
    made = plan()
    model, optimizer, batches, loss = private(made, mode="ghost")
    disable = model.disable_hooks

    def full():
        disable()
        raise torch.OutOfMemoryError("out of memory")

    inputs, targets = next(iter(batches))
    with monkeypatch.context() as patched, pytest.raises(torch.OutOfMemoryError):
        patched.setattr(model, "disable_hooks", full)
        loss(model(inputs), targets).backward()
    # Opacus goes on without its hooks, by the norms of the first pass.
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    with pytest.raises(PrivacyError, match="by the norms of another backward pass"):
        optimizer.step()
    model.enable_hooks()
    loss(model(inputs), targets).backward()
    optimizer.step()
    assert made.steps_left == 59


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_several_steps_on_a_batch_are_refused(workers, in_parts):
    made = plan()
    model, optimizer, batches, loss = private(made, workers=workers)
    with parts_of(optimizer, batches, 1000) as whole, pytest.raises(PrivacyError, match=r"without a batch|had several steps"):
        for inputs, targets in whole if in_parts else batches:
            for _ in range(2):
                optimizer.zero_grad()
                loss(model(inputs), targets).backward()
                optimizer.step()
    if in_parts and workers:
        with pytest.raises(PrivacyError, match="other steps than one each"):
            finish(made, model)
    else:
        assert finish(made, model).steps_taken == 1


def test_an_epoch_of_parts_that_were_drawn_ahead_must_be_finished():
    made = plan()
    model, optimizer, batches, loss = private(made, workers=2)
    with parts_of(optimizer, batches, 1000) as parts:
        for inputs, targets in parts:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
            break
    for more in (lambda: next(iter(batches)), lambda: finish(made, model)):
        with pytest.raises(PrivacyError, match="batches that were drawn had no step"):
            more()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_could_not_be_loaded_is_not_omitted(workers):
    made = plan()
    model, *_ = private(made)

    def collate(records):
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        next(iter(loader(made, data(), collate_fn=collate, num_workers=workers)))
    with pytest.raises(PrivacyError, match="had no step"):
        finish(made, model)


def test_a_device_without_memory_for_the_noise_ends_the_step_before_it_is_drawn(monkeypatch):
    made = plan()
    model, optimizer, batches, loss = private(made)
    before = weights(model)["0.weight"].clone()

    def full(tensor):
        raise torch.OutOfMemoryError("out of memory")

    with pytest.raises(PrivacyError, match="the last batch had no step"):
        for inputs, targets in batches:
            loss(model(inputs), targets).backward()
            with monkeypatch.context() as patched, pytest.raises(torch.OutOfMemoryError):
                patched.setattr("dp.torch.torch.empty_like", full)
                optimizer.step()
    assert made.steps_left == 60 and torch.equal(before, weights(model)["0.weight"])


def test_frozen_parameters_and_buffers_are_stated():
    model = network()
    model.register_buffer("scale", torch.ones(3))
    model[0].requires_grad_(False)
    made = plan(epochs=1)
    model, optimizer, batches, loss = private(made, model)
    train(model, optimizer, batches, loss)
    release = finish(made, model)
    assert release.certificate["derivation"]["public_tensors"] == ["0.bias", "0.weight", "scale"]
    assert release.verify(weights(model))[0] <= 8.0


def test_other_types_of_numbers():
    model = network().double()
    doubles = TensorDataset(data().tensors[0].double(), data().tensors[1])
    made = plan(epochs=1)
    model, optimizer, batches, loss = private(made, model, dataset=doubles)
    train(model, optimizer, batches, loss)
    assert finish(made, model).verify(weights(model))[0] <= 8.0
    assert all(parameter.grad.dtype == torch.float64 for parameter in optimizer.params)
    mixed = {"half": torch.ones(3, dtype=torch.bfloat16), "truth": torch.tensor(True), "count": torch.arange(3)}
    assert steps.weights_sha256({"count": mixed["count"]}) == steps.weights_sha256({"count": np.arange(3)})
    assert steps.weights_sha256(mixed) != steps.weights_sha256({**mixed, "truth": torch.tensor(False)})


# What is refused -------------------------------------------------------------------------------------------------------


def test_optimizers_that_are_refused():
    made = plan()
    with pytest.raises(DpError, match="optimizer is a SGD"):
        attach(torch.optim.SGD(network().parameters(), lr=0.1), made)
    optimizer = private(made)[1]
    with pytest.raises(PrivacyError, match="the plan has an optimizer already"):
        attach(optimizer, made)
    other = private(plan(), attached=False)[1]
    with pytest.raises(PrivacyError, match="the plan has an optimizer already"):
        attach(other, made)
    small = plan(max_grad_norm=0.5)
    with pytest.raises(PrivacyError, match=r"clips to 1.0; expected max_grad_norm=0.5"):
        attach(other, small)
    model = network()
    per_layer = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader(plan(), data()),
        noise_multiplier=1.0,
        max_grad_norm=[0.5] * 4,
        poisson_sampling=False,
        clipping="per_layer",
    )[1]
    with pytest.raises(DpError, match="optimizer is a DPPerLayerOptimizer"):
        attach(per_layer, plan())


def test_a_norm_that_grows_is_refused():
    made = plan()
    model, optimizer, batches, loss = private(made)
    optimizer.max_grad_norm = 1.5
    with pytest.raises(PrivacyError, match=r"clips to 1.5"):
        train(model, optimizer, batches, loss)
    assert made.steps_left == 60


def test_a_norm_of_ghost_clipping_that_grew_is_refused():
    made = plan(epochs=1)
    model, optimizer, batches, loss = private(made, mode="ghost")
    model.max_grad_norm = 50.0
    train(model, optimizer, batches, loss)
    with pytest.raises(PrivacyError, match=r"the model clips to 50.0; expected max_grad_norm=1.0"):
        finish(made, model)


def test_gradients_that_are_refused():
    made = plan()
    model, optimizer, batches, loss = private(made)
    inputs, targets = next(iter(batches))
    loss(model(inputs), targets).backward()
    optimizer.clip_and_accumulate()
    kept, optimizer.params[1].summed_grad = optimizer.params[1].summed_grad, None
    with pytest.raises(DpError, match="parameter 1 has no summed gradient"):
        optimizer.add_noise()
    optimizer.params[1].summed_grad = kept
    optimizer.add_noise()
    with pytest.raises(PrivacyError, match="parameter 0 has noise already"):
        optimizer.add_noise()
    made = plan()
    model, optimizer, batches, loss = private(made)
    inputs, targets = next(iter(batches))
    loss(model(inputs * math.nan), targets).backward()
    with pytest.raises(DpError, match="finite"):
        optimizer.step()
    assert made.steps_left == 60


def test_several_backward_passes_for_one_step_are_refused():
    made = plan()
    model, optimizer, batches, loss = private(made)
    inputs, targets = next(iter(batches))
    for part in (slice(0, 50), slice(50, None)):
        loss(model(inputs[part]), targets[part]).backward()
    with pytest.raises(PrivacyError, match="2 backward passes"):
        optimizer.step()
    assert made.steps_left == 60


def test_tensors_that_numpy_cannot_read_are_refused():
    made = plan()
    next(made.batches())
    for total in (torch.zeros(3, requires_grad=True), torch.zeros(3, dtype=torch.bfloat16)):
        with pytest.raises(DpError, match="a Tensor that numpy cannot read") as caught:
            made.add(total)
        assert caught.value.field == "total"
        assert made.steps_left == 60
    assert made.add(total.detach().cpu().float()).shape == (3,)


def test_more_steps_than_batches_are_refused():
    made = plan()
    model, optimizer, batches, loss = private(made)
    inputs, targets = next(iter(batches))
    for _ in range(2):
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        if made.steps_left == 60:
            optimizer.step()
    with pytest.raises(PrivacyError, match="without a batch"):
        optimizer.step()


def test_loaders_that_are_refused():
    with pytest.raises(DpError, match="the data set has 100 records; expected 1200"):
        loader(plan(), data(100))
    for name in ("batch_size", "shuffle", "sampler", "drop_last"):
        with pytest.raises(DpError, match=f"{name} is given beside a plan"):
            loader(plan(), data(), **{name: 1})


def test_models_that_are_refused():
    made = plan(epochs=1)
    with pytest.raises(DpError, match="the plan has no optimizer"):
        finish(made, network())
    model, *_ = private(made)
    with pytest.raises(DpError, match="can be trained, but is not one of the plan's optimizer"):
        finish(made, network())
    more = nn.ModuleDict({"one": model._module, "more": nn.Linear(2, 2)})
    with pytest.raises(DpError, match=r"`more\.weight` can be trained"):
        finish(made, more)
    with pytest.raises(DpError, match="parameters that the model has not"):
        finish(made, model._module[0])
    assert finish(made, model).steps_taken == 0
    with pytest.raises(PrivacyError, match="has ended"):
        finish(made, model)


def test_a_seed_gives_no_guarantee():
    with pytest.warns(NotPrivateWarning):
        made = plan(epochs=1, random_state=3)
    model, optimizer, batches, loss = private(made)
    train(model, optimizer, batches, loss)
    with pytest.raises(VerificationError, match="seed"):
        finish(made, model).verify()
