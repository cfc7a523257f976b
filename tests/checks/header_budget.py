#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Enforces the size of <gable/gable.hpp> and prints what it costs to parse.

usage: header_budget.py COMPILER INCLUDE_DIR
Fails above 130,000 preprocessed lines. The parse time is printed beside that of the standard
headers it uses (aim: at most 2.5 times); it is not enforced, since times are noisy.
"""
import re
import subprocess
import sys
import tempfile
import time

LIMIT = 130_000
compiler, include = sys.argv[1:3]
command = [compiler, "-std=c++20", "-x", "c++", "-I", include]


def preprocess(source):
    return subprocess.run(command + ["-E", "-"], input=source, text=True, check=True,
                          stdout=subprocess.PIPE).stdout


def parse_seconds(source):
    best = 1e9
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command + ["-fsyntax-only", "-"], input=source, text=True, check=True)
        best = min(best, time.perf_counter() - start)
    return best


text = preprocess("#include <gable/gable.hpp>\n")
lines = sum(1 for line in text.splitlines() if line.strip() and not line.startswith("#"))
standard = sorted({m.group(1) for m in re.finditer(
    r'^# \d+ "/usr/include/c\+\+/\d+/([a-z_]+)"', text, re.M)})
ours = parse_seconds("#include <gable/gable.hpp>\n")
theirs = parse_seconds("".join(f"#include <{h}>\n" for h in standard))
print(f"<gable/gable.hpp>: {lines} preprocessed lines (limit {LIMIT}); parse {ours:.2f} s, "
      f"{ours / theirs:.2f} times the {len(standard)} standard headers it uses ({theirs:.2f} s)")
sys.exit(0 if lines <= LIMIT else 1)
