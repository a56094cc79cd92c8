// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.program: its tensors and sizes from the signatures of what it calls, and its `program.def` from theirs.
//
#ifndef ATTN_LIB_SCHEDULES_LINK_H
#define ATTN_LIB_SCHEDULES_LINK_H

#include "attn/Dialect/Program/IR/Program.h"
#include "attn/Schedules/Signature.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace attn {

/// A program whose calls agree on their tensors.
struct LinkedProgram {
  struct Call {
    CallOp op;
    /// The callee's sizes in those of the program.
    std::map<std::string, rt::Extent> sizes;
    /// The value of each tensor of the callee, in the order of its signature; null: a result that nobody wants.
    llvm::SmallVector<mlir::Value> tensors;
    rt::Program signature;
  };
  ProgramOp op;
  std::vector<Call> calls;
  /// What operands and results of calls are, by value; names are those of the program's tensors, or of buffers.
  llvm::DenseMap<mlir::Value, rt::Program::Tensor> tensors;
  /// Results of calls that nobody wants, by the call's number and the tensor's.
  std::map<std::pair<size_t, size_t>, rt::Program::Tensor> unwanted;
  /// The program as its caller sees it.
  rt::Program signature;
  /// The value of each tensor of the signature.
  llvm::SmallVector<mlir::Value> values;
};

/// An extent with other extents in place of sizes; sizes for which `of` has none stay.
rt::Extent substituted(const rt::Extent &extent,
                       llvm::function_ref<std::optional<rt::Extent>(llvm::StringRef size)> of);

/// The names of what programs of the module call.
llvm::StringSet<> calleesOf(mlir::ModuleOp module);

/// Emits an error where calls disagree.
mlir::FailureOr<LinkedProgram> link(ProgramOp program);

/// Creates the `program.def` before the program, of those of its callees.
void inlineCalls(LinkedProgram &linked, llvm::function_ref<program::DefOp(llvm::StringRef callee)> definitionOf);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_LINK_H
