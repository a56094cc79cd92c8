// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PLAN_SHARDINGS
#define PLAN_SHARDINGS

include "attn/Dialect/Plan/IR/PlanDialect.td"
include "attn/Dialect/Plan/IR/PlanInterfaces.td"
include "mlir/IR/AttrTypeBase.td"

class Plan_Sharding<string name, string keyword>
    : AttrDef<Plan_Dialect, name, [DeclareAttrInterfaceMethods<Plan_ShardingInterface>]> {
  let mnemonic = keyword;
}

def Plan_Contiguous : Plan_Sharding<"Contiguous", "contiguous"> {
  let summary = "the rows of the whole buffer in equal parts";
  let description = [{
    Rank r of n has rows [floor(r T / n), floor((r + 1) T / n)) of the T rows, padding included. Neighbours in a
    sequence are on one rank or on adjacent ones, which suits windows. Under a causal mask the last rank has the most
    work.

    ```mlir
    #plan.contiguous
    ```
  }];
}

def Plan_DualChunk : Plan_Sharding<"DualChunk", "dual_chunk"> {
  let summary = "two chunks of each sequence, one from its first half and one from its second";
  let description = [{
    Each sequence is cut into 2 n chunks, of which rank r has chunks r and 2 n - 1 - r. All ranks have the same work
    under a causal mask. (Also called zigzag.) Chunk c of L tokens is [floor(c L / 2n), floor((c + 1) L / 2n)), so L may
    be any number, and a rank's rows have no padding.

    `padded`: the slots are cut, not the sequences, as TransformerEngine does. Padding stays behind the tokens of a
    chunk.

    Constraints, which are checked for the sequences of a call:
    - `padded`: the rows of a slot are a multiple of 2 n.

    ```mlir
    #plan.dual_chunk
    #plan.dual_chunk<padded>
    ```
  }];
  let parameters = (ins "bool":$padded);
  let hasCustomAssemblyFormat = 1;
}

def Plan_Striped : Plan_Sharding<"Striped", "striped"> {
  let summary = "stripes of the whole buffer's rows, dealt out in turn";
  let description = [{
    Rank r of n has row i of the whole buffer, padding included, iff floor(i / rows) mod n == r.

    Constraints:
    - C1: a stripe has 1 to 2^20 rows; 1 if it is not given.

    ```mlir
    #plan.striped
    #plan.striped<128>
    ```
  }];
  let parameters = (ins "int64_t":$rows);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Plan_Documents : Plan_Sharding<"Documents", "documents"> {
  let summary = "whole sequences where work stays balanced, else two chunks on as few ranks as possible";
  let description = [{
    For packed sequences. The longest sequence comes first. A sequence goes to the k ranks with the least work, in 2 k
    chunks as `#plan.dual_chunk` has them. k is the least for which none of these ranks has more than 1.05 times the
    mean work; if there is none, k grows as long as that lowers the largest work of these ranks by 1 % of the mean or
    more. A rank has at most 1 + `slack` times the mean number of tokens, and two more. A sequence that fits nowhere is
    cut into contiguous parts that do.

    Constraints:
    - C1: the slack is from 0 to 100; 0.1 if it is not given.

    ```mlir
    #plan.documents
    #plan.documents<0.25>
    ```
  }];
  let parameters = (ins APFloatParameter<"how many more tokens than the mean, in multiples of the mean">:$slack);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Plan_Runs : Plan_Sharding<"Runs", "runs"> {
  let summary = "shards that the caller gives";
  let description = [{
    The shards of a call that have this name. They are checked as all shards are.

    ```mlir
    #plan.runs<"mine">
    ```
  }];
  let parameters = (ins StringRefParameter<"the name of the caller's shards">:$name);
  let assemblyFormat = "`<` $name `>`";
}

#endif // PLAN_SHARDINGS
