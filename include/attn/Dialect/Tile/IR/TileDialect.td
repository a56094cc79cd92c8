// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_DIALECT
#define TILE_DIALECT

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::attn::tile";
  let summary = "how an attention kernel runs: tiles, places, copies, products";
  let description = [{
    The `tile` dialect says *how*: which key tiles a query tile visits, which of
    them need an element test, what is copied when, who waits for whom. A kernel
    is the program of one thread block for one query tile. Scalars are `arith`
    on i32 (positions) and i64 (element offsets); control flow is `scf`.

    - **Places.** Shared-memory tiles, register fragments and row states are
      places, named by SSA values and never copied: ops take them as operands,
      destination first.
    - **Tokens.** A copy or a product is asynchronous; it returns a token, and
      whoever reads its destination, or overwrites what it reads, waits for that
      token first. `tile-verify-async` holds programs to it.
    - **One op, one line.** Every op is printed as one call of a device verb of
      the same name (`kernels-runtime/device/attn`, or `host/attn` on a CPU).

    A schedule is a sequence of passes, so it can be read as a diff between two
    dumps: `tile-pipeline-kv` moves copies ahead, `tile-split-kv-loop` makes one
    loop per segment and drops the tests it does not need.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// `TileOpInterface`, of ops whose definition says what they do.
    void *getRegisteredInterfaceForOp(::mlir::TypeID interface, ::mlir::OperationName op) override;
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

#endif // TILE_DIALECT
