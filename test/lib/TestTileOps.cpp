// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile.silent` and `metadata.silent`: ops that do not say what they read and write (`TileOpInterface`), as a new op of
// these dialects may fail to.
//
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;

namespace attn::test {
template <typename Concrete>
class SilentOp : public Op<Concrete, OpTrait::ZeroRegions, OpTrait::ZeroResults, OpTrait::VariadicOperands> {
public:
  using Op<Concrete, OpTrait::ZeroRegions, OpTrait::ZeroResults, OpTrait::VariadicOperands>::Op;
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};
struct SilentTileOp : SilentOp<SilentTileOp> {
  using SilentOp::SilentOp;
  static StringRef getOperationName() { return "tile.silent"; }
};
struct SilentMetadataOp : SilentOp<SilentMetadataOp> {
  using SilentOp::SilentOp;
  static StringRef getOperationName() { return "metadata.silent"; }
};

void registerTestTileOps(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, tile::TileDialect *dialect) { RegisteredOperationName::insert<SilentTileOp>(*dialect); });
  registry.addExtension(+[](MLIRContext *, metadata::MetadataDialect *dialect) {
    RegisteredOperationName::insert<SilentMetadataOp>(*dialect);
  });
}
} // namespace attn::test
