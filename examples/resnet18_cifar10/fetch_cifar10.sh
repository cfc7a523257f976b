#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads the official binary version of CIFAR-10 (Krizhevsky, 2009) and checks its hash.
#   fetch_cifar10.sh [FOLDER]     default: the current folder
set -euo pipefail

url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
md5=c32a1d4ab5d03f1284b67883e8d87530 # published on the data set's page
folder=${1:-.}
file="$folder/cifar-10-binary.tar.gz"

fail() { echo "fetch_cifar10.sh: $*" >&2; exit 1; }
matches() { [ "$(md5sum <"$1" | cut -d' ' -f1)" = "$md5" ]; }

mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] || fail "cannot write to $folder"
if [ -f "$file" ] && matches "$file"; then
  echo "$file is already there and its hash is right"
else
  partial=$(mktemp "$file.XXXXXX")
  trap 'rm -f "$partial"' EXIT
  if command -v curl >/dev/null; then
    curl -fL --progress-bar -o "$partial" "$url" || fail "cannot download $url"
  elif command -v wget >/dev/null; then
    wget -q --show-progress -O "$partial" "$url" || fail "cannot download $url"
  else
    fail "expected curl or wget; run: apt-get install curl"
  fi
  matches "$partial" || fail "the download's MD5 is not $md5; nothing was kept"
  chmod 644 "$partial"
  mv "$partial" "$file"
fi
echo "now run: examples/resnet18_cifar10/run.sh --data $file"
