#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A virtual environment with PyTorch, JAX and transformers for the tests of the Python package, on the CPU. It is made once
# and kept in ~/.cache/attnc-frameworks, for all checkouts. PyPI has PyTorch for Linux with CUDA alone: it is installed without NVIDIA's
# packages, and cpu-torch.py makes libraries that let it run.
#
#   frameworks.sh          makes what is missing; prints what is there, and why something is not
#   frameworks.sh --where  prints the folder, and makes nothing
#
set -euo pipefail
TORCH=2.11.0 JAX=0.10.2 TRANSFORMERS=5.17.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
folder=${XDG_CACHE_HOME:-$HOME/.cache}/attnc-frameworks/$version-torch$TORCH-jax$JAX
if [ "${1:-}" = --where ]; then
  echo "$folder"
  exit
fi
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9 # one at a time

python=$folder/venv/bin/python
pip=("$python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 30)
attempt() { # name, version where the folder's name has none, command...: leaves NAME.done, or NAME.failed with the reason
  local name=$1 version=$2
  shift 2
  [ ! -f "$folder/$name.done" ] || [ "$(cat "$folder/$name.done")" != "$version" ] || { echo "$name: there"; return 0; }
  rm -f "$folder/$name.done"
  if "$@" >"$folder/$name.log" 2>&1; then
    rm -f "$folder/$name.failed"
    printf %s "$version" >"$folder/$name.done"
    echo "$name: installed"
  else
    grep -i "error" "$folder/$name.log" | tail -n 1 >"$folder/$name.failed" || echo "see $folder/$name.log" >"$folder/$name.failed"
    echo "$name: cannot be installed: $(cat "$folder/$name.failed")"
    return 1
  fi
}
base() {
  /usr/bin/python3 -m venv --clear "$folder/venv" && "${pip[@]}" numpy pytest hypothesis
}
torch() {
  "${pip[@]}" --no-deps "torch==$TORCH" &&
    "${pip[@]}" filelock typing_extensions sympy networkx jinja2 fsspec &&
    "${pip[@]}" --no-deps attn-gym &&
    "$python" "$here/cpu-torch.py" "$folder"/venv/lib/python3*/site-packages/torch/lib "$folder/lib" &&
    LD_LIBRARY_PATH=$folder/lib "$python" -c 'import torch; assert not torch.cuda.is_available()'
}
jax() { "${pip[@]}" "jax==$JAX" "jaxlib==$JAX" flatbuffers && "$python" -c 'import jax; jax.numpy.ones(1)'; }
transformers() { # none of its requirements is PyTorch
  "${pip[@]}" "transformers==$TRANSFORMERS" &&
    LD_LIBRARY_PATH=$folder/lib "$python" -c 'import transformers.models.llama.modeling_llama'
}

attempt base "" base || exit 0
attempt torch "" torch && attempt transformers "$TRANSFORMERS" transformers || true
attempt jax "" jax || true
