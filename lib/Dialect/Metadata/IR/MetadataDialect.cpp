// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Metadata/IR/Metadata.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::metadata;
using attn::tile::BehaviorTable;

#include "attn/Dialect/Metadata/IR/MetadataDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Metadata/IR/MetadataTypes.cpp.inc"
#define GET_OP_CLASSES
#include "attn/Dialect/Metadata/IR/MetadataOps.cpp.inc"

void MetadataDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Metadata/IR/MetadataTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Metadata/IR/MetadataOps.cpp.inc"
      >();
  addInterface<BehaviorTable>(attn::tile::Definitions<
#define GET_OP_LIST
#include "attn/Dialect/Metadata/IR/MetadataOps.cpp.inc"
                              >::all);
}

void *MetadataDialect::getRegisteredInterfaceForOp(TypeID interface, OperationName op) {
  return getRegisteredInterface<BehaviorTable>()->getModel(interface, op);
}

LogicalResult SegmentTableType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t segments,
                                       int64_t cluster) {
  if (segments < 1 || segments > 2048 || cluster < 1 || cluster > 16) // C1
    return emitError() << "expected a table of 1 to 2048 segments for clusters of 1 to 16 CTAs, got: " << segments
                       << ", " << cluster;
  return success();
}

int64_t SegmentTableType::getSharedBytes() const {
  int64_t s = getSegments(), fields = 14, buckets = 256;
  int64_t tables = std::max(fields * s, 33 * buckets);
  int64_t words = tables + 3 * s + 2 * (s + 1) + llvm::divideCeil(s, 32) + 4 + 2 * 3 * 32;
  return llvm::alignTo(words * 4, 16);
}

LogicalResult TreeRunsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t runs) {
  if (runs < 1 || runs % 128) // C1
    return emitError() << "expected a positive multiple of 128 runs, got: " << runs;
  return success();
}
