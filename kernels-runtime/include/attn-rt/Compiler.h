// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text in, machine code out. Compilers are values without global state and may
// be used by several threads at once. They know nothing of the cache; the cache
// asks them for their identity (kind, version, headers, flags), which is what
// makes a key.
//
#ifndef ATTN_RT_COMPILER_H
#define ATTN_RT_COMPILER_H

#include "attn-rt/Artifact.h"
#include "attn-rt/Result.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

/// What ptxas says about the entry, in registers per thread and bytes. All -1
/// where the compiler doesn't say (host).
struct ResourceReport {
  int registers = -1;
  int stack = -1;       ///< frame, per thread
  int spillStores = -1; ///< per thread
  int spillLoads = -1;  ///< per thread
  int smem = -1;        ///< static shared memory per block
  /// Do matrix products wait for one another, where they were to run beside other work? ptxas makes them if it runs out
  /// of registers for their places.
  bool serialized = false;

  bool known() const { return registers >= 0; }
  /// Nothing spilled or serialized and no stack frame, as far as is known.
  bool fits() const { return excess() == 0; }
  /// How far it is from that: bytes of stack and spills, and for serialized products more than any kernel spills.
  int64_t excess() const {
    return int64_t(std::max(stack, 0)) + std::max(spillStores, 0) + std::max(spillLoads, 0) +
           (serialized ? 1 << 24 : 0);
  }
  /// "168 registers, 0 bytes stack, 0 bytes spill stores, 0 bytes spill loads,
  /// 0 bytes static smem", and ", products serialized" if they are; or "not reported".
  std::string str() const;
  /// Reads `ptxas -v` output. With several functions in the log the one called
  /// `entry` counts.
  static ResourceReport parse(std::string_view log, std::string_view entry);
};

struct CompileOutput {
  std::string binary; ///< cubin, or ELF shared object
  std::string log;
  ResourceReport report;
};

class Compiler {
public:
  virtual ~Compiler();

  /// "nvrtc" or "host".
  virtual std::string_view kind() const = 0;
  /// Everything that tells two compilers apart that might print different code:
  /// "13.0 (104 MB ...)", "g++ (Debian 12.2.0) ...". Slow the first time (opens
  /// NVRTC, runs `c++ --version`); the cache remembers it by the identity of
  /// `toolPath()`.
  virtual Result<std::string> version() const = 0;
  /// File that decides `version()`: libnvrtc or the compiler driver. Empty
  /// where it isn't known before loading.
  virtual std::string toolPath() const = 0;
  /// SHA-256 of the embedded headers that the source may include.
  virtual std::string headerDigest() const = 0;
  /// The machine that the code is only good for: hash of the CPU's features
  /// with -march=native, empty for GPUs.
  virtual std::string machine() const { return {}; }
  /// Instruction sets that the code may use, sorted, as `processorFeatures` (lib/Processor.h) names them; none for
  /// GPUs.
  virtual Result<std::vector<std::string>> features() const { return std::vector<std::string>(); }
  /// All flags that can change the code, no paths.
  virtual std::vector<std::string> flags(std::string_view target) const = 0;
  /// Names inside a cache entry: "kernel.cu" and "kernel.cubin".
  virtual std::string_view sourceFile() const = 0;
  virtual std::string_view binaryFile() const = 0;

  /// On failure the error carries the compiler's log.
  virtual Result<CompileOutput> compile(const Artifact &artifact) const = 0;
};

/// CUDA C++ to a cubin, by NVRTC opened at run time; needs no GPU and no CUDA
/// headers. Device headers come from memory. Construction is free; libnvrtc is
/// looked for by `toolPath()` and opened by the first `version()` or
/// `compile()`. Where $ATTN_NVRTC is set, it names the file, or the directory or
/// the CUDA Toolkit that it is in, and nothing else is opened. Else NVRTC is looked
/// for in $CUDA_HOME, $CUDA_PATH; $ATTN_PYTHON_NVIDIA (a site-packages or its
/// nvidia/ folder), $VIRTUAL_ENV, in a build tree the source's .venv, the
/// site-packages this library lies in; /usr/local/cuda, /usr/local/cuda-*; python3
/// of $PATH and of ~/.local; what the loader finds. The error lists every place.
std::unique_ptr<Compiler> createNvrtcCompiler(std::vector<std::string> extraFlags = {});

/// C++20 to a shared object with the system's compiler: $ATTN_CXX, else the
/// first of c++, g++, clang++ in $PATH. The words of $ATTN_CXXFLAGS follow our
/// flags, so that `-O1` there is what counts. Host headers are written to a temporary
/// directory ($TMPDIR, /tmp, /var/tmp, /dev/shm: the first that takes them),
/// gone afterwards.
std::unique_ptr<Compiler> createHostCompiler(std::vector<std::string> extraFlags = {});

/// The compiler of a target: host for "cpu", NVRTC for "sm_*".
std::unique_ptr<Compiler> createCompiler(std::string_view target);

} // namespace attn::rt

#endif // ATTN_RT_COMPILER_H
