// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the text of a problem to a program: printed kernel, its artifact, and
// what a launcher has to know about its tensors. Needs neither GPU nor compiler.
//
#ifndef ATTN_API_COMPILE_H
#define ATTN_API_COMPILE_H

#include "attn-rt/Artifact.h"
#include "attn-rt/Program.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "attn/Dialect/Tile/IR/TargetInfo.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn {

/// What to compile for. `family` is the kind of kernels (`cpu`, `sm_80`, `sm_90a`), `arch` the
/// chip's compute capability times ten (ignored on a CPU).
struct Target {
  std::string family = "cpu";
  int arch = 0;

  bool isHost() const { return family == "cpu"; }
  /// What its chip has.
  TargetInfo info() const { return *TargetInfo::get(family, arch); }
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
  rt::Program plan;                  ///< how a launch runs them: kernels are numbered as above
  int64_t qTile = 0, kvTile = 0;     ///< rows and keys that a tile of the main kernel spans
  int64_t rowStride = 1;             ///< of which it has every so many-th
  bool hasFallback = false;          ///< there are less demanding sizes to try
  bool mayNotFit = false;            ///< and they may well be needed
  bool hasShortKernel = false;       ///< short sequences have a kernel of their own
  std::string schedule; ///< of attention, for a reader: which kernels, and `; ` why these (`chooseSchedule`)

  const rt::Artifact &artifact() const { return kernels[main]; }
  /// Is there a buffer of this name?
  bool hasBuffer(llvm::StringRef name) const {
    return llvm::any_of(plan.buffers, [&](const rt::Program::Buffer &buffer) { return buffer.name == name; });
  }
  /// Do the keys of a query tile go to several CTAs?
  bool isSplit() const {
    return llvm::any_of(plan.sizes, [](const rt::Program::Size &size) { return size.name == "splits"; });
  }
};

/// Are kernels of a program that is specialised for lengths worth building beside the plain program's? They are if they
/// have a kernel for short sequences, split keys, have other tiles, or leave no sums for each other; other stages of
/// the same tiles are worth less than they take to compile. `first`: the plain program as chosen first, which turned
/// out not to fit if it is another than `plain`.
bool isWorthKernels(const Program &special, const Program &plain, const Program &first);

/// A context with our dialects that collects diagnostics. One thread uses it at a time: `withCompilation` lends one
/// from a pool.
class Compilation {
public:
  Compilation();
  mlir::MLIRContext &getContext() { return context; }

  /// The module of a text. Errors carry the diagnostics, with `name` as the file. Without `verify`, its ops may break
  /// their rules, and required attributes may be missing.
  rt::Result<mlir::OwningOpRef<mlir::ModuleOp>> parse(llvm::StringRef text, llvm::StringRef name, bool verify = true);
  /// Lowers the problems of the module to kernels, in place.
  rt::Status lower(mlir::ModuleOp module, const Target &target, int fallback = 0);
  /// Holds a kernel that did not come from `lower` to the same rules: it is for this
  /// target and touches nothing in flight.
  rt::Status check(tile::KernelOp kernel, const Target &target);
  /// Prints a kernel's source; its artifact is ready for the target's compiler.
  rt::Result<rt::Artifact> print(tile::KernelOp kernel, const Target &target);
  /// Lowers one program (`findProgram`) and prints it, with the heuristic's tile sizes
  /// or a fallback of them. `expected`: lengths to specialise it for, if its rule has them.
  rt::Result<Program> compile(llvm::StringRef text, llvm::StringRef name, const Target &target, int fallback = 0,
                              llvm::StringRef file = "problem", std::optional<rt::ExpectedLengths> expected = {});

  /// An error with what the context has said since the last one.
  rt::Error takeDiagnostics(llvm::StringRef what);

private:
  mlir::MLIRContext context;
  std::string diagnostics;
};

/// Calls `use` with a compilation that no other thread uses meanwhile. Making one costs a millisecond, so they are
/// kept: as many as threads have lowered at the same time.
void withCompilation(llvm::function_ref<void(Compilation &)> use);

/// What can be compiled: each `attn.problem`, `attn.backward` and `attn.segments` that is not
/// private, as they stand.
llvm::SmallVector<mlir::Operation *> programsOf(mlir::ModuleOp module);
/// That of these which is called `name`; without a name the only backward pass, where there
/// is none the only problem, where there is none either the only op.
rt::Result<mlir::Operation *> findProgram(mlir::ModuleOp module, llvm::StringRef name);
/// What a caller gives such an op, a program without steps.
rt::Result<rt::Program> signatureOf(mlir::Operation *pass);
/// The same, and it is a problem or its backward pass.
rt::Result<Computation> findComputation(mlir::ModuleOp module, llvm::StringRef name);
/// The same, and it is a problem.
rt::Result<ProblemOp> findProblem(mlir::ModuleOp module, llvm::StringRef name);

} // namespace attn

#endif // ATTN_API_COMPILE_H
