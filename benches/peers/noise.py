#!/usr/bin/env python3
"""Noise by this workspace, by the OpenDP crate and by numpy, in one run.

    python -m venv venv && venv/bin/pip install numpy
    venv/bin/python benches/peers/noise.py

Builds and runs `cargo run --release -p benches --bin noise -- --jobs` and the package in `benches/peers/opendp`, then
numpy where it is installed, all on one thread, and prints a Markdown table of processor nanoseconds per coordinate and
the ratio to ours. numpy's generators are no cryptographic ones and its sums are plain floats: it is the floor of what
anyone does, not a way to release anything.
"""
import json
import os
import pathlib
import subprocess
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIM = 1000


def jobs(*command):
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {row["job"]: row["nanoseconds"] for row in map(json.loads, lines)}


def ours():
    return jobs("cargo", "run", "--release", "--quiet", "-p", "benches", "--bin", "noise", "--", "--jobs")


def opendp():
    manifest = str(ROOT / "benches" / "peers" / "opendp" / "Cargo.toml")
    return jobs("cargo", "run", "--release", "--quiet", "--manifest-path", manifest)


def numpy_jobs():
    import numpy

    rng = numpy.random.default_rng(7)
    value = numpy.full(DIM, 0.5)
    for name, draw in (("Gaussian", rng.standard_normal), ("Laplace", lambda dim: rng.laplace(size=dim))):
        least = float("inf")
        for _ in range(2000):
            begin = time.process_time_ns()
            value + 3.0 * draw(DIM)
            least = min(least, (time.process_time_ns() - begin) / DIM)
        yield f"{name}, plain floats", least


def main():
    answers = ours()
    print("| noise | by | ns per coordinate | times ours, exact |\n|---|---|---|---|")
    for job, nanoseconds in answers.items():
        reference = answers.get(job.split(",")[0] + ", exact", nanoseconds)
        print(f"| {job} | this workspace | {nanoseconds:.4g} | {nanoseconds / reference:.3g} |")
    peers = [("opendp 0.16", lambda: opendp().items()), ("numpy", numpy_jobs)]
    for name, peer in peers:
        try:
            for job, nanoseconds in peer():
                reference = answers[job.split(",")[0] + ", exact"]
                print(f"| {job} | {name} | {nanoseconds:.4g} | {nanoseconds / reference:.3g} |")
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            print(f"| | {name} | not run: {type(error).__name__} | |")


if __name__ == "__main__":
    main()
