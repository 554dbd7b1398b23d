#!/usr/bin/env python3
"""The same accounting jobs by this workspace and by Python packages, in one run.

    python -m venv venv && venv/bin/pip install dp-accounting prv-accountant autodp opacus
    venv/bin/python benches/peers/accounting.py

Builds and runs `cargo run --release -p benches --bin accounting -- --jobs`, then each package that is installed, all
on one thread, and prints a Markdown table of answers, least processor milliseconds and the ratio to ours.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import importlib.metadata
import json
import pathlib
import subprocess
import time
import warnings

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
Q, SIGMA, STEPS, DELTA, TARGET = 0.01, 1.0, 10_000, 1e-5, 1.0


def ours():
    command = ["cargo", "run", "--release", "--quiet", "-p", "benches", "--bin", "accounting", "--", "--jobs"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {row["job"]: (row["answer"], row["seconds"]) for row in map(json.loads, lines)}


def installed(name):
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def dp_accounting():
    import dp_accounting as da
    from dp_accounting import gaussian_mechanism, pld, rdp
    from dp_accounting.pld import privacy_loss_distribution

    def event(sigma):
        return da.SelfComposedDpEvent(da.PoissonSampledDpEvent(Q, da.GaussianDpEvent(sigma)), STEPS)

    def epsilon(accountant):
        accountant.compose(event(SIGMA))
        return accountant.get_epsilon(DELTA)

    def calibrate(make):
        return da.calibrate_dp_mechanism(make, event, TARGET, DELTA, tol=1e-3)

    def laplace():
        single = privacy_loss_distribution.from_laplace_mechanism(20.0, value_discretization_interval=1e-4)
        return single.self_compose(1000).get_epsilon_for_delta(1e-6)

    yield "exact epsilon, both ends", "upper end only", lambda: epsilon(pld.PLDAccountant())
    yield "Renyi epsilon", "default orders", lambda: epsilon(rdp.RdpAccountant())
    yield "noise multiplier, exact", "PLD, to 1e-3", lambda: calibrate(pld.PLDAccountant)
    yield "analytic Gaussian", "", lambda: gaussian_mechanism.get_sigma_gaussian(TARGET, DELTA)
    yield "1000 Laplace releases", "upper end only", laplace


def prv_accountant():
    from prv_accountant.dpsgd import DPSGDAccountant, find_noise_multiplier

    def both_ends():
        accountant = DPSGDAccountant(
            noise_multiplier=SIGMA, sampling_probability=Q, max_steps=STEPS, eps_error=0.1, delta_error=DELTA / 1000
        )
        return [float(x) for x in accountant.compute_epsilon(delta=DELTA, num_steps=STEPS)]

    yield "exact epsilon, both ends", "error 0.1", both_ends
    yield "noise multiplier, exact", "error 0.01", lambda: float(
        find_noise_multiplier(Q, STEPS, TARGET, DELTA, eps_error=0.01)
    )


def autodp():
    from autodp import rdp_acct, rdp_bank  # first: its modules import each other
    from autodp import privacy_calibrator

    def renyi():
        accountant = rdp_acct.anaRDPacct()
        accountant.compose_poisson_subsampled_mechanisms(
            lambda order: rdp_bank.RDP_gaussian({"sigma": SIGMA}, order), Q, coeff=STEPS
        )
        return float(accountant.get_eps(DELTA))

    yield "Renyi epsilon", "", renyi
    yield "analytic Gaussian", "", lambda: float(privacy_calibrator.ana_gaussian_mech(TARGET, DELTA)["sigma"])


def opacus():
    from opacus.accountants import PRVAccountant, RDPAccountant

    def epsilon(make):
        accountant = make()
        accountant.history = [(SIGMA, Q, STEPS)]
        return float(accountant.get_epsilon(delta=DELTA))

    yield "Renyi epsilon", "", lambda: epsilon(RDPAccountant)
    yield "exact epsilon, both ends", "PRV, upper end only", lambda: epsilon(PRVAccountant)


def least_seconds(job):
    begin = time.process_time()
    answer = job()
    first = time.process_time() - begin
    least = first
    for _ in range(1 if first > 10 else 3 if first > 1 else 10):
        begin = time.process_time()
        answer = job()
        least = min(least, time.process_time() - begin)
    return answer, least


def shown(answer):
    return " .. ".join(f"{x:.9g}" for x in answer) if isinstance(answer, list) else f"{answer:.9g}"


def main():
    answers = ours()
    print(f"DP-SGD: q = {Q}, sigma = {SIGMA}, {STEPS} steps, delta = {DELTA}; calibrated to epsilon = {TARGET}\n")
    print("| job | by | answer | ms | times ours |\n|---|---|---|---|---|")
    for job, (answer, seconds) in answers.items():
        print(f"| {job} | dp-accountant | {shown(answer)} | {1e3 * seconds:.4g} | 1 |")
    peers = {"dp-accounting": dp_accounting, "prv-accountant": prv_accountant, "autodp": autodp, "opacus": opacus}
    for package, jobs in peers.items():
        name = installed(package)
        if name is None:
            print(f"| | {package} | not installed | | |")
            continue
        try:
            for job, note, run in jobs():
                answer, seconds = least_seconds(run)
                ratio = seconds / answers[job][1]
                by = f"{name} ({note})" if note else name
                print(f"| {job} | {by} | {shown(answer)} | {1e3 * seconds:.4g} | {ratio:,.0f} |", flush=True)
        except Exception as error:  # what a package cannot do is a result too
            print(f"| | {name} | {type(error).__name__}: {error} | | |")


if __name__ == "__main__":
    main()
