// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `metadata` dialect: steps of kernels that build sequences, tile lists, block bits and trees. See
// MetadataDialect.td.
//
#ifndef ATTN_DIALECT_METADATA_IR_METADATA_H
#define ATTN_DIALECT_METADATA_IR_METADATA_H

#include "attn/Dialect/Tile/IR/Tile.h"

#include "attn/Dialect/Metadata/IR/MetadataDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Metadata/IR/MetadataTypes.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/Metadata/IR/MetadataOps.h.inc"

#endif // ATTN_DIALECT_METADATA_IR_METADATA_H
