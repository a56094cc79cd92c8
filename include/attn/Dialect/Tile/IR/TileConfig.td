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
    products in turn, so that one multiplies while another is at its exponents. Other targets
    refuse anything but the defaults. With `reducer`, one more warpgroup makes dQ of a backward pass, at most so many columns at a
    time, so that those that compute wait for no warpgroup but themselves (docs/Schedules/hopper-backward.md).

    With `pack_heads`, the rows of a query tile are pairs of a query and one of so many
    query heads of a kv head, whose keys are then read once for all of them: where queries
    are fewer than a tile has rows, as in decoding, it is filled up with heads
    (`!tile.pairs`).

    With `splits`, the keys of a query tile go to as many blocks, each of which
    walks its share of the key tiles; a second kernel merges what they found
    (`tile.merge`). Where query tiles are few, as in decoding, the chip would be
    idle otherwise. 0: the launcher takes as many as fill the chip, from the
    sizes of the launch (`rt::GridRule::splitsFor`).

    With `lanes`, nothing is a tile: a row of a head is dealt to so many lanes of a warp,
    and a warp has 32 / lanes heads, or groups of `pack_heads` of them
    (docs/Schedules/streaming.md). `q_tile` is then how many rows such a group of lanes
    has, and `kv_tile` how many keys it has under way at once.

    With `by_sequence`, tiles are not found among the rows of all sequences but dealt out, to each sequence as many
    as its `bounds` ask for, so a block knows its sequence from its number, and `kv_tile` may hold all keys of a
    short one (docs/Schedules/streaming.md). `pack_heads` may then be several groups: columns of scores are pairs of a key
    and a kv head, and heads side by side fill a tile that the rows of one would leave empty. With `heads_in_turn` a block has so
    many tiles of heads of its sequence, one after the other: what it costs to begin, and to find lengths, is then theirs together.
    Tiles have as many rows and keys as are there as a rule: warps have 16 rows each in registers, of which the last ones' may be nobody's.
    With `parts`, `kv_tile` is expected to hold all keys: then nothing is carried from key tile to key tile, and a block makes its
    results so many parts of their columns at a time; what does not fit is walked 16 keys at a time.

    With `look`, keys of so many tiles are looked at in one go where a sequence has more than one tile of them and no more than these: then nothing is carried
    from tile to tile, and scores and results have a thread's registers one after the other (docs/Schedules/streaming.md, 9). In a backward pass a block has all of
    a sequence so, of `q_tile` rows at most, and other kernels have longer ones; `stages` are slots of K, V and dO, `q_stages` of Q. With more than 128 rows these are
    at rest there, and keys pass by, a tile at a time and as many as `look`; `stages` are slots of K and V then.

    Constraints:
    - C1: warps is 1, 2, 4, 8 or 12, and q_tile a multiple of 16 * warps, at most 256 (or as many rows as
      warps, in a kernel without fragments, which merges; or a multiple of 16, where kv_tile is one of 16 * warps,
      in a grid of key tiles, or with look); or warps is 16, in
      kernels that compute no tiles, and q_tile a multiple of 16 from 16 to 256.
    - C2: kv_tile is a multiple of 16 from 16 to 256.
    - C3: blocks is from 1 to 16, with by_sequence to 32.
    - C4: stages is from 1 to 8, q_stages 1 or 2. (A problem takes 2 at least: it needs the next keys before it is done with these.)
    - C5: splits is from 0 to 256.
    - C6: pack_heads is from 1 to q_tile.
    - C7: lanes is 0, or 1, 2, 4, 8, 16 or 32; then, in place of C1 and C2, warps is 1, 2, 4 or 8, q_tile and
      kv_tile are from 1 to 16, q_tile is a multiple of pack_heads, and nothing else but blocks is given.
    - C8: with by_sequence, in place of C1 and C2, warps is 1 to 8, q_tile from 1 to 256, kv_tile a multiple of 8 from 8 to 256, and
      nothing else but blocks, pack_heads, heads_in_turn and parts is given.
    - C9: heads_in_turn is positive, and 1 without by_sequence; parts is not negative, and 0 without it.
    - C10: reducer is 0, or 32 or 64, and then q_tile is a multiple of 64, warps is 8, blocks is 1, stages is 2 at least, and there is one_body: two have no registers.
    - C11: look is positive, kv_tile times look at most 256, and 1 with lanes or by_sequence.

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
                        DefaultValuedParameter<"int64_t", "1">:$splits,
                        DefaultValuedParameter<"int64_t", "1">:$pack_heads,
                        DefaultValuedParameter<"int64_t", "0">:$lanes,
                        DefaultValuedParameter<"bool", "false">:$by_sequence,
                        DefaultValuedParameter<"int64_t", "1">:$heads_in_turn,
                        DefaultValuedParameter<"int64_t", "0">:$parts,
                        DefaultValuedParameter<"int64_t", "0">:$reducer,
                        DefaultValuedParameter<"int64_t", "1">:$look);
  let builders = [AttrBuilder<(ins "int64_t":$q_tile, "int64_t":$kv_tile, "int64_t":$warps, "int64_t":$blocks), [{
    return $_get($_ctxt, q_tile, kv_tile, warps, blocks, /*hold_q=*/false, /*one_body=*/false, /*stages=*/2,
                 /*q_stages=*/1, /*turns=*/false, /*splits=*/1, /*pack_heads=*/1, /*lanes=*/0, /*by_sequence=*/false,
                 /*heads_in_turn=*/1, /*parts=*/0, /*reducer=*/0, /*look=*/1);
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Queries of a query tile; with packed heads, the last rows may be none's.
    int64_t getQueries() const { return getQTile() / getPackHeads(); }
    /// Are the keys of a query tile shared out among blocks?
    bool isSplit() const { return getSplits() != 1; }
    /// Is a row dealt to a group of lanes?
    bool hasStrips() const { return getLanes() != 0; }
    /// No tiles of a grid that many sequences have: a block or its warps know their sequence.
    bool streams() const { return hasStrips() || getBySequence(); }
    /// The same but for what they say.
    ConfigAttr withKvTile(int64_t keys) const;
    ConfigAttr withQTile(int64_t rows) const;
    ConfigAttr withHoldQ(bool holds) const;
    ConfigAttr withOneBody(bool one) const;
    ConfigAttr withStages(int64_t stages, int64_t qStages) const;
    ConfigAttr withTurns(bool turns) const;
    ConfigAttr withSplits(int64_t splits) const;
    ConfigAttr withPackHeads(int64_t heads) const;
    ConfigAttr withWarps(int64_t warps) const;
    ConfigAttr withBySequence(bool owns) const;
    ConfigAttr withHeadsInTurn(int64_t heads) const;
    ConfigAttr withParts(int64_t parts) const;
    ConfigAttr withBlocks(int64_t blocks) const;
    ConfigAttr withReducer(int64_t columns) const;
    ConfigAttr withLook(int64_t tiles) const;
    /// Threads of a block with roles: those that compute, and a warpgroup or two for the other roles.
    int64_t getThreadsOfRoles() const { return 32 * getWarps() + (getReducer() ? 256 : 128); }
    /// Registers that a thread of a kernel with roles is launched with: they come in eights.
    int64_t getRegistersAtLaunch() const { return 64 * 1024 / getBlocks() / getThreadsOfRoles() / 8 * 8; }
    /// Rows of fragments of a query tile, of which a warp has 16 or a multiple.
    int64_t getFragmentRows() const { return (getQTile() + 16 * getWarps() - 1) / (16 * getWarps()) * (16 * getWarps()); }
    /// Of a kernel on strips.
    static ConfigAttr ofStrips(::mlir::MLIRContext *context, int64_t rows, int64_t keys, int64_t packHeads, int64_t lanes,
                               int64_t warps, int64_t blocks);
  }];
}

#endif // TILE_CONFIG
