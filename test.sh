#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds what is not up to date and runs the tests.
#
#   ./test.sh           the short tier: every test, sweeps as samples; at most 10
#                       minutes on two cores. CI runs it for each change.
#   ./test.sh --long    the long tier: every sweep in full, about an hour on two
#                       cores. It has to pass before an issue is resolved.
#
# Other arguments go to lit, also with --long (docs/Testing.md says which part a
# change asks for):
#   ./test.sh --filter=Runtime
#   ./test.sh --long --filter=Nvrtc
#
# The last line reads `N passed, N failed`, with `, N skipped` when tests need
# something that this machine lacks (a GPU, most of the time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tier=short arguments=()
for argument in "$@"; do
  if [ "$argument" = --long ]; then tier=long; else arguments+=("$argument"); fi
done

# PyTorch and JAX for test/Python, once for all checkouts; beside the build, as soon as python3-venv is there.
mkdir -p build
(until /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; do sleep 1; done
 timeout 600 test/Python/frameworks.sh) >build/frameworks.log 2>&1 &
frameworks=$!
trap 'kill $frameworks 2>/dev/null || true' EXIT

./setup.sh --no-run
wait $frameworks || true
printf '\nFor test/Python:\n'
sed 's/^/  /' build/frameworks.log

results=build/test/results.json
rm -f "$results"
style=-v # one line a test; a terminal gets a progress bar
[ ! -t 1 ] || style=-sv
printf '\n'
status=0
/usr/bin/python3 /usr/lib/llvm-22/bin/lit $style -Dtier=$tier --output "$results" "${arguments[@]}" build/test || status=$?

.venv/bin/python - "$results" "$status" <<'PY'
import json, sys
status = int(sys.argv[2])
try:
    codes = [test["code"] for test in json.load(open(sys.argv[1]))["tests"]]
except (OSError, ValueError):
    codes = []
skipped = codes.count("UNSUPPORTED")
passed = sum(code in ("PASS", "FLAKYPASS", "XFAIL") for code in codes)
failed = len(codes) - passed - skipped
if passed + failed == 0:
    print("test.sh: error: no test was run", file=sys.stderr)
    status = status or 1
print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(status)
PY
