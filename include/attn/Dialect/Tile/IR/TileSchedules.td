// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules: one attribute for each way to build a kernel, with only its own parameters. `attn-choose-schedule` decides
// which of them computes a problem; lib/Schedules says what each can compute and how it is lowered.
#ifndef TILE_SCHEDULES
#define TILE_SCHEDULES

include "attn/Dialect/Tile/IR/TileDialect.td"
include "attn/Dialect/Tile/IR/TileScheduleInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

/// A parameter, the name of its accessor without `get`, and its default.
class Param<string p, string accessor, string type = "int64_t", string initial = ""> {
  string name = p;
  string getter = accessor;
  string cppType = type;
  string value = initial;
  AttrOrTypeParameter parameter = !if(!empty(initial), AttrParameter<type, "">, DefaultValuedParameter<type, initial>);
}

def QTile : Param<"q_tile", "QTile">;
def KvTile : Param<"kv_tile", "KvTile">;
def Warps : Param<"warps", "Warps">;
def CtasPerSm : Param<"ctas_per_sm", "CtasPerSm">;
def SingleLoop : Param<"single_loop", "SingleLoop", "bool", "false">;
def Stages : Param<"stages", "Stages", "int64_t", "2">;
def QStages : Param<"q_stages", "QStages", "int64_t", "1">;
def PackHeads : Param<"pack_heads", "PackHeads", "int64_t", "1">;

