// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees of keys: numbers that tell descendants apart by two comparisons.
#ifndef METADATA_TREE_OPS
#define METADATA_TREE_OPS

include "attn/Dialect/Metadata/IR/MetadataTypes.td"
include "mlir/IR/OpAsmInterface.td"

def Metadata_CooperativeLoopOp
    : Metadata_ControlOp<
          "cooperative_loop", [SingleBlock, NoTerminator,
                               DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a loop over long sequences, in which all CTAs process one sequence together";
  let description = [{
    The body runs for each sequence of `batch` that is longer than `than`. All cooperative CTAs run it for the same
    sequence at the same time: those CTAs of the launch that have begun when the first of them begins to work. CTAs
    that begin later do nothing, so a launch may have more CTAs than run at the same time. `lengths` is the length of
    each sequence, or cu_seqlens. With a null `counter` a CTA works alone. The loop is the last op of a kernel, whose
    grid has at most 127 CTAs.

    Constraints:
    - C1: the body has two arguments, cooperative CTAs and an i32.

    ```mlir
    metadata.cooperative_loop %queue of %cu_seqlens_kv(%batch) longer(%than) : !tile.ptr<i32> {
    ^bb0(%ctas: !metadata.cooperative_ctas, %b: i32):
    }
    ```
  }];
  let arguments = (ins Tile_Queue:$counter, AnyTypeOf<[I32, Tile_IntPtr]>:$lengths, I32:$batch, I32:$than);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $counter `of` $lengths `(` $batch `)` `longer` `(` $than `)` `:` type($lengths) $body attr-dict
  }];
}

def Metadata_NumberTreeOp : Metadata_ComputeOp<"number_tree", [AttrSizedOperandSegments]> {
  let summary = "numbers the keys of a tree that is given by parents";
  let description = [{
    parents[keys + k] is the parent of key k of a sequence of `len_kv` keys; a key whose parent is not in [0, k) is a
    root. Key k and its descendants get the numbers from first[keys + k] up to end[keys + k], in preorder, and children
    of one key in the order of their positions. node[queries + q] is the number of the key at the position of row q of
    `len_q`, where the last row is at the last key; -1 if that position is before the first key.

    `work` has room for five numbers of each key, from work[5 * keys] on; numbers that fit are in `runs`. The CTA runs
    the op, or all CTAs `by` which it is run together. Equal parents give equal numbers.

    ```mlir
    metadata.number_tree %node, %first, %end, %work of %parents queries(%queries, %len_q) keys(%keys, %len_kv)
    metadata.number_tree %node, %first, %end, %work of %parents queries(%queries, %len_q) keys(%keys,
        %len_kv) in(%runs) by %ctas
      : !metadata.tree_runs<3584>
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$node, Out<Tile_IntPtr>:$first, Out<Tile_IntPtr>:$end, Out<Tile_IntPtr>:$work,
      Tile_IntPtr:$parents, I64:$queries, I32:$len_q, I64:$keys, I32:$len_kv, Optional<Metadata_TreeRuns>:$runs,
      Optional<Metadata_CooperativeCtas>:$ctas);
  let assemblyFormat = [{
    $node `,` $first `,` $end `,` $work `of` $parents `queries` `(` $queries `,` $len_q `)` `keys` `(` $keys `,` $len_kv
        `)` (`in` `(` $runs^ `)`)? (`by` $ctas^)?
    attr-dict (`:` qualified(type($runs))^)?
  }];
}

#endif // METADATA_TREE_OPS
