// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Changes that may turn a pass that no target has into one that it has.
//
#ifndef ATTN_LIB_INSPECT_EDITS_H
#define ATTN_LIB_INSPECT_EDITS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Attributes to set, or, null, to leave out: of a pass, or of the problem that it names.
struct Edit {
  llvm::SmallVector<std::pair<llvm::StringRef, mlir::Attribute>, 2> attributes;
  bool ofProblem = false;
};

/// What may be changed in a pass of `file`, towards what is usual; the attributes that the op requires are there. Of a
/// backward pass: its own clauses, and those of its problem.
std::vector<Edit> editsOf(mlir::Operation *pass, mlir::ModuleOp file);

/// Has the op all attributes that it requires, and of the right kinds? Getters are only safe then.
bool hasAttributes(mlir::Operation *pass);

} // namespace attn

#endif // ATTN_LIB_INSPECT_EDITS_H
