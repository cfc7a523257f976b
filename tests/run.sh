#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up a Debian machine, builds gable and runs its tests; with --sanitize the same tests under
# AddressSanitizer and UndefinedBehaviorSanitizer, too.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tests/run.sh [--sanitize] [--help]
  --sanitize   after the plain build and its tests, the sanitizer build and its
Installs missing Debian packages (root or sudo), builds into build/ and build-asan/, and runs CTest.
GABLE_CIFAR10=PATH adds the tests on the real CIFAR-10 (official binary version, or JPEGs).
TEXT
}

sanitize=false
for argument in "$@"; do
  case "$argument" in
    --sanitize) sanitize=true ;;
    --help | -h) usage; exit 0 ;;
    *) echo "tests/run.sh: unknown option $argument" >&2; usage >&2; exit 2 ;;
  esac
done

cd "$(dirname "$0")/.."
sh cmake/install_packages.sh test
jobs=$(nproc)
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
verbosity=()
if ! [ -t 1 ]; then verbosity=(--quiet); fi # ninja's progress line needs a terminal

# Tests run side by side: threads that spin while they wait would take each other's cores.
export OMP_WAIT_POLICY=passive

started=$SECONDS
say() { printf '== %s (%d s)\n' "$*" $((SECONDS - started)); }

# build FOLDER OPTION...
build() {
  local folder=$1
  shift
  mkdir -p "$folder"
  cmake -S . -B "$folder" -G Ninja "${launcher[@]}" "$@" >"$folder/configure.log" 2>&1 ||
    { cat "$folder/configure.log"; exit 1; }
  grep '^-- gable:' "$folder/configure.log" || true
  cmake --build "$folder" -j "$jobs" -- "${verbosity[@]}"
}

# CUDA for the device that is here.
cuda=()
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  cuda=(-DGABLE_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=native)
fi
say "building into build/"
build build -DCMAKE_BUILD_TYPE=Release "${cuda[@]}"
say "running the tests"
ctest --test-dir build --output-on-failure -j "$jobs"
sed -n 's/^<gable/== &/p' build/Testing/Temporary/LastTest.log # header budget

if $sanitize; then
  say "building into build-asan/ with address and undefined-behaviour sanitizers"
  build build-asan -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" \
    "-DGABLE_SANITIZE=address;undefined" -DGABLE_WERROR=OFF -DGABLE_BUILD_BENCH=OFF \
    -DGABLE_BUILD_EXAMPLES=OFF -DGABLE_TREE_CHECKS=OFF -DGABLE_CUDA=OFF
  say "running the tests under the sanitizers"
  ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    ctest --test-dir build-asan --output-on-failure -j "$jobs"
fi
say "all tests passed"
