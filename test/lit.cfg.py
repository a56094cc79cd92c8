# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The tests of one build. Tools are found in build/bin, LLVM's own in its
# package. Features: `nvrtc`, `gpu`, `sm90`, `static-host-compiler`, `root` (files can be given to
# other users), `user-namespaces`, and `long` in the long tier.
#
# The short tier is for each change and has at most 10 minutes on two cores, a test at most 90 s.
# The long tier (`./test.sh --long`, or `-Dtier=long`) is every sweep in full. RUN lines choose with
# `%if long %{...%} %else %{...%}`; what only the long tier runs says `REQUIRES: long`.
import atexit
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(config.attn_source, "test", "lib"))
import attn_format  # noqa: E402

config.name = "attnc"
config.suffixes = [".mlir", ".test"]
config.excludes = ["lib", "Inputs", "CMakeLists.txt", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.join(config.attn_source, "test")
config.test_exec_root = os.path.join(config.attn_build, "test")


def alias_of(folder):
    """`folder` itself, or a link to it whose path has no space: RUN lines don't quote %s and %t."""
    if " " not in folder:
        return folder
    links = tempfile.mkdtemp(prefix="attnc-")
    atexit.register(shutil.rmtree, links, ignore_errors=True)
    os.symlink(folder, os.path.join(links, "it"))
    return os.path.join(links, "it")


def others_may_swap(folder):
    """Is a folder above, or this one, writable by others without being sticky? Caches there are passed over."""
    mode = os.stat(folder).st_mode
    parent = os.path.dirname(folder)
    return bool(mode & 0o022 and not mode & 0o1000) or (parent != folder and others_may_swap(parent))


source, build = alias_of(config.attn_source), alias_of(config.attn_build)
output = os.path.join(build, "test")
if others_may_swap(os.path.realpath(config.attn_build)):  # as a umask of 002 has it
    output = tempfile.mkdtemp(prefix="attnc-tests-")
    atexit.register(shutil.rmtree, output, ignore_errors=True)
    lit_config.note("the build folder is writable by others: tests write below " + output)
config.test_format = attn_format.Test(source, output)
tier = lit_config.params.get("tier", "short")
if tier not in ("short", "long"):
    lit_config.fatal(f"expected tier `short` or `long`, got: `{tier}`")
if lit_config.maxIndividualTestTimeIsSupported[0]:
    # Seconds. What takes longer hangs: 90 s on two cores are 720 s for each of two tests that share a quarter of one.
    lit_config.maxIndividualTestTime = 1200 if tier == "short" else 4 * 3600

# Where things are. RUN lines call tools by name.
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), os.path.join(config.llvm_tools, "bin"), config.environment["PATH"]])
for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV", "ATTN_NVRTC", "ATTN_CXX"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
venv_python = os.path.join(source, ".venv", "bin", "python")
config.substitutions += [
    ("%python", venv_python if os.path.exists(venv_python) else sys.executable),
    ("%attn_rt_test", os.path.join(build, "bin", "attn-rt-test")),
    ("%attn_source", source),
    ("%attn_build", build),
    # A kernel cache that tests share and that stays for the next run: for tests that only ask for right results.
    ("%kernels", os.path.join(output, "kernels")),
]


# A Python with PyTorch and JAX, if ./test.sh could install them (test/Python/frameworks.sh).
frameworks = subprocess.run([os.path.join(source, "test", "Python", "frameworks.sh"), "--where"], capture_output=True,
                            text=True, check=False).stdout.strip()
config.substitutions.append(("%frameworks_python", os.path.join(frameworks, "venv", "bin", "python")))
config.substitutions.append(("%frameworks", frameworks))
config.available_features.update(name for name in ("torch", "jax", "transformers")
                                 if os.path.exists(os.path.join(frameworks, name + ".done")))


def nvrtc_is_here():
    """Asks the file system and not our own search, so that a search that misses it fails a test."""
    given = os.environ.get("ATTN_NVRTC")
    roots = [given] if given else []
    roots += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    roots += ["/usr/local/cuda", *glob.glob("/usr/local/cuda-*")]
    roots += glob.glob(os.path.join(source, ".venv/lib/python3*/site-packages/nvidia/*"))
    return bool(given and os.path.isfile(given)) or any(
        glob.glob(os.path.join(root, lib, "libnvrtc.so*")) for root in roots for lib in ("", "lib", "lib64"))


def compute_capability():
    """Of the first GPU that the driver gives us, times ten; 0 where there is none."""
    ask = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
if not (cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0)
        or cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        or cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)):
    print(major.value * 10 + minor.value)
"""
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    return int(answer.stdout or 0)


def links_statically():
    """Can the C++ compiler of the `cpu` target link a program that needs no shared library?"""
    compiler = os.environ.get("ATTN_CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    return bool(compiler) and subprocess.run(
        [compiler, "-static", "-x", "c++", "-", "-o", os.devnull], input="int main() {}", text=True,
        capture_output=True, check=False).returncode == 0


def succeeds(*command):
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def gives_files_away():
    """Can we give a file to another user?"""
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.chown(file.name, 12345, 12345)
        except OSError:
            return False
    return os.geteuid() == 0


capability = compute_capability()
features = {
    "root": gives_files_away(),
    "user-namespaces": succeeds("unshare", "--user", "--map-root-user", "true"),
    "nvrtc": nvrtc_is_here(),
    "gpu": capability >= 80,
    "sm90": capability == 90,
    "static-host-compiler": links_statically(),
    "long": tier == "long",
}
config.available_features |= {name for name, here in features.items() if here}
lit_config.note("features: " + (" ".join(sorted(config.available_features)) or "none"))
