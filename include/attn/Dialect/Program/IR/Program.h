// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `program` dialect: which kernels run, over which memory. See ProgramOps.td.
//
#ifndef ATTN_DIALECT_PROGRAM_IR_PROGRAM_H
#define ATTN_DIALECT_PROGRAM_IR_PROGRAM_H

#include "attn-rt/Extent.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SmallPtrSet.h"

#include "attn/Dialect/Program/IR/ProgramDialect.h.inc"
#include "attn/Dialect/Program/IR/ProgramEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Program/IR/ProgramTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Program/IR/ProgramAttrs.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/Program/IR/ProgramOps.h.inc"

namespace attn::program {

/// What a value of `!program.value` is: the op that defines it says so; of carried values, the initial one.
struct TensorInfo {
  mlir::StringAttr name;
  mlir::Type element;
  mlir::ArrayAttr extents;
  std::optional<Role> role; ///< nullopt: a buffer, or carried
  static TensorInfo of(mlir::Value tensor);
};

/// A tensor of a launch, and the argument that names it.
struct TensorAccess {
  mlir::Value tensor;
  ArgumentAttr argument;
  unsigned number; ///< of the argument
};
llvm::SmallVector<TensorAccess> accessesOf(LaunchOp launch);

/// The tensors and buffers that values of a program may be: themselves, or what a repeat carries.
class Aliases {
public:
  explicit Aliases(DefOp program);
  llvm::ArrayRef<mlir::Value> of(mlir::Value value) const;

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> memory;
};

/// The repeats around an op, the innermost first.
llvm::SmallVector<RepeatOp, 2> repeatsAround(mlir::Operation *op);

/// Launches that read arrays alone, or what such launches left, and write buffers alone that no other launch writes:
/// with the same arrays and sizes, what they left may be used again. None is in a repeat or when.
llvm::SmallPtrSet<mlir::Operation *, 8> reusableLaunches(DefOp program);

/// The size that says how many rows the leading dimensions of a tensor are; the tensor has some.
std::string sizeOfLead(TensorOp tensor);

} // namespace attn::program

#endif // ATTN_DIALECT_PROGRAM_IR_PROGRAM_H
