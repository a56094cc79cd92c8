#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# readonly.sh <attn-rt-test> <dir>: a read-only root on a mount that can't be written, in a mount namespace of our own;
# left out (said so) where that isn't allowed.
set -eu
test=$1 dir=$2
rm -rf "$dir"; mkdir -p "$dir"
if unshare -m true 2>/dev/null && unshare -m mount -t tmpfs none "$dir" 2>/dev/null; then
  export test dir
  unshare -m sh -euc 'mount -t tmpfs none "$dir"; "$test" basics "$dir/c"; mount -o remount,ro "$dir"
                      "$test" readonly-mounted "$dir/c"'
else
  echo "not tried: mounts (not permitted here)"
fi
