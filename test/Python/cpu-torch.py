# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lets a CUDA build of PyTorch run on the CPU without NVIDIA's packages, for tests: PyPI has no other build for Linux.

    cpu-torch.py TORCH_LIB FOLDER

For each library that the libraries in TORCH_LIB (site-packages/torch/lib) need and the loader does not find, FOLDER
gets one of that name whose functions fail (they return 100, cudaErrorNoDevice). With FOLDER in LD_LIBRARY_PATH `import
torch` works, and torch.cuda.is_available() is False.
"""
import ctypes
import pathlib
import re
import subprocess
import sys

# The prefixes of a library's functions where they are not its name.
PREFIXES = {"cudart": ("cuda", "__cuda"), "nvshmem_host": ("nvshmem",), "nvjitlink": ("nvjitlink", "__nvjitlink")}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_found(soname):
    try:
        ctypes.CDLL(soname)
        return True
    except OSError:
        return False


def prefixes(soname):
    name = re.match(r"lib(.*?)\.so", soname)[1].lower()
    return PREFIXES.get(name, (name,))


def main(torch_lib, folder):
    libraries = sorted(pathlib.Path(torch_lib).glob("*.so*"))
    own = {path.name for path in libraries}
    needed, undefined = set(), {}
    for path in libraries:
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*?)\]", output("readelf", "-dW", str(path))))
        for line in output("nm", "-D", "--undefined-only", str(path)).splitlines():
            name, _, version = line.split()[-1].partition("@")
            undefined.setdefault(name, set()).add(version.strip("@"))
    nvidia = re.compile(r"lib(cu|nccl|nv)")
    missing = sorted(s for s in needed - own - {"libcuda.so.1"} if nvidia.match(s) and not is_found(s))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    every = {prefix for soname in needed if nvidia.match(soname) for prefix in prefixes(soname)}
    for soname in missing:
        def owns(symbol):
            fitting = [p for p in every if symbol.lower().startswith(p)]
            return bool(fitting) and max(fitting, key=len) in prefixes(soname)
        symbols = {symbol: versions for symbol, versions in undefined.items() if owns(symbol)}
        source = "".join(f"long {s}(void) {{ return {0 if s.startswith('__') else 100}; }}\n" for s in sorted(symbols))
        (folder / f"{soname}.c").write_text(source or "static int nothing;\n")
        by_version = {}
        for symbol, versions in symbols.items():
            for version in versions - {""}:
                by_version.setdefault(version, []).append(symbol)
        options = []
        if by_version:  # the loader asserts without the versions that it was asked for
            script = folder / f"{soname}.map"
            script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
                                      for version, names in by_version.items()))
            options.append(f"-Wl,--version-script={script}")
        subprocess.run(["cc", "-w", "-O0", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{soname}", *options, "-o",
                        str(folder / soname), str(folder / f"{soname}.c")], check=True)
        print(f"{soname}: {len(symbols)} functions")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
