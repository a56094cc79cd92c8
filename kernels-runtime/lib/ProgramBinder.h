// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One launch of a call, for `ProgramCode::bind`.
//
#ifndef ATTN_RT_PROGRAMBINDER_H
#define ATTN_RT_PROGRAMBINDER_H

#include "attn-rt/Program.h"

namespace attn::rt {

/// Binds launches of one call. Memory is numbered by tensors and buffers; `of` says which of them a value is.
class ProgramCode::Binder {
public:
  const ProgramCode &code;
  const TensorView *tensors;
  void *const *buffers;
  const int64_t *values;
  const Table *tables;
  Encode encode;
  const int *carried = nullptr; ///< the tensor or buffer that each value now is; null: itself

  Status launch(const Program::Step &step, const StepCode &own, BoundStep &bound) const;

protected:
  size_t given() const { return code.source.tensors.size(); }
  size_t of(int value) const { return static_cast<size_t>(carried ? carried[value] : value); }
  const std::string &nameOf(size_t memory) const { return code.source.nameOf(static_cast<int>(memory)); }
  void *dataOf(size_t memory) const { return memory < given() ? tensors[memory].data : buffers[memory - given()]; }
  void findZeroed(const Program::Step &step, BoundStep &bound) const;
  TensorView bufferMemory(size_t memory, std::vector<int64_t> &shape) const;
};

} // namespace attn::rt

#endif // ATTN_RT_PROGRAMBINDER_H
