// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef METADATA_TYPES
#define METADATA_TYPES

include "attn/Dialect/Metadata/IR/MetadataDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Metadata_Type<string name, string mnem, list<Trait> traits = []> : TypeDef<Metadata_Dialect, name, traits> {
  let mnemonic = mnem;
}
class Metadata_Place<string name, string mnem> : Metadata_Type<name, mnem, [PlaceTypeInterface]>;

def Metadata_Tokens : Metadata_Type<"Tokens", "tokens"> {
  let summary = "the tokens of one side of a batch row: their ids, their positions, and how many there are";
  let description = [{
    Example: `!metadata.tokens`.
  }];
}

def Metadata_SegmentTable : Metadata_Place<"SegmentTable", "segment_table"> {
  let summary = "a place: the segments of a batch row, in the shared memory of a cluster";
  let description = [{
    Each of the `cluster` CTAs has a table of `segments` ids in shared memory. After an op that adds up counts, all
    CTAs of the cluster have the same table.

    Constraints:
    - C1: segments is from 1 to 2048, cluster from 1 to 16.

    Example: `!metadata.segment_table<256, 16>`.
  }];
  let parameters = (ins "int64_t":$segments, "int64_t":$cluster);
  let assemblyFormat = "`<` $segments `,` $cluster `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Of each CTA; the device code checks that it is enough.
    int64_t getSharedBytes() const;
  }];
}

def Metadata_TreeRuns : Metadata_Place<"TreeRuns", "tree_runs"> {
  let summary = "a place: runs of a tree's keys, in shared memory";
  let description = [{
    `metadata.number_tree` keeps six numbers for each of `runs` runs.

    Constraints:
    - C1: runs is a positive multiple of 128.

    Example: `!metadata.tree_runs<3584>`.
  }];
  let parameters = (ins "int64_t":$runs);
  let assemblyFormat = "`<` $runs `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSharedBytes() const { return getRuns() * 6 * 4; }
  }];
}

def Metadata_CooperativeCtas : Metadata_Type<"CooperativeCtas", "cooperative_ctas"> {
  let summary = "CTAs of a launch that process one sequence together";
  let description = [{
    `metadata.cooperative_loop` passes it to its body.

    Example: `!metadata.cooperative_ctas`.
  }];
}

#endif // METADATA_TYPES
