#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ResNet-18 training step of gable and of PyTorch on this machine, alternating, and prints
time, peak memory and their ratios; --json keeps them.

    compare_resnet18_step.py BENCH_RESNET18_STEP                  on the CPU
    compare_resnet18_step.py BENCH_RESNET18_STEP --device cuda    eager and compiled, by dtype
"""
import argparse
import json
import pathlib
import platform
import subprocess

p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
p.add_argument("bench", help="the program bench_resnet18_step")
p.add_argument("--python", default="python3", help="a Python that has torch")
p.add_argument("--device", default="cpu")
p.add_argument("--dtypes", default=None, help="by commas; float, on CUDA bfloat16 too")
p.add_argument("--batch", type=int, default=128)
p.add_argument("--width", type=int, default=64)
p.add_argument("--threads", type=int, default=2, help="on the CPU")
p.add_argument("--steps", type=int, default=5)
p.add_argument("--warmup", type=int, default=1)
p.add_argument("--rounds", type=int, default=2, help="alternating runs of each side")
p.add_argument("--json", type=pathlib.Path)
a = p.parse_args()
cuda = a.device.startswith("cuda")
dtypes = (a.dtypes or ("float,bfloat16" if cuda else "float")).split(",")
peer = str(pathlib.Path(__file__).with_name("torch_resnet18_step.py"))


def run(command, dtype):
    options = [f"--{n}={getattr(a, n)}" for n in ("device", "batch", "width", "steps", "warmup")]
    options.append(f"--dtype={dtype}")
    if not cuda:
        options.append(f"--threads={a.threads}")
    out = subprocess.run(command + options, check=True, text=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout.splitlines()[-1])


def best(runs, key):
    return min(r[key] for r in runs)


def processor():
    if cuda:
        return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version",
                               "--format=csv,noheader"], text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


sides = {"gable": [a.bench], "torch": [a.python, peer]}
if cuda:
    sides["torch compiled"] = [a.python, peer, "--mode=compile"]
result = {"what": "ResNet-18 (CIFAR stem) training step", "processor": processor(),
          "batch": a.batch, "width": a.width, "dtypes": {}}
print(f"{'':24}{'median ms':>10}{'peak MiB':>10}{'times gable':>13}")
for dtype in dtypes:
    runs = {side: [] for side in sides}
    for _ in range(a.rounds):
        for side, command in sides.items():
            runs[side].append(run(command, dtype))
    own = best(runs["gable"], "median_s")
    ratios = {side: best(runs[side], "median_s") / own for side in sides}
    result["dtypes"][dtype] = {"ratios": ratios, "runs": runs}
    for side in sides:
        print(f"{dtype + ' ' + side:24}{best(runs[side], 'median_s') * 1e3:10.2f}"
              f"{best(runs[side], 'peak_rss_mib'):10.0f}{ratios[side]:13.2f}")
if a.json:
    a.json.write_text(json.dumps(result, indent=1) + "\n")
