"""Writes torch.json: losses, norms of per-example gradients and clipped sums of networks, by PyTorch in double precision.

Run as `python golden.py > torch.json`. All inputs are formulas, which src/network/tests/torch.rs repeats. Parameters are the flat
vector of dp-nets: a convolution's weights are (output, row, column, input channel), and images are flattened as (row, column,
channel).
"""

import json
import math

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
EXAMPLES, CLASSES = 8, 10


def linear(units):
    return ("linear", units)


def convolution(channels, kernel, stride=1, padding=0):
    return ("convolution", channels, kernel, stride, padding)


def pool(size, stride):
    return ("max-pool", size, stride)


TANH, RELU = ("tanh",), ("relu",)
NETWORKS = {
    "mnist-mlp": ((28, 28, 1), [linear(1000), RELU, linear(10)]),
    "small-cnn": (
        (28, 28, 1),
        [convolution(6, 5), TANH, pool(2, 2), convolution(16, 5), TANH, pool(2, 2)]
        + [linear(256), TANH, linear(128), TANH, linear(10)],
    ),
    "tempered-cnn": (
        (28, 28, 1),
        [convolution(16, 8, 2, 3), TANH, pool(2, 1), convolution(32, 4, 2), TANH, pool(2, 1), linear(32), TANH, linear(10)],
    ),
    "group-norm": (
        (7, 6, 3),
        [convolution(8, 3, 1, 1), ("group-norm", 4), TANH, ("average-pool", 2, 2), ("group-norm", 2), linear(10)],
    ),
}


class Parameters:
    """Takes views from the flat vector, or, before it exists, writes its formula."""

    def __init__(self, flat=None):
        self.flat, self.formula, self.used = flat, [], 0

    def take(self, count, value):
        start, self.used = self.used, self.used + count
        if self.flat is None:
            self.formula += [value(j) for j in range(start, self.used)]
            return torch.tensor(self.formula[start:], dtype=torch.float64)
        return self.flat[start : self.used]


def logits(layers, x, parameters):
    """x is examples x channels x rows x columns."""
    for layer in layers:
        kind = layer[0]
        if kind == "linear":
            if x.dim() == 4:
                x = x.permute(0, 2, 3, 1).flatten(1)
            inputs, units = x.shape[1], layer[1]
            uniform = lambda j: math.sin(j + 1) / math.sqrt(inputs)
            w = parameters.take(units * inputs, uniform).reshape(units, inputs)
            x = x @ w.T + parameters.take(units, uniform)
        elif kind == "convolution":
            _, channels, k, stride, padding = layer
            inputs = x.shape[1]
            uniform = lambda j: math.sin(j + 1) / math.sqrt(k * k * inputs)
            w = parameters.take(channels * k * k * inputs, uniform).reshape(channels, k, k, inputs).permute(0, 3, 1, 2)
            x = F.conv2d(x, w, parameters.take(channels, uniform), stride, padding)
        elif kind == "group-norm":
            scale = parameters.take(x.shape[1], lambda j: 1 + 0.1 * math.sin(j + 1))
            shift = parameters.take(x.shape[1], lambda j: 0.1 * math.sin(j + 1))
            x = F.group_norm(x, layer[1], scale, shift)
        elif kind == "max-pool":
            x = F.max_pool2d(x, layer[1], layer[2])
        elif kind == "average-pool":
            x = F.avg_pool2d(x, layer[1], layer[2])
        else:
            x = {"tanh": torch.tanh, "relu": torch.relu}[kind](x)
    return x


def evaluate(name):
    (height, width, channels), layers = NETWORKS[name]
    count = EXAMPLES * height * width * channels
    pixels = torch.tensor([(j * 97 + j * j * 31 + 7) % 256 for j in range(count)], dtype=torch.float64) / 255
    images = pixels.reshape(EXAMPLES, height, width, channels).permute(0, 3, 1, 2)
    first = Parameters()
    logits(layers, images[:1], first)
    flat = torch.tensor(first.formula, dtype=torch.float64, requires_grad=True)
    losses, norms, total = [], [], torch.zeros_like(flat)
    for i in range(EXAMPLES):
        loss = F.cross_entropy(logits(layers, images[i : i + 1], Parameters(flat)), torch.tensor([i % CLASSES]))
        (gradient,) = torch.autograd.grad(loss, flat)
        norm = gradient.norm().item()
        losses.append(loss.item())
        norms.append(norm)
        total += min(1.0, 1.0 / norm) * gradient
    p = len(flat)
    spread = [(2 * i + 1) * p // 16 for i in range(8)]
    return {
        "name": name,
        "parameters": p,
        "losses": losses,
        "norms": norms,
        "clipped_norm": total.norm().item(),
        "first": total[:8].tolist(),
        "spread": total[spread].tolist(),
    }


print(json.dumps({"torch": torch.__version__, "networks": [evaluate(name) for name in NETWORKS]}, indent=1))
