// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout for all kernel bodies.
//
#include "AttentionBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Value AttentionBody::findDropoutState(bool packs) {
  if (!dropout)
    return {};
  Location named = NameLoc::get(b.getStringAttr("dropout_state"), loc);
  return DropoutStateOp::create(b, named, args[dropout->seed], math.value(batch),
                                packs ? Value() : math.value(numberOfHead()));
}

void AttentionBody::drop(Value place, Value row0, Value col0, Value dropoutState, bool scaled, bool transposed,
                         bool marks) {
  if (dropout)
    DropoutOp::create(b, loc, place, row0, col0, dropoutState, dropout->below,
                      scaled ? b.getF64FloatAttr(dropout->factor()) : FloatAttr(), transposed, marks,
                      /*unaligned=*/hasPieces());
}

void AttentionBody::scaleKept(Value acc) {
  if (dropout)
    ScaleOp::create(b, loc, acc, b.getF64FloatAttr(dropout->factor()));
}
