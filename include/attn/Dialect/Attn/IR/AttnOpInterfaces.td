// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_OP_INTERFACES
#define ATTN_OP_INTERFACES

include "mlir/IR/OpBase.td"

def Attn_ComputationInterface : OpInterface<"ComputationInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    An op that is computed on its own, over tensors of its caller, and is no attention problem. `convert-attn-to-tile`
    makes it a `program.def` and its kernels; `attn.call` makes it a step of an `attn.program`. Its lowering is
    registered in lib/Schedules/Sparse/Lowerings.cpp.
  }];
  let methods = [InterfaceMethod<"Appends the tensors, in the order in which a caller gives them.", "void",
                                 "appendTensors", (ins "std::vector<::attn::ProblemTensor> &":$list)>,
                 InterfaceMethod<"Fills in the extents that the op itself decides.", "void", "fillFixedSizes",
                                 (ins "::attn::FixedSizes &":$fixed)>,
                 InterfaceMethod<"The element type of tensors of `ProblemTensor::Data`.", "::mlir::Type",
                                 "getDataType">];
}

#endif // ATTN_OP_INTERFACES
