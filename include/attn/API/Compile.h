// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the text of a problem to a program: printed kernel, its artifact, and
// what a launcher has to know about its tensors. Needs neither GPU nor compiler.
//
#ifndef ATTN_API_COMPILE_H
#define ATTN_API_COMPILE_H

#include "attn-rt/Artifact.h"
#include "attn-rt/Cache.h"
#include "attn-rt/Compiler.h"
#include "attn/API/Signature.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <future>

namespace attn {

/// What to compile for. `family` is the schedule (`cpu`, `sm_80`, `sm_90a`), `arch` the
/// chip's compute capability times ten (ignored on a CPU).
struct Target {
  std::string family = "cpu";
  int arch = 0;

  bool isHost() const { return family == "cpu"; }
  /// `cpu`, `sm_90a`, `sm_80`, or `sm_80:90` for a family on another chip; empty: `preferred`.
  /// An error names the legal forms.
  static rt::Result<Target> parse(llvm::StringRef text);
  /// The family that runs on the current device, or the CPU if there is none.
  static Target preferred();
  std::string str() const;
};

struct Program {
  std::vector<rt::Artifact> kernels; ///< in the order in which a launch runs them
  size_t main = 0;                   ///< the one that is called as the program is
  Signature signature;
  int64_t qTile = 0, kvTile = 0; ///< rows and keys of a tile of the main kernel
  bool hasFallback = false;      ///< there are less demanding sizes to try

  const rt::Artifact &artifact() const { return kernels[main]; }
};

/// A context with our dialects that collects diagnostics; parsing and lowering
/// of one process share it.
class Compilation {
public:
  Compilation();
  mlir::MLIRContext &getContext() { return context; }

  /// The module of a text. Errors carry the diagnostics, with `name` as the file.
  rt::Result<mlir::OwningOpRef<mlir::ModuleOp>> parse(llvm::StringRef text, llvm::StringRef name);
  /// Lowers the problems of the module to kernels, in place.
  rt::Status lower(mlir::ModuleOp module, const Target &target, int fallback = 0);
  /// Holds a kernel that did not come from `lower` to the same rules: it is for this
  /// target and touches nothing in flight.
  rt::Status check(tile::KernelOp kernel, const Target &target);
  /// Prints a kernel's source; its artifact is ready for the target's compiler.
  rt::Result<rt::Artifact> print(tile::KernelOp kernel, const Target &target);
  /// Lowers one program (`findProgram`) and prints it, with the heuristic's tile sizes
  /// or a fallback of them.
  rt::Result<Program> compile(llvm::StringRef text, llvm::StringRef name, const Target &target, int fallback = 0,
                              llvm::StringRef file = "problem");

private:
  rt::Error takeDiagnostics(llvm::StringRef what);

  mlir::MLIRContext context;
  std::string diagnostics;
};

inline const rt::ResourceReport &reportOf(const rt::CompileOutput &output) { return output.report; }
inline const rt::ResourceReport &reportOf(const std::shared_ptr<const rt::CompiledKernel> &kernel) {
  return kernel->report;
}

/// A program and what was built of its kernels.
template <typename Built> struct BuiltProgram {
  Program program;
  std::vector<Built> kernels;
};

/// What `build` makes of the first program of a problem whose main kernel fits its registers:
/// the tile sizes of the heuristic, or, where the compiler reports spills, its
/// fallbacks. (Some kernels need all 255 registers, and whether ptxas finds an
/// allocation then differs from mask to mask.) `program` and `build` are called as
/// `program(fallback)` and `build(artifact)`, this for all kernels at once, each on a thread of
/// its own; results of `build` have a `report`.
template <typename MakeProgram, typename Build> auto buildFitting(MakeProgram program, Build build) {
  using Built = std::remove_reference_t<decltype(*build(std::declval<const rt::Artifact &>()))>;
  using Result = rt::Result<BuiltProgram<Built>>;
  for (int fallback = 0;; ++fallback) {
    rt::Result<Program> made = program(fallback);
    if (!made)
      return Result(made.error());
    std::vector<std::future<decltype(build(made->artifact()))>> others; // of all but the main one
    for (auto [i, artifact] : llvm::enumerate(made->kernels))
      if (i != made->main)
        others.push_back(std::async(std::launch::async, build, std::cref(artifact)));
    auto main = build(made->artifact());
    if (!main)
      return Result(main.error());
    if (!reportOf(*main).fits() && made->hasFallback)
      continue;
    BuiltProgram<Built> all{{}, {}};
    for (auto &future : others) {
      auto other = future.get();
      if (!other)
        return Result(other.error());
      all.kernels.push_back(std::move(*other));
    }
    all.kernels.insert(all.kernels.begin() + made->main, std::move(*main));
    all.program = std::move(*made);
    return Result(std::move(all));
  }
}

/// What can be compiled: each `attn.problem`, `attn.backward` and `attn.segments` that is not
/// private, as they stand.
llvm::SmallVector<mlir::Operation *> programsOf(mlir::ModuleOp module);
/// That of these which is called `name`; without a name the only backward pass, where there
/// is none the only problem, where there is none either the only op.
rt::Result<mlir::Operation *> findProgram(mlir::ModuleOp module, llvm::StringRef name);
/// The same, and it is a problem or its backward pass.
rt::Result<Computation> findComputation(mlir::ModuleOp module, llvm::StringRef name);
/// The same, and it is a problem.
rt::Result<ProblemOp> findProblem(mlir::ModuleOp module, llvm::StringRef name);

} // namespace attn

#endif // ATTN_API_COMPILE_H
