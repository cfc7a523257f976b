#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up a Debian machine, builds the ResNet-18 example and runs it. Arguments go to the example
# (see --help). Uses CIFAR-10 where --data or GABLE_CIFAR10 points to it, else the built-in data
# set. Without a GPU and without arguments it takes the quick setting.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

sh "$root/cmake/install_packages.sh" build
build="$root/build-example"
echo "== building the example into $(basename "$build")/"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGABLE_BUILD_TESTS=OFF \
  -DGABLE_BUILD_BENCH=OFF >"$root/.example-configure.log" ||
  { cat "$root/.example-configure.log"; exit 1; }
rm -f "$root/.example-configure.log"
cmake --build "$build" --target resnet18_cifar10 -- --quiet

if [ $# -eq 0 ]; then set -- --quick; fi
exec "$build/examples/resnet18_cifar10" "$@"
