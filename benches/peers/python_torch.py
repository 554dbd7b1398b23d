"""Milliseconds of a training step of Opacus with its own noise and with that of `dp.torch`, in turns.

    python3 -m venv env && env/bin/pip install torch opacus wheels/*.whl
    env/bin/python benches/peers/python_torch.py [--threads N] [--steps N]

Made-up images of 784 numbers in ten classes; ghost clipping; networks of 795,010 and 5,824,522 parameters.
"""

import argparse
import statistics
import time
import warnings

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import TensorDataset

from dp.torch import Plan, attach, loader

RECORDS = 60_000


def network(widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def training(widths, batch_size, threads, attached, dataset, steps):
    plan = Plan(
        RECORDS, batch_size=batch_size, steps=steps, max_grad_norm=1.0, noise_multiplier=1.0, delta=1e-6, n_jobs=threads
    )
    model = network(widths)
    model, optimizer, criterion, batches = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=nn.CrossEntropyLoss(),
        data_loader=loader(plan, dataset),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode="ghost",
    )
    if attached:
        attach(optimizer, plan)

    def step(inputs, targets):
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()

    return iter(batches), step


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--steps", type=int, default=20)
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    dataset = TensorDataset(torch.randn(RECORDS, 784), torch.randint(0, 10, (RECORDS,)))
    print(f"{options.threads} threads, medians of {options.steps} steps")
    for widths in ((784, 1000, 10), (784, 2048, 2048, 10)):
        parameters = sum(one.numel() for one in network(widths).parameters())
        for batch_size in (256, 2048):
            steps = options.steps + 2
            both = [training(widths, batch_size, options.threads, attached, dataset, steps) for attached in (False, True)]
            times = ([], [])
            for i in range(steps):
                for (batches, step), spent in zip(both, times, strict=True):
                    inputs, targets = next(batches)
                    start = time.perf_counter()
                    step(inputs, targets)
                    if i >= 2:
                        spent.append(1000 * (time.perf_counter() - start))
            theirs, ours = map(statistics.median, times)
            print(
                f"{parameters:>9,} parameters, batch {batch_size:>4}: "
                f"Opacus {theirs:7.1f} ms, dp {ours:7.1f} ms, {ours / theirs:.2f} times"
            )


if __name__ == "__main__":
    main()
