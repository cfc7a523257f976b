#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the consumer against gable as another project would.
#   run.sh package BUILD_DIR SOURCE_DIR WORK_DIR COMPILER [CMAKE_OPTION...]
#       installs, moves the prefix, then find_package and pkg-config
#   run.sh subdirectory BUILD_DIR SOURCE_DIR WORK_DIR COMPILER [CMAKE_OPTION...]
#       add_subdirectory; the options, equal to those of BUILD_DIR, let ccache find its objects
set -eu
mode=$1 build=$2 source=$3 work=$4 compiler=$5
shift 5
rm -rf "$work"
mkdir -p "$work"
consumer="$source/tests/consumer"

configure_and_run() {
  if command -v ccache >/dev/null; then set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  cmake -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" -S "$consumer" \
    -B "$work/build" "$@" >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
  cmake --build "$work/build" -- --quiet
  "$work/build/consumer"
}

case "$mode" in
  package)
    cmake --install "$build" --prefix "$work/first" >/dev/null
    mv "$work/first" "$work/moved"
    # Folders below the source only: its own path may be as short as /gable.
    for folder in "$build" "$source/src" "$source/include" "$source/tests" "$work/first"; do
      if grep -rlF "$folder" "$work/moved"; then
        echo "the installed files above hold the path $folder" >&2
        exit 1
      fi
    done
    configure_and_run "-DCMAKE_PREFIX_PATH=$work/moved"

    pc=$(find "$work/moved" -name gable.pc)
    libraries=$(dirname "$(dirname "$pc")")
    export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries"
    # shellcheck disable=SC2046
    "$compiler" -std=c++20 "$consumer/main.cpp" -o "$work/by_pkg_config" \
      $(pkg-config --cflags --libs gable)
    "$work/by_pkg_config"
    ;;
  subdirectory)
    configure_and_run "-DGABLE_SOURCE=$source" -DGABLE_WERROR=ON "$@"
    ;;
  *) echo "run.sh: unknown mode $mode" >&2; exit 2 ;;
esac
