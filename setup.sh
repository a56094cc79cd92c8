#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sets up a Debian machine, builds attnc and runs the problem of docs/Tour.md.
# Installs only what is missing, so a second run is quick.
#
#   ./setup.sh              all of it
#   ./setup.sh --no-run     stop after the build (test.sh does this)
#   ./setup.sh --no-cuda    leave NVRTC out: the cpu target only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

PACKAGES=(g++ cmake ninja-build lld pkgconf libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
          libfmt-dev nlohmann-json3-dev libzstd-dev zlib1g-dev
          python3 python3-venv python3-psutil)
SYSTEM_GB=3 # what PACKAGES take on a bare machine, with their downloads
CLONE_GB=2  # what the build and .venv take
PYTHON=.venv/bin/python
cuda=yes run=yes

step() { printf '\n\033[1m[%s/5] %s\033[0m\n' "$1" "$2"; }
note() { printf '      %s\n' "$*"; }
fail() { # what is wrong, then what to do about it
  printf '\nsetup.sh: error: %s\n' "$1" >&2
  shift
  printf '  %s\n' "$@" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -- "$@"; fi
}

need_space() { # folder, GB, what for
  local free
  free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1048576) }')
  [ "$free" -ge "$2" ] || fail "$3 needs about $2 GB, and $1 has $free GB free" \
    "make room there (apt-get clean helps) and run ./setup.sh again"
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [[ "$(apt-cache policy "$1" 2>/dev/null)" == *"Candidate: "[^\(]* ]]; }

install_packages() {
  command -v apt-get >/dev/null || fail "this is no Debian: there is no apt-get" \
    "install LLVM and MLIR 22, fmt, nlohmann-json, CMake, Ninja and lld your system's way, then:" \
    "cmake -G Ninja -S . -B build && ninja -C build"
  local missing=() package updated=yes
  for package in "${PACKAGES[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then
    note "all ${#PACKAGES[@]} are installed"
    return
  fi
  note "missing: ${missing[*]}"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || fail "installing packages needs root, and there is no sudo" \
    "run this as root, then ./setup.sh again:" "apt-get update && apt-get install ${missing[*]}"
  as_root true || fail "sudo was refused" \
    "run this as root, then ./setup.sh again:" "apt-get update && apt-get install ${missing[*]}"
  need_space /usr $SYSTEM_GB "installing the packages"
  as_root apt-get update -q -o APT::Update::Error-Mode=any || updated=no
  for package in "${missing[@]}"; do
    available "$package" || no_package "$package" $updated
  done
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "${missing[@]}" ||
    fail "apt-get install failed; its own message is above" \
      "no network: check that \`apt-get update\` works; a half-done install: \`dpkg --configure -a\`; then run ./setup.sh again"
}

no_package() { # package, whether apt-get update worked
  [ "$2" = yes ] || fail "apt-get update failed, so \`$1\` can't be found; its own message is above" \
    "check the network, the proxy (http_proxy) and /etc/apt/sources.list*, then run ./setup.sh again"
  fail "$(. /etc/os-release && echo "$PRETTY_NAME") has no package \`$1\`" \
    "LLVM 22 is in Debian 12's security updates and in later releases. On Debian 12, add this to /etc/apt/sources.list:" \
    "deb http://deb.debian.org/debian-security bookworm-security main" \
    "On an older or another distribution, take it from https://apt.llvm.org, or use a debian:12 container."
}

pip_install() {
  $PYTHON -m pip install --disable-pip-version-check --no-input "$@" ||
    fail "pip could not install $*; its own message is above" \
      "check the network and the proxy (https_proxy, PIP_INDEX_URL), then run ./setup.sh again${cuda_hint:-}"
}

make_venv() {
  if $PYTHON -c 'import clang_format, numpy, pip, pytest' 2>/dev/null; then
    note "numpy, pytest and clang-format are there"
    return
  fi
  need_space . $CLONE_GB "building"
  /usr/bin/python3 -m venv --clear .venv || fail "python3 can't make a virtual environment in .venv" \
    "check that this folder is writable"
  pip_install 'numpy>=1.24' pytest clang-format==22.1.8
  echo "$PWD/python" >"$(echo .venv/lib/python3*/site-packages)/attnc.pth" # `import attnc` in .venv
}

toolkit_with_nvrtc() {
  local root
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-*; do
    if [ -n "$root" ] && compgen -G "$root/lib*/libnvrtc.so*" >/dev/null; then
      echo "$root"
      return
    fi
  done
  return 1
}

wheel_with_nvrtc() { compgen -G '.venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so*'; }

get_nvrtc() { # kernels-runtime/lib/NvrtcLibrary.cpp looks in the same places
  local found driver
  if found=$(toolkit_with_nvrtc) || found=$(wheel_with_nvrtc); then
    note "found: ${found%%$'\n'*}"
    return
  fi
  note "no CUDA Toolkit (CUDA_HOME, /usr/local/cuda): NVIDIA's wheels into .venv"
  # Drivers before 580 load no kernel of CUDA 13.
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n1 | cut -d. -f1 || true)
  local cuda_hint="; or leave CUDA out: ./setup.sh --no-cuda"
  if [[ "$driver" =~ ^[0-9]+$ ]] && [ "$driver" -lt 580 ]; then
    pip_install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12
  else
    pip_install 'nvidia-cuda-nvrtc==13.*' 'nvidia-cuda-runtime==13.*'
  fi
}

build() {
  local jobs memory_gb
  memory_gb=$(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)
  jobs=$(nproc)
  [ "$jobs" -le "$memory_gb" ] || jobs=$((memory_gb > 1 ? memory_gb : 1)) # MLIR takes up to a GB a job
  [ -f build/build.ninja ] || cmake -G Ninja -S . -B build || fail "cmake could not configure the build" \
    "its message is above; \`rm -rf build\` and ./setup.sh start afresh"
  NINJA_STATUS='[%f/%t, %es] ' ninja -C build -j "$jobs" || fail "the build failed; the first error above says where" \
    "\`Killed\`: not enough memory, try \`ninja -C build -j1\`; \`No space left\`: it takes $CLONE_GB GB here"
}

for option in "$@"; do
  case "$option" in
    --no-run) run=no ;;
    --no-cuda) cuda=no ;;
    *) fail "expected \`--no-run\` or \`--no-cuda\`, got: \`$option\`" "./setup.sh installs what is missing, builds, and runs the problem of docs/Tour.md" ;;
  esac
done
trap 'printf "\nsetup.sh: interrupted; run it again, it goes on from where it was\n" >&2; exit 130' INT TERM

step 1 "Debian packages"
install_packages
step 2 "Python environment"
make_venv
step 3 "NVRTC, NVIDIA's run-time compiler"
if [ $cuda = yes ]; then get_nvrtc; else note "left out"; fi
step 4 "Build"
build
step 5 "Packed causal attention, checked against the reference; a mask from Python"
if [ $run = yes ]; then
  build/bin/attn-run docs/tour/packed_causal.mlir --check || fail "the problem did not pass; attn-run's own message is above" \
    "on the CPU instead: build/bin/attn-run docs/tour/packed_causal.mlir --check --target=cpu"
  $PYTHON docs/tour/first.py || fail "the Python package did not work; its own message is above" \
    "$PYTHON docs/tour/first.py runs it again"
else
  note "left out"
fi
