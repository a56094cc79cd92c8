// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program whose kernels are loaded: it checks the tensors of a call, and launches. It knows neither compilers nor
// what the kernels compute.
//
#ifndef ATTN_RT_LOADEDPROGRAM_H
#define ATTN_RT_LOADEDPROGRAM_H

#include "attn-rt/Launch.h"
#include "attn-rt/Module.h"
#include "attn-rt/Program.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace attn::rt {

/// Immutable, so several threads may use it at once.
class LoadedProgram {
public:
  using Kernel = std::shared_ptr<const CompiledKernel>;
  /// Another binary of a kernel that could not be loaded, or the error.
  using Repair = std::function<Result<Kernel>(const CompiledKernel &)>;

  /// `kernels`: numbered as the program's. Kernels of GPUs are loaded into the current context, or that of device 0
  /// (Module.h).
  static Result<std::shared_ptr<const LoadedProgram>> load(Program program, std::vector<Kernel> kernels,
                                                           const Repair &repair = {});

  const ProgramCode &code() const { return programCode; }
  const std::vector<Kernel> &kernels() const { return binaries; }
  bool isHost() const { return !modules.empty() && modules.front().host; }

  /// Loads kernels of GPUs into the current context too, as a first launch there would. A driver may wait for all work
  /// of the context then.
  Status prepare() const;

  /// Checks the tensors and puts the kernels on `stream`, whose context decides on which device they run (CPU kernels
  /// run, and the call returns when they are done). No allocation on the device, no synchronisation, no read of device
  /// data: may be captured in a CUDA graph.
  ///
  /// `workspace` has `workspaceBytes` and is aligned to 16; what it holds means nothing before and after, and launches
  /// that may run at the same time need one each.
  ///
  /// On a CPU the contents of arrays are checked too. On a GPU they are with $ATTN_CHECK_ARRAYS=1, which reads them
  /// back and synchronises. On a GPU the first operand has to lie where the device of the stream can reach it; with
  /// $ATTN_CHECK_ARRAYS=1 all tensors and the workspace have to.
  ///
  /// `again`: what launches found out of arrays alone is in the workspace by now.
  Status launch(std::span<const TensorView> tensors, void *workspace, Stream stream, bool again = false) const;

  /// Copies the first bytes of a tensor of a call to the host, once all that was launched in the stream's context is
  /// done.
  Status copyToHost(void *bytes, size_t count, const TensorView &view, Stream stream) const;
  Result<std::vector<int32_t>> contentsOf(const TensorView &view, Stream stream) const;

private:
  /// Code of a kernel, loaded where it runs: one of both.
  struct Code {
    std::shared_ptr<Module> gpu;
    std::shared_ptr<HostModule> host;
    Status load(const Kernel &kernel);
    Status launch(const BoundStep &step, const Module::Place &place, StreamState &stream) const;
  };
  Status checkReach(const TensorView &view, std::string_view name, int device) const;
  Status zero(const BoundStep &step, Stream stream) const;

  ProgramCode programCode;
  std::vector<Kernel> binaries;
  std::vector<Code> modules;
  int reached = 0; ///< the tensor whose memory is looked at in each launch
};

/// Bytes of the workspace of a launch with such tensors (`Given::Inputs`), on a GPU of so many multiprocessors; 0:
/// enough on each GPU of the process. On a CPU it goes by the threads of this process.
Result<size_t> workspaceBytes(const ProgramCode &code, bool isHost, std::span<const TensorView> tensors,
                              int multiprocessors);

/// Is $ATTN_CHECK_ARRAYS set?
bool checksArrays();

} // namespace attn::rt

#endif // ATTN_RT_LOADEDPROGRAM_H
