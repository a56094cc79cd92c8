// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compile once, launch often: a problem's text to a kernel that is loaded and
// ready. What compiles, caches and loads is kernels-runtime; what knows problems
// is Compile.h; here they meet.
//
#ifndef ATTN_API_JIT_H
#define ATTN_API_JIT_H

#include "attn-rt/Cache.h"
#include "attn-rt/Launch.h"
#include "attn-rt/Module.h"
#include "attn/API/Compile.h"

namespace attn {

/// A kernel of one problem for one target, loaded. Immutable; safe to launch
/// from several threads.
class Kernel {
public:
  /// Compiles (or finds in the process's cache, or on disk) and loads. `problem`
  /// may be empty if the text has one. On failure of a kernel compiler the error
  /// names a reproducer that holds the problem, the source and the log.
  static rt::Result<std::shared_ptr<Kernel>> create(llvm::StringRef text, llvm::StringRef problem,
                                                    const Target &target);

  const Signature &getSignature() const { return program.signature; }
  const rt::Artifact &getArtifact() const { return program.artifact; }
  int64_t getKvTile() const { return program.kvTile; }
  const rt::CompiledKernel &getCompiled() const { return *compiled; }
  bool isHost() const { return host != nullptr; }

  /// Bytes of device memory a launch needs beside its tensors, from static
  /// bounds alone. Forward kernels need none.
  size_t workspaceBytes(const Sizes &) const { return 0; }

  /// Checks the tensors and puts the kernel on `stream` (a CPU kernel runs, and
  /// returns when it is done). No allocation on the device, no synchronisation,
  /// no read of device data: may be captured in a CUDA graph.
  ///
  /// On a CPU the contents of cu_seqlens and offsets are checked too. On a GPU they
  /// are with $ATTN_CHECK_ARRAYS=1, which reads them back and synchronises.
  rt::Status launch(llvm::ArrayRef<TensorView> tensors, rt::Stream stream) const;

private:
  /// Where there is no block to write them: lengths and offsets of no rows.
  rt::Status clearResults(llvm::ArrayRef<TensorView> tensors, rt::Stream stream) const;
  rt::Status checkArrays(llvm::ArrayRef<TensorView> tensors, const Sizes &sizes) const;

  Program program;
  std::shared_ptr<const rt::CompiledKernel> compiled;
  std::shared_ptr<rt::Module> gpu;
  std::shared_ptr<rt::HostModule> host;
};

/// The cache that all kernels of this process go through.
rt::Cache &processCache();

/// A program and its binary, not loaded: compiling for a GPU needs none.
struct CompiledProgram {
  Program program;
  std::shared_ptr<const rt::CompiledKernel> binary;
};

/// Compiles one problem, or finds it in `cache`; errors as `Kernel::create`.
rt::Result<CompiledProgram> compileThrough(rt::Cache &cache, llvm::StringRef text, llvm::StringRef problem,
                                           const Target &target);

} // namespace attn

#endif // ATTN_API_JIT_H
