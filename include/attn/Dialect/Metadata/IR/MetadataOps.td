// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef METADATA_OPS
#define METADATA_OPS

include "attn/Dialect/Metadata/IR/BlockMapOps.td"
include "attn/Dialect/Metadata/IR/ListOps.td"
include "attn/Dialect/Metadata/IR/SegmentOps.td"
include "attn/Dialect/Metadata/IR/TreeOps.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

#endif // METADATA_OPS
