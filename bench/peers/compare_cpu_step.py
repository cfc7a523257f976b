#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ResNet-18 training step of gable and of PyTorch on this machine's CPU, alternating, and
prints time, peak memory and their ratios; --json keeps them.

usage: compare_cpu_step.py BENCH_RESNET18_STEP [--python PYTHON] [--batch N] [--json FILE]
"""
import argparse
import json
import pathlib
import platform
import subprocess

p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
p.add_argument("bench", help="the program bench_resnet18_step")
p.add_argument("--python", default="python3", help="a Python that has torch")
p.add_argument("--batch", type=int, default=128)
p.add_argument("--width", type=int, default=64)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--steps", type=int, default=5)
p.add_argument("--rounds", type=int, default=2, help="alternating runs of each side")
p.add_argument("--json", type=pathlib.Path)
a = p.parse_args()

peer = pathlib.Path(__file__).with_name("torch_resnet18_step.py")
options = [f"--{n}={getattr(a, n)}" for n in ("batch", "width", "threads", "steps")]
runs = {"gable": [], "torch": []}
for _ in range(a.rounds):
    for side, command in (("gable", [a.bench]), ("torch", [a.python, str(peer)])):
        out = subprocess.run(command + options, check=True, text=True, stdout=subprocess.PIPE)
        runs[side].append(json.loads(out.stdout.splitlines()[-1]))


def best(side, key):
    return min(r[key] for r in runs[side])


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


result = {
    "what": "ResNet-18 (CIFAR stem) training step on the CPU, float32",
    "cpu": cpu_name(), "threads": a.threads, "batch": a.batch, "width": a.width,
    "time_ratio": best("torch", "median_s") / best("gable", "median_s"),
    "memory_ratio": best("torch", "peak_rss_mib") / best("gable", "peak_rss_mib"),
    "runs": runs,
}
print(f"{'':8}{'median s':>10}{'peak MiB':>10}")
for side in runs:
    print(f"{side:8}{best(side, 'median_s'):10.2f}{best(side, 'peak_rss_mib'):10.0f}")
print(f"gable is {result['time_ratio']:.2f} times as fast and needs "
      f"{1 / result['memory_ratio']:.2f} times the memory")
if a.json:
    a.json.write_text(json.dumps(result, indent=1) + "\n")
