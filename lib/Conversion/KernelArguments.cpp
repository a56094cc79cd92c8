// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelArguments.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

KernelArguments::KernelArguments(ProblemOp problem, tile::ConfigAttr boxes) {
  Builder b(problem.getContext());
  std::vector<ProblemTensor> tensors = tensorsOf(problem);

  for (const ProblemTensor &tensor : tensors) {
    Type element = tensor.element == ProblemTensor::Data      ? problem.getDtype()
                   : tensor.element == ProblemTensor::Float32 ? Type(b.getF32Type())
                                                              : Type(b.getI32Type());
    add(tensor.name, tile::PtrType::get(problem.getContext(), element));
  }

  add("batch", b.getI32Type());
  add(problem.getQLayout().isPacked() ? "total_q" : "seqlen_q", b.getI32Type());
  if (!problem.getKLayout().isPacked())
    add("seqlen_kv", b.getI32Type());

  for (const ProblemTensor &tensor : tensors) {
    if (tensor.batchAxis >= 0)
      add(tensor.name + "_batch", b.getI64Type());
    if (tensor.rowAxis >= 0 && tensor.element == ProblemTensor::Data)
      add(tensor.name + "_row", b.getI64Type());
    if (tensor.headAxis >= 0)
      add(tensor.name + "_head", b.getI64Type());
  }

  if (!boxes)
    return;
  for (auto [name, rows] : {std::pair("q_map", boxes.getQTile()), std::pair("k_map", boxes.getKvTile()),
                            std::pair("v_map", boxes.getKvTile())})
    add(name, tile::MapType::get(problem.getContext(), rows, problem.getDtype()));
  add("blocks", b.getI32Type());
  add("queue", tile::QueueType::get(problem.getContext()));
}
