// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which targets have kernels for the passes of a module, and what is near to one that has none. Support is asked of the
// verifiers and passes themselves: a pass is supported for a target if it can be lowered and printed for it. Nothing is
// compiled. Safe to call from several threads.
//
#ifndef ATTN_INSPECT_SUPPORT_H
#define ATTN_INSPECT_SUPPORT_H

#include "attn/API/Compile.h"

namespace attn {

struct Support {
  std::string name; ///< of the pass
  Target target;
  std::optional<std::string> reason; ///< why there is no kernel; nothing if there is one
  /// If there is none: the nearest pass that the target has, a line each for what has changed of the problem that it
  /// names and of the pass itself. Empty where neither one change nor two of what is given lead to one.
  std::string nearest;
};

/// `cpu,sm_80,sm_90a`; each is what `Target::parse` takes, and none is empty.
rt::Result<std::vector<Target>> parseTargets(llvm::StringRef text);

/// Each of the passes for each of the targets, in this order. The module need not be verified.
std::vector<Support> supportOf(mlir::ModuleOp module, llvm::ArrayRef<mlir::Operation *> passes,
                               llvm::ArrayRef<Target> targets);
/// The same of a module's text: of the pass `name`, or without a name of all passes.
rt::Result<std::vector<Support>> supportOf(llvm::StringRef text, llvm::StringRef name, llvm::ArrayRef<Target> targets);

/// Why the target has no kernels for a pass of the module, in the words of the verifier or pass that refuses it;
/// nothing if it has. Without a name, the module's only pass (`findProgram`).
std::optional<std::string> refusalOf(Compilation &compilation, mlir::ModuleOp module, const Target &target,
                                     llvm::StringRef name = "");

} // namespace attn

#endif // ATTN_INSPECT_SUPPORT_H
