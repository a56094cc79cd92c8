// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile.silent`: an op of the tile dialect that does not say what it reads and writes (`TileOpInterface`), as a new op
// may fail to.
//
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;

namespace attn::test {
class SilentOp : public Op<SilentOp, OpTrait::ZeroRegions, OpTrait::ZeroResults, OpTrait::VariadicOperands> {
public:
  using Op::Op;
  static StringRef getOperationName() { return "tile.silent"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};

void registerTestTileOps(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, tile::TileDialect *dialect) { RegisteredOperationName::insert<SilentOp>(*dialect); });
}
} // namespace attn::test
