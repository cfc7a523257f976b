#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the consumer against gable both ways, and by pkg-config.
#   run.sh package BUILD_DIR SOURCE_DIR WORK_DIR     installs, moves the prefix, find_package
#   run.sh subdirectory BUILD_DIR SOURCE_DIR WORK_DIR
set -eu
mode=$1 build=$2 source=$3 work=$4
rm -rf "$work"
mkdir -p "$work"
consumer="$source/tests/consumer"
configure="cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -S $consumer -B $work/build"
if command -v ccache >/dev/null; then configure="$configure -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"; fi

case "$mode" in
  package)
    cmake --install "$build" --prefix "$work/first" >/dev/null
    mv "$work/first" "$work/moved"
    for folder in "$build" "$source" "$work/first"; do
      if grep -rIlF "$folder" "$work/moved"; then
        echo "the installed files above hold the path $folder" >&2
        exit 1
      fi
      if grep -rlF "$folder" "$work/moved"; then
        echo "the installed binaries above hold the path $folder" >&2
        exit 1
      fi
    done
    $configure "-DCMAKE_PREFIX_PATH=$work/moved" >/dev/null
    cmake --build "$work/build" -- --quiet
    "$work/build/consumer"
    pc=$(find "$work/moved" -name gable.pc)
    flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs --static gable)
    # shellcheck disable=SC2086
    c++ -std=c++20 "$consumer/main.cpp" -o "$work/by_pkg_config" $flags
    LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")") "$work/by_pkg_config"
    ;;
  subdirectory)
    $configure "-DGABLE_SOURCE=$source" >/dev/null
    cmake --build "$work/build" -- --quiet
    "$work/build/consumer"
    ;;
esac
