#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up a Debian machine, builds the ResNet-18 example and runs it. Arguments go to the example
# (--help lists them), which takes CIFAR-10 where --data or GABLE_CIFAR10 points to it, else the
# built-in data set, and says which.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build="$root/build-example"

sh "$root/cmake/install_packages.sh" build
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
# CUDA for the device that is here, and not at all without one.
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  cuda=(-DGABLE_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=native)
else
  cuda=(-DGABLE_CUDA=OFF)
fi
verbosity=()
if ! [ -t 1 ]; then verbosity=(--quiet); fi # ninja's progress line needs a terminal

echo "== building the example into ${build#"$root"/}/ (minutes the first time)"
mkdir -p "$build"
cmake -S "$root" -B "$build" -G Ninja "${launcher[@]}" "${cuda[@]}" -DCMAKE_BUILD_TYPE=Release \
  -DGABLE_BUILD_TESTS=OFF -DGABLE_BUILD_BENCH=OFF >"$build/configure.log" 2>&1 ||
  { cat "$build/configure.log"; exit 1; }
cmake --build "$build" --target resnet18_cifar10 -- "${verbosity[@]}"

# Training on the CPU takes the quick setting.
is_training=true
on_cpu=false
previous=
for argument in "$@"; do
  case "$argument" in
    predict | --help | -h | --eval | --resume | --quick) is_training=false ;;
    --device=cpu) on_cpu=true ;;
    cpu) if [ "$previous" = --device ]; then on_cpu=true; fi ;;
  esac
  previous=$argument
done
if grep -q 'gable: CUDA backend left out' "$build/configure.log"; then
  on_cpu=true
fi
if $is_training && $on_cpu; then
  echo "== no CUDA: --quick, unless options say otherwise"
  set -- "$@" --quick
fi
exec "$build/examples/resnet18_cifar10" "$@"
