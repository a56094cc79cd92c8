#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# torture.sh <attn-rt-test> <dir>: two processes build and read forty entries as fast as they can, and one of them is killed over and over, at
# any time. The survivor must never see anything but right kernels, nor must those who come later.
set -eu
test=$1 dir=$2
rm -rf "$dir"
"$test" torture "$dir" & survivor=$!
i=0
while [ $i -lt 60 ]; do
  [ $((i % 10)) = 0 ] && rm -rf "$dir/v1"/*-* # so that there is something to build
  "$test" torture "$dir" & victim=$!
  sleep 0.0$((i % 6 + 1))
  kill -9 $victim
  wait $victim 2>/dev/null || true
  i=$((i + 1))
done
kill -0 $survivor || { echo "the survivor is dead"; exit 1; }
kill -9 $survivor
wait $survivor 2>/dev/null || true
"$test" recover "$dir"
