// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace attn;

bool FullMaskAttr::keeps(const MaskPoint &) const { return true; }

std::optional<IntervalList> FullMaskAttr::rowIntervals(IndexMath &, const MaskScope &scope, Index) const {
  return IntervalList{{0, scope.lenK}};
}

std::optional<IntervalList> FullMaskAttr::columnIntervals(IndexMath &, const MaskScope &scope, Index) const {
  return IntervalList{{0, scope.lenQ}};
}
