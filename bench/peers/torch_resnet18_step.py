#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One ResNet-18 (CIFAR stem) training step in PyTorch: time and peak memory as one line of JSON.

The peer of bench_resnet18_step; compare_resnet18_step.py runs both. On the CPU channels-last and
row-major are both tried, and the faster one is reported. On CUDA: channels-last, fused SGD, cuDNN's
own choice of algorithms, 16-bit types by autocast; --mode compile is torch.compile with CUDA graphs.
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


AMP = {"float": None, "bfloat16": torch.bfloat16, "half": torch.float16}


def measure(a, memory_format):
    torch.manual_seed(0)
    cuda = a.device.startswith("cuda")
    model = ResNet18(a.width).to(a.device, memory_format=memory_format)
    run = torch.compile(model, mode="reduce-overhead") if a.mode == "compile" else model
    extra = {"fused": True} if cuda else {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4,
                                nesterov=True, **extra)
    scaler = torch.amp.GradScaler() if a.dtype == "half" else None
    x = torch.randn(a.batch, 3, 32, 32, device=a.device).to(memory_format=memory_format)
    y = torch.randint(0, 10, (a.batch,), device=a.device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        if AMP[a.dtype] is None:
            loss = F.cross_entropy(run(x), y)
        else:
            with torch.autocast(a.device.split(":")[0], dtype=AMP[a.dtype]):
                loss = F.cross_entropy(run(x), y)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    for _ in range(a.warmup):
        step()
    steps_a_sample = 10 if cuda else 1
    times = []
    for _ in range(a.steps):
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps_a_sample):
            step()
        if cuda:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / steps_a_sample)
    return sorted(times)


p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--device", default="cpu")
p.add_argument("--dtype", default="float", choices=list(AMP))
p.add_argument("--mode", default="eager", choices=["eager", "compile"])
p.add_argument("--tf32", action="store_true", help="let float products run in TF32")
p.add_argument("--batch", type=int, default=128)
p.add_argument("--width", type=int, default=64)
p.add_argument("--threads", type=int, default=0)
p.add_argument("--steps", type=int, default=5)
p.add_argument("--warmup", type=int, default=1)
a = p.parse_args()
if a.threads > 0:
    torch.set_num_threads(a.threads)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = a.tf32
torch.backends.cudnn.allow_tf32 = a.tf32
formats = [("channels_last", torch.channels_last)]
if a.device == "cpu":
    formats.append(("row_major", torch.contiguous_format))
best = None
for name, memory_format in formats:
    times = measure(a, memory_format)
    if best is None or times[len(times) // 2] < best["median_s"]:
        best = {"library": f"torch {torch.__version__}", "format": name,
                "median_s": times[len(times) // 2], "min_s": times[0], "max_s": times[-1]}
best.update(device=a.device, dtype=a.dtype, mode=a.mode, batch=a.batch, width=a.width,
            threads=torch.get_num_threads(), samples=a.steps,
            peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(json.dumps(best))
