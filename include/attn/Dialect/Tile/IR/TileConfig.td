// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_CONFIG
#define TILE_CONFIG

include "attn/Dialect/Tile/IR/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Tile_Config : AttrDef<Tile_Dialect, "Config"> {
  let mnemonic = "config";
  let summary = "the sizes a schedule is built with";
  let description = [{
    Chosen by one heuristic (`lib/Conversion/ChooseConfig.cpp`) from head dims,
    dtype and target, or given by hand on an `attn.problem`, and visible on the
    kernel in every dump. A block has `warps` warps and computes `q_tile` query
    rows against `kv_tile` keys at a time; `blocks` is how many blocks one
    multiprocessor should hold at once. `hold_q` keeps the query tile in
    registers, for head dims where they have room. With `one_body` the walk over
    keys is one loop that asks which tiles need a test, and not a loop for each
    segment: half the code to compile.

    Where a role of its own brings the tiles (sm_90a), `warps` counts those that
    compute, `stages` is how many key tiles (and value tiles) and `q_stages` how
    many query tiles shared memory holds; with `turns`, warpgroups begin their
    products in turn, so that one multiplies while another is at its exponents;
    with `narrow`, each warpgroup walks the key tiles of its own rows. Other targets
    refuse anything but the defaults.

    Constraints:
    - C1: warps is 1, 2, 4, 8 or 12, and q_tile a multiple of 16 * warps, at most 256; or warps is 16, in
      kernels that compute no tiles, and q_tile a multiple of 16 from 16 to 256.
    - C2: kv_tile is a multiple of 16 from 16 to 256.
    - C3: blocks is from 1 to 16.
    - C4: stages is from 2 to 8, q_stages 1 or 2.
    - C5: not both turns and narrow: warpgroups have to take as many turns as each other.

    ```mlir
    #tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2>
    ```
  }];
  let parameters = (ins "int64_t":$q_tile, "int64_t":$kv_tile, "int64_t":$warps, "int64_t":$blocks,
                        DefaultValuedParameter<"bool", "false">:$hold_q,
                        DefaultValuedParameter<"bool", "false">:$one_body,
                        DefaultValuedParameter<"int64_t", "2">:$stages,
                        DefaultValuedParameter<"int64_t", "1">:$q_stages,
                        DefaultValuedParameter<"bool", "false">:$turns,
                        DefaultValuedParameter<"bool", "false">:$narrow);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // TILE_CONFIG
