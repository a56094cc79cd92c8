// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelArguments.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

KernelArguments::KernelArguments(ProblemOp problem) {
  Builder b(problem.getContext());
  Type element = tile::PtrType::get(problem.getContext(), problem.getDtype());
  Type array = tile::PtrType::get(problem.getContext(), b.getI32Type());
  Type statistics = tile::PtrType::get(problem.getContext(), b.getF32Type());

  for (const char *tensor : {"q", "k", "v", "o"})
    add(tensor, element);
  if (problem.hasLse())
    add("lse", statistics);

  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  for (auto [side, layout] : {std::pair("q", q), std::pair("kv", kv)}) {
    if (layout.isPacked())
      add(Twine("cu_seqlens_") + side, array);
    if (layout.getPadded())
      add(Twine("padded_offsets_") + side, array);
  }
  for (const MaskOperand &operand : distinctOperands(problem.getMask()))
    add(operand.name, array);

  add("batch", b.getI32Type());
  add(q.isPacked() ? "total_q" : "seqlen_q", b.getI32Type());
  if (!kv.isPacked())
    add("seqlen_kv", b.getI32Type());

  for (auto [tensor, packed] : {std::pair("q", q.isPacked()), std::pair("k", kv.isPacked()),
                                std::pair("v", kv.isPacked()), std::pair("o", q.isPacked())}) {
    if (!packed)
      add(Twine(tensor) + "_batch", b.getI64Type());
    add(Twine(tensor) + "_row", b.getI64Type());
    add(Twine(tensor) + "_head", b.getI64Type());
  }
  if (problem.hasLse()) {
    if (!q.isPacked())
      add("lse_batch", b.getI64Type());
    add("lse_head", b.getI64Type());
  }
}
