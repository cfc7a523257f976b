#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules that hold for gable's source tree as a whole.

usage: check_layers.py ROOT
  * a header includes only its own layer or ones to its left;
  * public headers include no heavy library, and name gable's own headers in full;
  * CUDA's preprocessor symbols are asked for in core/config.hpp only;
  * kernels are launched in cuda/runtime only;
  * gable.hpp includes every public header of the layers up to amp;
  * every source file starts with the license tag.
"""
import pathlib
import re
import sys

LAYERS = "core memory tensor ops autograd nn models optim amp io data train profile".split()
HEAVY = ("Eigen/", "hwy/", "iostream", "nlohmann/", "omp.h", "cuda", "cublas", "cudnn", "archive.h",
         "jpeglib.h", "CLI/")
UMBRELLA = LAYERS[:LAYERS.index("io")]  # what gable.hpp includes
NOT_IN_UMBRELLA = {"core/philox.hpp", "tensor/strided_loop.hpp", "tensor/ostream.hpp",
                   "tensor/eigen.hpp", "tensor/random_draw.hpp", "ops/kernel_list.hpp",
                   "ops/optimizer.hpp"}
BRIDGES = {"tensor/eigen.hpp": "Eigen/"}  # may include this one library

root = pathlib.Path(sys.argv[1])
include = root / "include" / "gable"
errors = []


def fail(path, line, text):
    errors.append(f"{path.relative_to(root)}:{line}: {text}")


for path in sorted(include.rglob("*.hpp")):
    name = path.relative_to(include).as_posix()
    layer = name.split("/")[0]
    if "/" in name and layer not in LAYERS:
        fail(path, 1, f"unknown layer {layer}")
        continue
    for number, text in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', text)
        if found:
            target = found.group(1)
            if target.startswith("gable/"):
                other = target.split("/")[1]
                if other not in LAYERS:
                    fail(path, number, f"includes {target}, which is in no layer")
                elif "/" in name and LAYERS.index(other) > LAYERS.index(layer):
                    fail(path, number, f"layer {layer} includes {target} from a layer to its right")
                elif name == "gable.hpp" and target[len("gable/"):] in BRIDGES:
                    fail(path, number, f"gable.hpp includes the bridge {target}")
            elif '"' in text:
                fail(path, number, f'includes "{target}"; write "gable/LAYER/..."')
            elif target.startswith(HEAVY) and not target.startswith(BRIDGES.get(name, "-")):
                fail(path, number, f"public header includes {target}")
        if "__CUDACC__" in text and name != "core/config.hpp":
            fail(path, number, "__CUDACC__ outside core/config.hpp")

# gable.hpp must keep up with the headers that it promises.
reached, stack = set(), ["gable.hpp"]
while stack:
    name = stack.pop()
    if name not in reached and (include / name).exists():
        reached.add(name)
        stack += re.findall(r'#\s*include\s*[<"]gable/([^>"]+)', (include / name).read_text())
for path in sorted(include.rglob("*.hpp")):
    name = path.relative_to(include).as_posix()
    if name.split("/")[0] in UMBRELLA and name not in reached | NOT_IN_UMBRELLA:
        fail(path, 1, "not reached from gable.hpp")

for folder in ("include", "src", "cuda", "tests", "bench", "examples"):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in {".hpp", ".cpp", ".cu", ".cuh"}:
            continue
        lines = path.read_text().splitlines()
        if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
            fail(path, 1, "first line is not the SPDX license tag")
        launcher = path.relative_to(root).as_posix().startswith("cuda/runtime/")
        if path.suffix in {".cu", ".cuh"} and not launcher:
            for number, text in enumerate(lines, 1):
                if re.search(r"<<<[^<]", text):
                    fail(path, number, "raw kernel launch; use cuda::launch")

print("\n".join(errors) if errors else "layers, includes, license tags: ok")
sys.exit(1 if errors else 0)
