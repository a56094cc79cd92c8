// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pairs a problem's dropout drops, by the definition in `attn.problem`.
//
#ifndef ATTN_LIB_REFERENCE_DROPOUTREFERENCE_H
#define ATTN_LIB_REFERENCE_DROPOUTREFERENCE_H

#include "attn/Reference/Interpreter.h"
#include <array>

namespace attn::reference {

class DropoutReference {
public:
  DropoutReference(ProblemOp problem, const Tensors &inputs);

  /// 0 of a pair that is dropped; what is kept is multiplied by it.
  double factor(const Row &row, int64_t k) const;

private:
  std::optional<Dropout> dropout;
  std::array<uint32_t, Dropout::words> seed = {};
};

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_DROPOUTREFERENCE_H