/// Besides accessors, a schedule `s` has `s.withKvTile(64)` and the like: the same schedule with one parameter changed.
class Tile_Schedule<string name, string word, list<Param> all, list<Trait> traits = [Tile_ScheduleInterface]>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = word;
  let parameters = !dag(ins, !foreach(p, all, p.parameter), !foreach(p, all, p.name));
  list<Param> required = !filter(p, all, !empty(p.value));
  let builders = !if(!eq(!size(required), !size(all)), []<AttrBuilder>, [
    AttrBuilder<!dag(ins, !foreach(p, required, p.cppType), !foreach(p, required, p.name)),
                "return $_get($_ctxt, " #
                !interleave(!foreach(p, all, !if(!empty(p.value), p.name, p.value)), ", ") # ");">]);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  code declarations = "";
  let extraClassDeclaration =
      !foldl("", all, text, p,
             text#name#"Attr with"#p.getter#"("#p.cppType#" value) const { return get(getContext(), "#!interleave(
                 !foreach(q, all, !if(!eq(q.name, p.name), "value", "get"#q.getter#"()")), ", ")#"); }\n")#declarations;
}

//===----------------------------------------------------------------------===//
// Short sequences
//===----------------------------------------------------------------------===//

def Tile_SimtRows : Tile_Schedule<"SimtRows", "simt_rows",
                                  [Param<"rows", "Rows">, Param<"keys", "Keys">, Param<"lanes", "Lanes">, Warps,
                                   CtasPerSm, PackHeads]> {
  let summary = "rows divided among lane groups of a warp, without tensor cores";
  let description = [{
    `lanes` lanes of a warp share a row of a head, and a warp has 32 / lanes heads, or groups of `pack_heads` heads. A
    lane group has `rows` rows and reads `keys` keys at a time. Forward and backward passes
    (docs/Schedules/simt_rows.md).

    Constraints:
    - C1: `lanes` is 1, 2, 4, 8, 16 or 32; `warps` is 1, 2, 4 or 8.
    - C2: `rows` and `keys` are from 1 to 16, and `rows` is a multiple of `pack_heads`.
    - C3: `ctas_per_sm` is from 1 to 16.

    ```mlir
    #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>
    ```
  }];
  let declarations = [{
    int64_t getQTile() const { return getRows(); }
    int64_t getKvTile() const { return getKeys(); }
    WorkUnit getUnit() const { return WorkUnit::warp_per_sequence; }
  }];
}

def Tile_CtaPerSequence
    : Tile_Schedule<"CtaPerSequence", "cta_per_sequence",
                    [QTile, KvTile, Warps, CtasPerSm, PackHeads, Param<"head_loop", "HeadLoop", "int64_t", "1">,
                     Param<"column_parts", "ColumnParts", "int64_t", "0">]> {
  let summary = "one CTA per short sequence, on tensor cores";
  let description = [{
    Each sequence has as many CTAs as its `max_seqlen` or `expected_seqlen` requires, so that a CTA's index gives its
    sequence. `kv_tile` may hold all keys of a short sequence. `pack_heads` may be several groups of query heads:
    their kv heads then lie side by side in a tile, whose columns are pairs of a key and a kv head. A CTA computes
    `head_loop` such tiles, one after the other. Warps have 16 rows each in registers; the last rows may belong to no
    query.

    With `column_parts`, `kv_tile` is expected to hold all keys: the softmax is a single pass, and the CTA computes
    its results in so many parts of their columns. Longer sequences have a KV loop of 16 keys at a time. Forward and
    backward passes (docs/Schedules/cta_per_sequence.md).

    Constraints:
    - C1: `warps` is from 1 to 8, `q_tile` from 1 to 256, `kv_tile` a multiple of 8 from 8 to 256.
    - C2: `ctas_per_sm` is from 1 to 32.
    - C3: `pack_heads` is from 1 to q_tile; `head_loop` is positive, `column_parts` is not negative.

    ```mlir
    #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 16>
    ```
  }];
  let declarations = [{
    WorkUnit getUnit() const { return WorkUnit::cta_per_sequence; }
    /// Rows of a query tile's fragment, a multiple of 16 for each warp.
    int64_t getFragmentRows() const { return (getQTile() + 16 * getWarps() - 1) / (16 * getWarps()) *
        (16 * getWarps()); }
  }];
}

//===----------------------------------------------------------------------===//
// Forward passes on tiles
//===----------------------------------------------------------------------===//

def Tile_Tiled : Tile_Schedule<"Tiled", "tiled",
                               [QTile, KvTile, Warps, CtasPerSm,
                                Param<"q_in_registers", "QInRegisters", "bool", "false">, SingleLoop, PackHeads]> {
  let summary = "a query tile for each CTA, whose warps both copy and multiply";
  let description = [{
    A CTA of `warps` warps has `q_tile` query rows and streams K and V past them, `kv_tile` keys at a time; the copies
    of the next tiles (cp.async) run under the products. The forward schedule of targets `cpu` and `sm_80`
    (docs/Schedules/README.md). `q_in_registers` keeps the query tile in registers. With `single_loop` the KV loop is
    one loop that tests which tiles need the mask, in place of a loop for each segment (full, partly masked): half the
    code. Several runs of tiles share one loop in any case.

    Constraints:
    - C1: `warps` is 1, 2, 4 or 8, `q_tile` a multiple of 16 * warps up to 256.
    - C2: `kv_tile` is a multiple of 16 from 16 to 256.
    - C3: `ctas_per_sm` is from 1 to 16.
    - C4: `pack_heads` is from 1 to q_tile.

    ```mlir
    #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>
    ```
  }];
}

def Tile_WarpSpecialized : Tile_Schedule<"WarpSpecialized", "warp_specialized",
                                         [QTile, KvTile, Warps, CtasPerSm, Stages, QStages,
                                          Param<"pingpong", "Pingpong", "bool", "false">, SingleLoop, PackHeads],
                                         [Tile_ScheduleInterface, Tile_WarpSpecializedInterface]> {
  let summary = "a producer warp and consumer warpgroups on Hopper, persistent";
  let description = [{
    The producer loads K and V tiles by TMA to rings of `stages` stages, and query tiles to a ring of `q_stages`; 1 to
    3 consumer warpgroups of 64 query rows each multiply them (WGMMA). With `pingpong`, warpgroups start their
    products one after the other, so that one multiplies while another computes exponentials
    (docs/Schedules/warp_specialized.md).

    Constraints:
    - C1: `warps` is 4, 8 or 12, and `q_tile` 16 * warps.
    - C2: `kv_tile` is a multiple of 16 from 16 to 256.
    - C3: at most 3 CTAs and 12 consumer warps a multiprocessor.
    - C4: `stages` is from 2 to 8, `q_stages` 1 or 2.
    - C5: `pingpong` with 8 or 12 warps.
    - C6: `pack_heads` is from 1 to q_tile.

    ```mlir
    #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>
    ```
  }];
}

def Tile_SinglePass
    : Tile_Schedule<
          "SinglePass",
          "single_pass", [QTile, KvTile, Param<"kv_tiles", "KvTiles">, Warps, CtasPerSm, Stages, QStages, SingleLoop],
          [Tile_ScheduleInterface, Tile_WarpSpecializedInterface]> {
  let summary = "all keys of a short sequence at once, warp-specialized";
  let description = [{
    For a sequence of more than one and at most `kv_tiles` KV tiles, all scores are in registers: its softmax is a
    single pass, not online. Sequences of other lengths have a KV loop as with `warp_specialized`
    (docs/Schedules/single_pass.md).

    Constraints:
    - C1: `warps` is 4, 8 or 12, and `q_tile` 16 * warps.
    - C2: `kv_tile` is a multiple of 16 from 16 on, `kv_tiles` 2 or more, and both together at most 256 keys.
    - C3: at most 3 CTAs and 12 consumer warps a multiprocessor.
    - C4: `stages` is from 1 to 8, `q_stages` 1 or 2.

    ```mlir
    #tile.single_pass<q_tile = 192, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1>
    ```
  }];
  let declarations = "bool hasWholeSequence() const { return true; }";
}

def Tile_SplitKv : AttrDef<Tile_Dialect, "SplitKv", [Tile_ScheduleInterface]> {
  let mnemonic = "split_kv";
  let summary = "split-KV: several CTAs share the keys of a query tile";
  let description = [{
    Each of `splits` CTAs computes a part of the KV tiles, as `of` says, and a second kernel combines the results
    (`tile.combine`). With few query tiles, as in decoding, most multiprocessors would otherwise have no work. With
    `splits` 0, the launch takes as many as fill the chip (docs/Schedules/split_kv.md), and has no second kernel if that
    is one.

    With `least`, only query tiles whose loop is longer than a CTA's share of all loops have several CTAs
    (`metadata.split_walks`). A share is at least `least` KV tiles. This is for masks under which few rows see all keys
    and the others few, as with global rows.

    Constraints:
    - C1: `splits` is from 0 to 256.
    - C2: `of` is `#tile.tiled` or `#tile.warp_specialized`.
    - C3: `least` is from 0 to 1048576, and 0 where `splits` is not.

    ```mlir
    #tile.split_kv<splits = 4, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
    ```
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "0">:$splits, DefaultValuedParameter<"int64_t", "0">:$least,
      "::attn::tile::ScheduleInterface":$of);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getQTile() const { return getOf().getQTile(); }
    int64_t getKvTile() const { return getOf().getKvTile(); }
    int64_t getWarps() const { return getOf().getWarps(); }
    int64_t getCtasPerSm() const { return getOf().getCtasPerSm(); }
    int64_t getPackHeads() const { return getOf().getPackHeads(); }
    bool getSingleLoop() const { return getOf().getSingleLoop(); }
    std::optional<int64_t> getKvSplits() const { return getLeast() ? std::nullopt : std::optional(getSplits()); }
    int64_t getLeastKvTiles() const { return getLeast(); }
  }];
}

//===----------------------------------------------------------------------===//
// Backward passes on tiles
//===----------------------------------------------------------------------===//

def Tile_TiledBackward
    : Tile_Schedule<"TiledBackward", "tiled_backward", [QTile, KvTile, Warps, CtasPerSm, SingleLoop]> {
  let summary = "gradients of a stationary tile; the CTA's warps both copy and multiply";
  let description = [{
    A CTA has a KV tile and streams Q and dO past it, for dK and dV, or a query tile and streams K and V past it, for
    dQ. Targets `cpu` and `sm_80` (docs/Schedules/README.md).

    Constraints:
    - C1: `warps` is 1, 2, 4 or 8; `q_tile` and `kv_tile` are multiples of 16 from 16 to 256, and the stationary
      tile's rows a multiple of 16 * warps.
    - C2: `ctas_per_sm` is from 1 to 16.

    ```mlir
    #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
    ```
  }];
}

def Tile_WarpSpecializedBackward : Tile_Schedule<"WarpSpecializedBackward", "warp_specialized_backward",
                                                 [QTile, KvTile, Warps, CtasPerSm, Stages, QStages, SingleLoop,
                                                  Param<"dq_columns", "DqColumns", "int64_t", "0">],
                                                 [Tile_ScheduleInterface, Tile_WarpSpecializedInterface]> {
  let summary = "gradients of a stationary tile on Hopper, with a producer warp";
  let description = [{
    As `tiled_backward`, with the producer and consumers of `warp_specialized`. Where `tile.add_global`
    has a staging place, two dQ store warps add dQ to the dQ accumulator; wide heads have none unless accumulation is
    ordered. With `dq_columns`, a dQ MMA warpgroup computes dQ, so many columns at a time: consumers wait for no other
    warpgroup (docs/Schedules/warp_specialized_backward.md).

    Constraints:
    - C1: `warps` is 4, 8 or 12; `q_tile` and `kv_tile` are multiples of 16 from 16 to 256, and the stationary tile
      has 16 rows for each warp.
    - C2: at most 3 CTAs and 12 consumer warps a multiprocessor.
    - C3: `stages` is from 1 to 8, `q_stages` 1 or 2.
    - C4: `dq_columns`, if given, is 32 or 64, with a q_tile in multiples of 64, 8 warps, 1 CTA, 2 stages or more and
      `single_loop`, since two loops do not fit the registers.

    ```mlir
    #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true,
                                    dq_columns = 64>
    ```
  }];
}

defvar ownsSequence = "WorkUnit getUnit() const { return WorkUnit::cta_per_sequence; }\n"
                      "bool hasWholeSequence() const { return true; }";

def Tile_SinglePassBackward
    : Tile_Schedule<"SinglePassBackward", "single_pass_backward", [QTile, KvTile, Warps, CtasPerSm, Stages, QStages],
                    [Tile_ScheduleInterface, Tile_WarpSpecializedInterface]> {
  let summary = "all pairs of a short sequence in one tile, on Hopper";
  let description = [{
    A CTA has all queries and all keys of a sequence of up to `q_tile` and `kv_tile` rows, and computes all gradients
    without an accumulator in memory. Other kernels compute longer sequences. `stages` are those of K, V and dO,
    `q_stages` those of Q (docs/Schedules/single_pass_backward.md).

    Constraints:
    - C1: `warps` is 8; `q_tile` and `kv_tile` are multiples of 16 from 80 to 128.
    - C2: at most 3 CTAs; `stages` is from 1 to 8, `q_stages` 1 or 2.

    ```mlir
    #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>
    ```
  }];
  let declarations = ownsSequence;
}

def Tile_StationaryQBackward
    : Tile_Schedule<
          "StationaryQBackward",
          "stationary_q_backward", [QTile, KvTile, Param<"kv_tiles", "KvTiles">, Warps, CtasPerSm, Stages, QStages],
          [Tile_ScheduleInterface, Tile_WarpSpecializedInterface]> {
  let summary = "all queries of a sequence stay in a CTA and K/V tiles are streamed past them, on Hopper";
  let description = [{
    A CTA has all queries of a sequence of up to `q_tile` rows, keeps their dQ in registers, and streams up to
    `kv_tiles` K/V tiles past them. Other kernels compute longer sequences (docs/Schedules/stationary_q_backward.md).

    Constraints:
    - C1: `warps` is 12 and `q_tile` from 144 to 192, or `warps` is 8 and `q_tile` from 208 to 256; a multiple of 16.
    - C2: `kv_tile` is 48 or 64, and there are 1 to 256 keys in all of its tiles.
    - C3: at most 3 CTAs and 12 consumer warps; `stages` is from 1 to 8, `q_stages` 1 or 2.

    ```mlir
    #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>
    ```
  }];
  let declarations = ownsSequence;
}

//===----------------------------------------------------------------------===//
// Several kernels
//===----------------------------------------------------------------------===//

def Tile_DqAccumulation : I32EnumAttr<"DqAccumulation", "how dQ is made",
                                      [I32EnumAttrCase<"separate", 0>, I32EnumAttrCase<"unordered", 1>,
                                       I32EnumAttrCase<"first_stores", 2>, I32EnumAttrCase<"ordered", 3>]> {
  let cppNamespace = "::attn::tile";
}

def Tile_BackwardKernels : AttrDef<Tile_Dialect, "BackwardKernels"> {
  let mnemonic = "backward_kernels";
  let summary = "the kernels of a backward pass on tiles";
  let description = [{
    A preprocess kernel computes row statistics. `dkdv` has stationary KV tiles and computes dK and dV, or dK alone if
    `dv` is given, which then computes dV. `accumulation` says how dQ is computed:

    | `accumulation` | dQ |
    |---|---|
    | `separate` | computed by another kernel, `dq`, with stationary query tiles |
    | `unordered` | CTAs of `dkdv` add to a float32 accumulator in global memory, which is cleared beforehand |
    | `first_stores` | likewise, but the first CTA of a query tile stores; the others then add in any order |
    | `ordered` | likewise, but CTAs add one after the other, so that results are the same in each run |

    A postprocess kernel converts the accumulator.

    With `split_q`, several CTAs share the loop of a KV tile over query tiles, if that is longer than a CTA's
    share of all loops, which is at least `split_q` query tiles (`metadata.split_walks`). They write partial dK
    and dV, which a combine kernel adds up.

    Constraints:
    - C1: `dq` is given if and only if `accumulation` is `separate`.
    - C2: `split_q` is from 0 to 1048576.

    ```mlir
    #tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<
        q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>>
    ```
  }];
  let parameters = (ins EnumParameter<Tile_DqAccumulation>:$accumulation, "::attn::tile::ScheduleInterface":$dkdv,
      OptionalParameter<"::attn::tile::ScheduleInterface">:$dv,
      OptionalParameter<"::attn::tile::ScheduleInterface">:$dq, DefaultValuedParameter<"int64_t", "0">:$split_q);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool accumulates() const { return getAccumulation() != DqAccumulation::separate; }
    BackwardKernelsAttr withSplitQ(int64_t splitQ) const;
  }];
}

def Tile_ByResidue : AttrDef<Tile_Dialect, "ByResidue"> {
  let mnemonic = "by_residue";
  let summary = "tiles of every n-th row, for masks under which a row sees every n-th key";
  let description = [{
    Where a mask has the conjunct `#attn.strided<stride = n, ...>`, a row sees keys of one residue modulo n only, so
    that attention falls apart into n problems on every n-th row and key. A tile has rows, and keys, of one residue:
    the stride hides none of its scores. TMA reads such rows with element strides, other copies with a longer row
    stride. `stride` is n or a divisor of it. `of` computes the rest of the mask. Both passes
    (docs/Schedules/by_residue.md).

    Constraints:
    - C1: `stride` is from 2 to 8, the element strides of TMA.
    - C2: `of` is `#tile.tiled`, `#tile.warp_specialized`, or `#tile.backward_kernels` without `split_q`.

    ```mlir
    #tile.by_residue<stride = 4, of = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
    ```
  }];
  let parameters = (ins "int64_t":$stride, "::mlir::Attribute":$of);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_ByLength : AttrDef<Tile_Dialect, "ByLength"> {
  let mnemonic = "by_length";
  let summary = "one schedule for short sequences of a batch, another for long ones";
  let description = [{
    The lengths, which are on the device, decide which sequences are short. Both passes (docs/Schedules/by_length.md).

    Constraints:
    - C1: `short_sequences` has a CTA or a warp for each sequence, `long_sequences` tiles of a grid, not `by_residue`
      or `split_kv`.

    ```mlir
    #tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>,
                    long_sequences = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
    ```
  }];
  let parameters = (ins "::attn::tile::ScheduleInterface":$short_sequences, "::mlir::Attribute":$long_sequences);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_Auxiliary
    : Tile_Schedule<
          "Auxiliary",
          "auxiliary", [QTile, KvTile, Warps, CtasPerSm, Param<"per_sequence", "PerSequence", "bool", "false">]> {
  let summary = "a kernel beside attention: tile lists, row statistics, combining splits, conversion of ids";
  let description = [{
    CTAs of `warps` warps for tiles of so many rows or keys. With `per_sequence`, a CTA's index gives its sequence.

    Constraints:
    - C1: `warps` is from 1 to 16, `ctas_per_sm` from 1 to 16; `q_tile` and `kv_tile` are positive.

    ```mlir
    #tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 1>
    ```
  }];
}

def Tile_Target : AttrDef<Tile_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "the chip for which kernels are built";
  let description = [{
    `attn-choose-schedule` writes it on the module, as `tile.target`. `chip` is the compute capability times ten, 0
    for a CPU.

    Constraints:
    - C1: there is such a target with such a chip.

    ```mlir
    #tile.target<"sm_80", chip = 86>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$family, "int64_t":$chip);
  let assemblyFormat = "`<` $family `,` `chip` `=` $chip `>`";
  let genVerifyDecl = 1;
}

#endif // TILE_SCHEDULES
