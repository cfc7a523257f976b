#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that gable needs and this machine lacks. CUDA is used where it is
# found and never installed.
#   install_packages.sh build|test
set -eu

# "package:command" is there, too, where the command is found.
build="g++:g++ cmake:cmake ninja-build:ninja libeigen3-dev libhwy-dev libjpeg-dev libarchive-dev
       nlohmann-json3-dev libcli11-dev gnuplot-nox:gnuplot"
test="ccache:ccache pkg-config:pkg-config libgtest-dev libbenchmark-dev
      clang-format:clang-format python3:python3"
case "${1:-build}" in
  build) wanted=$build ;;
  test) wanted="$build $test" ;;
  *) echo "usage: $0 build|test" >&2; exit 2 ;;
esac

missing=""
for entry in $wanted; do
  package=${entry%%:*}
  case "$entry" in *:*) if command -v "${entry#*:}" >/dev/null; then continue; fi ;; esac
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
    missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "gable: expected a Debian machine; install what corresponds to:$missing" >&2
  exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo"
else
  echo "gable: expected root or sudo to install packages; as root, run: apt-get install$missing" >&2
  exit 1
fi
echo "== installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { $as_root apt-get update &&
       $as_root env DEBIAN_FRONTEND=noninteractive \
         apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "gable: apt-get could not install$missing" >&2
  exit 1
fi
