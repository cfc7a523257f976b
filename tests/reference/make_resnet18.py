#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes resnet18.f32, the PyTorch results that tests/resnet_reference_test.cpp compares with.

    python3 tests/reference/make_resnet18.py [OUTPUT]

ResNet-18 with the CIFAR stem, float32, three steps of SGD (lr 0.005, momentum 0.9, Nesterov, weight
decay 5e-4) on one batch of 8 images. Weights, images and labels come from an integer hash, which
the C++ test repeats bit for bit, so that no weights need to be stored.

The file is little-endian float32:
  width 4, images of 32x32: 3 losses; every gradient after the first backward; every parameter
      after the third step; every running mean and variance after the third step
  width 64, images of 16x16: 3 losses; of each of the same tensors its norm and 32 projections on
      +-1 vectors
Tensors are in the order of state_dict() and row-major.

A gradient jumps where a ReLU's input crosses 0. With a million activations one of them lies within
float32 rounding of 0 more often than not, which alone changes gradients by 1e-3 or more; so the
script checks that PyTorch's own float32 and float64 gradients agree on the batch that it stores.
"""
import sys

import numpy as np
import torch
from torch import nn

BATCH = 8
LR = 0.005


def hash32(x):
    """Chris Wellons' lowbias32."""
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def uniform(count, stream):
    """float64 in [-1, 1): element i of a stream."""
    start = np.uint32((stream * 0x9E3779B9) % 2**32)
    bits = hash32(np.arange(count, dtype=np.uint32) + start)
    return (bits >> np.uint32(8)).astype(np.float64) * 2.0**-23 - 1.0


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """torchvision's resnet18 but for the stem and the width."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for stage in range(4):
            channels = width << stage
            blocks = [BasicBlock(inputs, channels, 1 if stage == 0 else 2),
                      BasicBlock(channels, channels, 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = channels
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        for stage in range(4):
            y = getattr(self, f"layer{stage + 1}")(y)
        return self.fc(y.mean((2, 3)))


def set_weights(model):
    for stream, (name, p) in enumerate(model.named_parameters(), start=1):
        u = uniform(p.numel(), stream)
        if p.dim() == 4:  # Kaiming uniform, fan out
            values = u * np.sqrt(6.0 / (p.shape[0] * p.shape[2] * p.shape[3]))
        elif p.dim() == 2:
            values = u / np.sqrt(float(p.shape[1]))
        elif name.endswith("weight"):  # norms
            values = 1.0 + 0.2 * u
        else:
            values = 0.2 * u
        with torch.no_grad():
            p.copy_(torch.from_numpy(values.reshape(p.shape).astype(np.float32)).to(p.dtype))


def train(width, size, dtype=torch.float32):
    """Losses; gradients of the first step, parameters and statistics after the third; names."""
    model = ResNet18(width).to(dtype)
    set_weights(model)
    images = (uniform(BATCH * 3 * size * size, 1000) * np.sqrt(3.0)).reshape(BATCH, 3, size, size)
    x = torch.from_numpy(images.astype(np.float32)).to(dtype)
    labels = torch.from_numpy((hash32(np.arange(BATCH) + 77) % 10).astype(np.int64))
    sgd = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, nesterov=True, weight_decay=5e-4)
    losses, gradients = [], []
    for step in range(3):
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        if step == 0:
            gradients = [p.grad.detach().clone() for p in model.parameters()]
        sgd.step()
        losses.append(float(loss))
    tensors = gradients + [p.detach() for p in model.parameters()]
    tensors += [b for b in model.buffers() if b.dim() == 1]
    names = [n for n, _ in model.named_parameters()]
    return losses, [t.contiguous().numpy().ravel() for t in tensors], names


def summary(values):
    """Norm and 32 projections: projection j has the sign of bit j of hash(i)."""
    v = values.astype(np.float64)
    bits = hash32(np.arange(v.size))
    out = [np.sqrt(np.sum(v * v))]
    for j in range(32):
        signs = 1.0 - 2.0 * ((bits >> np.uint32(j)) & np.uint32(1)).astype(np.float64)
        out.append(np.sum(v * signs))
    return np.array(out)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "tests/reference/resnet18.f32"
    parts = []
    for width, size in ((4, 32), (64, 16)):
        losses, tensors, names = train(width, size)
        _, exact, _ = train(width, size, torch.float64)
        worst = max((np.linalg.norm(a - b) / np.linalg.norm(b), i)
                    for i, (a, b) in enumerate(zip(tensors[:len(names)], exact)))
        print(f"width {width}: losses {losses}; float32 against float64: {worst[0]:.1e} in the "
              f"gradient of {names[worst[1]]}")
        assert worst[0] < 2e-5, "ill-conditioned: choose other images"
        parts.append(np.array(losses))
        parts += tensors if width == 4 else [summary(t) for t in tensors]
    data = np.concatenate([np.asarray(p, dtype="<f4").ravel() for p in parts])
    data.tofile(path)
    print(f"{path}: {data.nbytes} bytes, torch {torch.__version__}")


if __name__ == "__main__":
    main()
