// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the text of a problem to a program: printed kernel, its artifact, and
// what a launcher has to know about its tensors. Needs neither GPU nor compiler.
//
#ifndef ATTN_API_COMPILE_H
#define ATTN_API_COMPILE_H

#include "attn-rt/Artifact.h"
#include "attn/API/Signature.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace attn {

/// What to compile for. `family` is the schedule (`cpu`, `sm_80`), `arch` the
/// chip's compute capability times ten (ignored on a CPU).
struct Target {
  std::string family = "cpu";
  int arch = 0;

  bool isHost() const { return family == "cpu"; }
  /// `cpu`, `sm_80`, or `sm_80:90` for a family on another chip. An error names the legal forms.
  static rt::Result<Target> parse(llvm::StringRef text);
  /// The family that runs on the current device, or the CPU if there is none.
  static Target preferred();
  std::string str() const;
};

struct Program {
  rt::Artifact artifact;
  Signature signature;
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
  rt::Status lower(mlir::ModuleOp module, const Target &target);
  /// Prints a kernel's source; its artifact is ready for the target's compiler.
  rt::Result<rt::Artifact> print(tile::KernelOp kernel, const Target &target);
  /// Lowers one problem (the only one if `problem` is empty) and prints it.
  rt::Result<Program> compile(llvm::StringRef text, llvm::StringRef problem, const Target &target,
                              llvm::StringRef name = "problem");

private:
  rt::Error takeDiagnostics(llvm::StringRef what);

  mlir::MLIRContext context;
  std::string diagnostics;
};

/// The problem called `name`, or the only one.
rt::Result<ProblemOp> findProblem(mlir::ModuleOp module, llvm::StringRef name);

} // namespace attn

#endif // ATTN_API_COMPILE_H
