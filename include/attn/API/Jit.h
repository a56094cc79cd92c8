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
#include "attn/API/BuildFitting.h"
#include <map>
#include <mutex>

namespace attn {

/// A program and its binaries, not loaded: compiling for a GPU needs none.
using CompiledProgram = BuiltProgram<std::shared_ptr<const rt::CompiledKernel>>;

/// A kernel of one problem for one target, loaded. Safe to use from several threads. Where its problem says nothing of lengths, launches of short sequences (dense: of up to 1024 rows,
/// packed: of many), or of few queries, may have programs of their own (`hintOf`), by their sizes alone: the first who asks for such sizes, or launches them, compiles it.
class Kernel {
public:
  /// Compiles (or finds in the process's cache, or on disk) and loads. `problem`
  /// may be empty if the text has one. On failure of a kernel compiler the error
  /// names a reproducer that holds the problem, the source and the log.
  static rt::Result<std::shared_ptr<Kernel>> create(llvm::StringRef text, llvm::StringRef problem,
                                                    const Target &target);

  const Signature &getSignature() const { return program.signature; }
  /// Of the main kernel, as is `getCompiled`.
  const rt::Artifact &getArtifact() const { return program.artifact(); }
  int64_t getQTile() const { return program.qTile; }
  int64_t getKvTile() const { return program.kvTile; }
  /// Which kernels there are, and `; ` why these; for a reader. Empty of segments alone.
  const std::string &getSchedule() const { return program.schedule; }
  const rt::CompiledKernel &getCompiled() const { return *compiled[program.main]; }
  /// Of all kernels: their sources, and what the compiler says of their resources.
  std::string getSource() const;
  std::string getResources() const;
  bool isHost() const { return main().host != nullptr; }

  /// Bytes of device memory a launch needs beside its tensors, for what its kernels leave for
  /// each other: where keys are shared out, the results of the parts. From the sizes and, where
  /// the launcher chooses the number of parts, how many blocks a device runs at once: enough on each of the process.
  /// Where the sizes give a hint it may compile, once for lengths that are about as long.
  rt::Result<size_t> workspaceBytes(const Sizes &sizes) const;

  /// Of a launch with such sizes: as `getSchedule`. It may compile likewise.
  rt::Result<const std::string *> getSchedule(const Sizes &sizes) const;

  /// Checks the tensors and puts the kernels on `stream`, whose context decides on which device they run (CPU kernels
  /// run, and the call returns when they are done). No allocation on the device, no synchronisation, no read of device
  /// data: may be captured in a CUDA graph. (What it compiles, `workspaceBytes` of its sizes has made ahead.)
  ///
  /// `workspace` has `workspaceBytes` and is aligned to 16; what it holds means nothing
  /// before and after, and launches that may run at the same time need one each.
  ///
  /// On a CPU the contents of cu_seqlens and offsets are checked too. On a GPU they
  /// are with $ATTN_CHECK_ARRAYS=1, which reads them back and synchronises; so is, behind
  /// the launch, the `status` of segments: one that is not 0 is an error. On a GPU q has to lie where the device
  /// of the stream can reach it; with $ATTN_CHECK_ARRAYS=1 all tensors and the workspace have to.
  /// With $ATTN_VALIDATE=N a launch synchronises as well, and about N of its rows are computed anew on
  /// the host, in double and from the problem's text alone; an error says where they differ. Gradients:
  /// about N rows of each, all rows if arrays have gradients, which are sums over all pairs. Segments alone: all
  /// results.
  ///
  /// `again`: what kernels found out of arrays alone is in the workspace by now.
  rt::Status launch(llvm::ArrayRef<TensorView> tensors, void *workspace, rt::Stream stream, bool again = false) const;

private:
  /// Code of one of the program's kernels, loaded where it runs.
  struct Loaded {
    std::shared_ptr<rt::Module> gpu;
    std::shared_ptr<rt::HostModule> host;
    rt::Status load(const std::shared_ptr<const rt::CompiledKernel> &binary);
    rt::Status launch(const rt::BoundStep &step, rt::Stream stream) const;
  };
  const Loaded &main() const { return loaded[program.main]; }
  static rt::Result<std::shared_ptr<Kernel>> load(llvm::StringRef text, llvm::StringRef problem, const Target &target, CompiledProgram compiled);
  /// What launches of such sizes run: this, or what is made for them.
  rt::Result<const Kernel *> programFor(const Sizes &sizes) const;
  /// With checked tensors, and this program.
  rt::Status launch(llvm::ArrayRef<TensorView> tensors, Sizes sizes, void *workspace, rt::Stream stream, bool again) const;
  rt::Status zero(const rt::BoundStep &step, rt::Stream stream) const;
  rt::Status checkArrays(llvm::ArrayRef<TensorView> tensors, const Sizes &sizes) const;
  rt::Status checkStatus(llvm::ArrayRef<TensorView> tensors) const;
  /// What lies there by now.
  rt::Status copyToHost(llvm::MutableArrayRef<char> bytes, const TensorView &view) const;
  rt::Result<std::vector<int32_t>> contentsOf(const TensorView &view) const;
  rt::Status validate(llvm::ArrayRef<TensorView> tensors, const Sizes &sizes) const;
  /// The values of the program's sizes, on a GPU of so many multiprocessors.
  llvm::SmallVector<int64_t, 16> valuesOf(const Sizes &sizes, int multiprocessors) const;
  /// Whether the current context, which is of `device`, can reach the memory of q; or of `all` tensors.
  rt::Status checkReach(llvm::ArrayRef<TensorView> tensors, bool all, int device) const;
  rt::Status checkReach(const TensorView &view, llvm::StringRef name, int device) const;

  std::string text, name; ///< of the problem
  Target target;
  Program program;
  rt::ProgramCode code; ///< of `program.steps`
  /// Where a size that the program is given comes from: a member of Sizes, the length of an array, or, with neither,
  /// the chip.
  struct SizeSource {
    int64_t Sizes::*member = nullptr;
    std::string array;
    static SizeSource of(llvm::StringRef name);
  };
  std::vector<SizeSource> sizeSources;                             ///< as `code.sizes()`
  std::vector<std::shared_ptr<const rt::CompiledKernel>> compiled; ///< as `program.kernels`
  std::vector<Loaded> loaded;
  /// For launches that say more than the problem does; null where that is no reason for another program.
  struct {
    std::mutex mutex;
    std::map<LaunchHint, std::shared_ptr<Kernel>> kernels;
  } mutable hinted;
};

/// The cache that all kernels of this process go through.
rt::Cache &processCache();

/// Compiles one problem, or finds it in `cache`; errors as `Kernel::create`.
rt::Result<CompiledProgram> compileThrough(rt::Cache &cache, llvm::StringRef text, llvm::StringRef problem,
                                           const Target &target);

} // namespace attn

#endif // ATTN_API_JIT_H
