#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch and NumPy beside bench_matmul and bench_conv: the same shapes, GFLOP/s as JSON lines.

    python3 bench/peers/matmul_torch.py [--threads N] [--repetitions N]
"""
import argparse
import json
import statistics
import time

import numpy
import torch

MATMULS = [  # m, n, k, a transposed, b transposed
    (256, 256, 256, 0, 0), (1024, 1024, 1024, 0, 0), (2048, 2048, 512, 0, 0),
    (1024, 1024, 1024, 1, 0), (64, 576, 16384, 1, 0), (1024, 1024, 1024, 0, 1),
    (16384, 64, 576, 0, 1), (128, 512, 512, 0, 1), (128, 10, 512, 0, 1), (1, 4096, 4096, 0, 1)]
CONVS = [  # in, out, size, kernel, stride
    (3, 64, 32, 3, 1), (64, 64, 32, 3, 1), (64, 128, 32, 3, 2), (64, 128, 32, 1, 2),
    (128, 128, 16, 3, 1), (128, 256, 16, 3, 2), (256, 256, 8, 3, 1), (256, 512, 8, 3, 2),
    (512, 512, 4, 3, 1)]
IMAGES = 32


def measure(name, peer, flops, run, repetitions):
    run()
    real, cpu = [], []
    for _ in range(repetitions):
        count, start, start_cpu = 0, time.perf_counter(), time.process_time()
        while count == 0 or time.perf_counter() - start < 0.05:
            run()
            count += 1
        real.append(1e-9 * flops * count / (time.perf_counter() - start))
        cpu.append(1e-9 * flops * count / (time.process_time() - start_cpu))
    print(json.dumps({
        "name": name, "peer": peer, "GFLOP/s": {
            "mean": statistics.mean(real), "median": statistics.median(real),
            "stddev": statistics.stdev(real)},
        "GFLOP/cpu_s": {"median": statistics.median(cpu)}, "n": repetitions}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repetitions", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for m, n, k, ta, tb in MATMULS:
        a = torch.rand((k, m) if ta else (m, k)) - 0.5
        b = torch.rand((n, k) if tb else (k, n)) - 0.5
        a, b = (a.t() if ta else a), (b.t() if tb else b)
        out = torch.empty(m, n)
        name = f"float_matmul/{'nt'[ta]}{'nt'[tb]}/{m}/{n}/{k}"
        flops = 2 * m * n * k
        measure(name, "torch", flops, lambda: torch.mm(a, b, out=out), args.repetitions)
        x, y, z = a.numpy(), b.numpy(), out.numpy()
        measure(name, "numpy", flops, lambda: numpy.matmul(x, y, out=z), args.repetitions)
    gradient = torch.ops.aten.convolution_backward
    for channels, out, size, kernel, stride in CONVS:
        for layout, form in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
            x = torch.rand(IMAGES, channels, size, size).contiguous(memory_format=form)
            w = torch.rand(out, channels, kernel, kernel).contiguous(memory_format=form)
            pad = kernel // 2

            def forward():
                return torch.conv2d(x, w, None, stride, pad)

            y = forward()
            flops = 2 * y.numel() * channels * kernel * kernel

            def backward(mask):
                gradient(y, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)

            shape = f"{channels}/{out}/{size}/{kernel}/{stride}"
            with torch.no_grad():
                for name, run in (("forward", forward),
                                  ("input_gradient", lambda: backward([True, False, False])),
                                  ("weight_gradient", lambda: backward([False, True, False]))):
                    measure(f"conv/{name}/{shape}", f"torch_{layout}", flops, run,
                            args.repetitions)


if __name__ == "__main__":
    main()
