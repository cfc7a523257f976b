#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One ResNet-18 (CIFAR stem) training step in PyTorch on the CPU: time and peak memory as JSON.

The peer of bench_resnet18_step; compare_cpu_step.py runs both. Channels-last and row-major are both
tried, and the faster one is reported.
"""
import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.downsample = None
        if stride != 1 or c_in != c_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self, width, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks, c = [], width
        for stage in range(4):
            for i in range(2):
                out = width << stage
                blocks.append(Block(c, out, 2 if stage > 0 and i == 0 else 1))
                c = out
        self.layers = nn.Sequential(*blocks)
        self.fc = nn.Linear(c, classes)

    def forward(self, x):
        x = self.layers(F.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


def measure(batch, width, steps, memory_format):
    torch.manual_seed(0)
    model = ResNet18(width).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4,
                                nesterov=True)
    x = torch.randn(batch, 3, 32, 32).to(memory_format=memory_format)
    y = torch.randint(0, 10, (batch,))
    times = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return sorted(times[1:])


p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--batch", type=int, default=128)
p.add_argument("--width", type=int, default=64)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--steps", type=int, default=5)
a = p.parse_args()
torch.set_num_threads(a.threads)
best = None
for name, memory_format in (("row_major", torch.contiguous_format),
                            ("channels_last", torch.channels_last)):
    times = measure(a.batch, a.width, a.steps, memory_format)
    if best is None or times[len(times) // 2] < best["median_s"]:
        best = {"library": f"torch {torch.__version__}", "format": name,
                "median_s": times[len(times) // 2], "min_s": times[0], "max_s": times[-1]}
best.update(batch=a.batch, width=a.width, threads=a.threads, steps=a.steps,
            peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(json.dumps(best))
