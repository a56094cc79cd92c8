// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a problem's text to a loaded program. Compile.h lowers the problem; kernels-runtime
// compiles, caches, loads and launches.
//
#ifndef ATTN_API_JIT_H
#define ATTN_API_JIT_H

#include "attn-rt/Cache.h"
#include "attn-rt/LoadedProgram.h"
#include "attn/API/BuildFitting.h"
#include <atomic>
#include <map>
#include <mutex>

namespace attn {

using rt::Dtype;
using rt::Given;
using rt::TensorView;

/// A program and its binaries, not loaded: compiling for a GPU needs none.
using CompiledProgram = BuiltProgram<std::shared_ptr<const rt::CompiledKernel>>;

/// A whole program for one target: a forward or backward pass, or segments, as one or several CUDA kernels (or CPU
/// kernels). `lower` makes it without compiling; `build` compiles and loads its kernels, once. Safe to use from several
/// threads.
class Kernel : public std::enable_shared_from_this<Kernel> {
public:
  using Tensors = llvm::ArrayRef<TensorView>;

  /// Lowers the pass `name` of a module; the name may be empty if the text has one (`findProgram`). Nothing is
  /// compiled, and no device is asked.
  static rt::Result<std::shared_ptr<const Kernel>> lower(llvm::StringRef text, llvm::StringRef name,
                                                         const Target &target);
  /// The same, built.
  static rt::Result<std::shared_ptr<const Kernel>> create(llvm::StringRef text, llvm::StringRef name,
                                                          const Target &target);
  /// Compiles the kernels (or finds them in the process's cache, or on disk) and loads them. Does nothing where that is
  /// done. On failure of a kernel compiler the error names a reproducer that holds the problem, the source and the log.
  rt::Status build() const;

  /// The tensors of a launch, in the order in which it takes them.
  const std::vector<rt::Program::Tensor> &getTensors() const { return first.plan.tensors; }
  /// The number of one of them, or -1.
  int indexOf(llvm::StringRef name) const { return first.plan.tensorNamed(name); }
  bool isHost() const { return target.isHost(); }
  /// The program that was built; before, the one that will be if it fits the registers.
  const Program &getProgram() const { return isBuilt() ? built.load()->program : first; }
  /// Its steps.
  const rt::ProgramCode &code() const { return isBuilt() ? built.load()->loaded->code() : firstCode; }
  /// Which kernels there are, and `; ` why these; for a reader. Empty of segments alone.
  const std::string &getSchedule() const { return getProgram().schedule; }
  /// The sources of all kernels.
  const std::string &getSource() const { return isBuilt() ? built.load()->source : firstSource; }

  bool isBuilt() const { return built.load() != nullptr; }
  /// `rt::LoadedProgram::prepare` of what `build` made.
  rt::Status prepare() const { return built.load()->loaded->prepare(); }
  // Of a kernel that is built:
  const rt::CompiledKernel &getCompiled() const { return *built.load()->loaded->kernels()[getProgram().main]; }
  const rt::Artifact &getArtifact() const { return getProgram().artifact(); }
  int64_t getQTile() const { return getProgram().qTile; }
  /// The distance of a tile's rows in positions: more than 1 in tiles of one residue.
  int64_t getRowStride() const { return getProgram().rowStride; }
  int64_t getKvTile() const { return getProgram().kvTile; }
  /// What the compiler says of the resources of all kernels.
  const std::string &getResources() const { return built.load()->resources; }

  /// The shape of each tensor, from those of operands and arrays (`Given::Inputs`).
  rt::Result<std::vector<std::vector<int64_t>>> shapesOf(Tensors tensors) const;
  /// Bytes of workspace that a launch with such tensors needs (`Given::Inputs`) on a device of so many multiprocessors;
  /// 0: enough on each device of the process. Exact once it is built; before, enough for whichever fallback will be.
  rt::Result<size_t> workspaceBytes(Tensors tensors, int multiprocessors = 0) const;

  /// The kernel for tensors of such shapes (`Given::Inputs`): where the problem says nothing of lengths, short
  /// sequences (dense: of up to 1024 rows, packed: of many) and few queries may have programs of their own
  /// (`rt::SpecializationRule`). Itself where they have none. Built if this one is. It is right for all shapes.
  rt::Result<std::shared_ptr<const Kernel>> specialize(Tensors tensors) const;

  /// `rt::LoadedProgram::launch` of what `build` made. Compiles nothing.
  ///
  /// With $ATTN_CHECK_ARRAYS=1 a `status` of segments that is not 0 is an error, behind the launch.
  /// With $ATTN_VALIDATE=N a launch synchronises as well, and about N of its rows are computed anew on
  /// the host, in double and from the problem's text alone; an error says where they differ. Gradients:
  /// about N rows of each, all rows if arrays have gradients, which are sums over all pairs. Segments alone: all
  /// results. Partial results, and rows in another order, are not looked at.
  rt::Status launch(Tensors tensors, void *workspace, rt::Stream stream, bool again = false) const;

private:
  struct Built {
    Program program;
    std::shared_ptr<const rt::LoadedProgram> loaded;
    std::string source, resources;
  };
  Kernel() = default;
  static rt::Result<std::shared_ptr<Kernel>> make(llvm::StringRef text, llvm::StringRef name, const Target &target,
                                                  std::optional<rt::ExpectedLengths> expected, Program program);
  rt::Status checkStatus(Tensors tensors, rt::Stream stream) const;
  rt::Status validate(Tensors tensors, rt::Stream stream) const;

  std::string text, name; ///< of the problem
  Target target;
  std::optional<rt::ExpectedLengths> expected; ///< what it is specialised for
  Program first;                               ///< as chosen first; what is built may be a fallback
  rt::ProgramCode firstCode;
  std::string firstSource;

  mutable std::mutex mutex; ///< of all below
  mutable std::unique_ptr<const Built> owned;
  mutable std::atomic<const Built *> built = nullptr; ///< what is owned
  mutable std::vector<rt::ProgramCode> fallbacks;     ///< of programs that are not built; empty: not asked for
  /// For shapes that say more than the problem does; null where that is no reason for another program.
  mutable std::map<rt::ExpectedLengths, std::shared_ptr<const Kernel>> specialized;
};

/// The cache that all kernels of this process go through.
rt::Cache &processCache();

/// Compiles one pass, or finds it in `cache`; errors as `Kernel::create`.
rt::Result<CompiledProgram> compileThrough(rt::Cache &cache, llvm::StringRef text, llvm::StringRef name,
                                           const Target &target);
/// The same for such lengths; nothing where `plain`, which compileThrough gave, is as good (`isWorthKernels`).
rt::Result<std::optional<CompiledProgram>> compileSpecialized(rt::Cache &cache, llvm::StringRef text,
                                                              llvm::StringRef name, const Target &target,
                                                              const rt::ExpectedLengths &expected,
                                                              const Program &plain);

} // namespace attn

#endif // ATTN_API_JIT_H
