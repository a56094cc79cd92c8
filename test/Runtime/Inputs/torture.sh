#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# torture.sh <attn-rt-test> <dir>: two processes build and read forty entries as fast as they can, and one of them is killed over and over, at
# any time. The survivor must never see anything but right kernels, nor must those who come later.
set -eu
test=$1 dir=$2
rm -rf "$dir"
"$test" torture "$dir" & survivor=$!
# It never ends by itself, and who reads our output would wait for it.
trap 'kill -9 $survivor 2>/dev/null || true' EXIT
i=0
while [ $i -lt 60 ]; do
  if [ $((i % 10)) = 0 ]; then # so that there is something to build
    # An entry may be published into a directory that rm has just emptied: then it's not removed, and rm says so.
    rm -rf "$dir/v3"/*-* 2>/dev/null || true
  fi
  "$test" torture "$dir" & victim=$!
  sleep 0.0$((i % 6 + 1))
  kill -9 $victim || { echo "the victim died before its time"; exit 1; }
  wait $victim 2>/dev/null || true
  i=$((i + 1))
done
kill -0 $survivor || { echo "the survivor is dead"; exit 1; }
kill -9 $survivor
wait $survivor 2>/dev/null || true
"$test" recover "$dir"
