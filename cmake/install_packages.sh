#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that gable needs and this machine lacks. CUDA is used where it is
# found and never installed.
#   install_packages.sh build|test
set -eu

build="g++ cmake ninja-build libeigen3-dev libhwy-dev libjpeg-dev libarchive-dev
       nlohmann-json3-dev libcli11-dev"
case "${1:-build}" in
  build) wanted="$build gnuplot-nox" ;;
  test) wanted="$build ccache pkg-config libgtest-dev libbenchmark-dev clang-format python3 gnuplot-nox" ;;
  *) echo "usage: $0 build|test" >&2; exit 2 ;;
esac

missing=""
for package in $wanted; do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
    missing="$missing $package"
done
[ -z "$missing" ] && exit 0

echo "gable: installing$missing"
if [ "$(id -u)" -eq 0 ]; then as_root=""; else as_root="sudo"; fi
if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
  echo "gable: expected root or sudo to install packages; run: apt-get install$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
