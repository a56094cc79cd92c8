// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that call functions of the device library (tile.call), for the computations around attention.
//
#ifndef ATTN_LIB_SCHEDULES_SPARSE_CALLKERNEL_H
#define ATTN_LIB_SCHEDULES_SPARSE_CALLKERNEL_H

#include "Schedules/Common/KernelArguments.h"
#include "Schedules/Common/KernelBody.h"

namespace attn {

/// A kernel in the making. Calls name what they are given:
///
/// - tensors and buffers by their name: a pointer to the first element;
/// - `name.batch`, `name.row`, `name.head`: the stride of an axis in elements, i64; 0 where there is no such axis;
/// - `name.rows`: the extent of the axis of rows, i32;
/// - sizes by `size(...)`: a number, i32;
/// - `block`: the number of the CTA.
///
/// With `first` and `rows` a CTA has rows of its own: `rowsInCta` of `allRows`.
class CallKernel {
public:
  CallKernel(ComputationInterface op, ProgramBuilder &program, const TargetInfo &target, llvm::StringRef suffix = "")
      : op(op), program(program), target(target), suffix(suffix) {}

  /// As many warps of a CTA on a GPU, and CTAs at a time on a multiprocessor at least.
  int64_t warps = 8, ctasPerSm = 4;
  /// Bytes of dynamic shared memory that the functions use, from its start on.
  int64_t sharedBytes = 0;
  int64_t threads() const { return (target.isHost() ? 1 : warps) * 32; }

  /// Rows of the result that a CTA has, and how many there are, by a name as calls have it.
  void setRows(int64_t inCta, const rt::Extent &all);
  /// CTAs of a kernel without rows.
  void setBlocks(const rt::Extent &extent) { blocks = extent; }

  /// Appends `attn::function(written..., others...)`.
  void call(std::string function, llvm::ArrayRef<std::string> written, llvm::ArrayRef<std::string> others);
  /// Creates the kernel and its launch. `header`: where its functions are.
  void build(llvm::StringRef header);

private:
  struct Call {
    std::string function;
    llvm::SmallVector<std::string> written, others;
  };
  ComputationInterface op;
  ProgramBuilder &program;
  const TargetInfo &target;
  std::string suffix;
  llvm::SmallVector<Call> calls;
  rt::Extent blocks = 1;
  std::optional<std::pair<int64_t, rt::Extent>> rows;
};

/// Appends the three strides of a tensor to what a call is given.
void appendStrides(llvm::SmallVectorImpl<std::string> &list, const std::string &tensor);
/// Appends the pointers, or the strides, of `count` tensors that are named by a prefix and their number, as "o_" and 0.
void appendPointers(llvm::SmallVectorImpl<std::string> &list, llvm::StringRef prefix, int64_t count);
void appendStridesOf(llvm::SmallVectorImpl<std::string> &list, llvm::StringRef prefix, int64_t count);

/// `attn::name<a, b, ...>`, without the namespace.
template <typename... Numbers> std::string functionOf(llvm::StringRef name, Numbers... numbers) {
  std::string text = name.str() + "<";
  const char *separator = "";
  ((text += separator + std::to_string(int64_t(numbers)), separator = ", "), ...);
  return text + ">";
}

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SPARSE_CALLKERNEL_H
