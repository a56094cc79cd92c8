#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# useless.sh <attn-rt-test> <dir>: cache directories that can't be written. chmod wouldn't stop root, so: a file in the directory's
# place, a directory below /proc, a read-only mount, and a file system of 64 KB. The mounts live in a mount namespace of our own and are
# left out (said so) where that isn't allowed.
set -eu
test=$1 dir=$2
rm -rf "$dir"; mkdir -p "$dir/mount"
warns_once() {
  "$test" useless "$1" 2>"$dir/err" || { cat "$dir/err"; exit 1; }
  [ "$(grep -c 'warning: cannot write the kernel cache' "$dir/err")" = 1 ] || { echo "$1: expected one warning"; cat "$dir/err"; exit 1; }
  echo "right: $2"
}
: > "$dir/file"
warns_once "$dir/file" "a file"
warns_once "$dir/file/below" "below a file"
warns_once /proc/attnc "below /proc"
if unshare -m true 2>/dev/null && unshare -m mount -t tmpfs none "$dir/mount" 2>/dev/null; then
  export test dir
  unshare -m sh -euc 'mount -t tmpfs -o size=64k none "$dir/mount"; "$test" useless "$dir/mount/cache" 2>&1' | grep "No space left"
  unshare -m sh -euc 'mount -t tmpfs none "$dir/mount"; "$test" basics "$dir/mount/c"; mount -o remount,ro "$dir/mount"
                      "$test" readonly "$dir/mount/c"; "$test" useless "$dir/mount/c" 2>&1' | grep "Read-only"
else
  echo "not tried: mounts (not permitted here)"
fi
echo "all right"
