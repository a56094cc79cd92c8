// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_DIALECT
#define TILE_DIALECT

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::attn::tile";
  let summary = "how an attention kernel runs: tiles, places, copies, products";
  let description = [{
    The `tile` dialect says *how*: which KV tiles a query tile visits, which of them need an element test, what is
    copied when, and which warps wait for what. A kernel is the program of one CTA for one work tile, such as a query
    tile. Scalars are `arith` on i32 (positions) and i64 (element offsets); control flow is `scf`.

    - **Places.** Shared-memory tiles, register fragments and softmax states are places, named by SSA values and never
      copied: ops take them as operands, destination first.
    - **Tokens.** A copy or a product is asynchronous and returns a token. An op that reads its destination, or
      overwrites what it reads, has to come after a wait for that token. `tile-verify-async` checks this.
    - **One op, one line.** Ops that compute or copy are printed as a call of the device function of the same name
      (`kernels-runtime/device/attn`, or `host/attn` on a CPU).

    A kernel is built by a sequence of passes, so that the IR before and after each one shows what it did:
    `tile-pipeline-kv` moves copies up, `tile-split-kv-loop` makes one loop per segment and removes the tests that it
    does not need.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// `TileOpInterface` for all ops whose definition derives from a class of TileInterfaces.td.
    void *getRegisteredInterfaceForOp(::mlir::TypeID interface, ::mlir::OperationName op) override;
  }];
}

#endif // TILE_DIALECT
