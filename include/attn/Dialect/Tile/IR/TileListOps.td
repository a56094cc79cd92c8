// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels that build metadata have of this dialect alone.
#ifndef TILE_LIST_OPS
#define TILE_LIST_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"

def Tile_StoreEntryOp : Tile_ComputeOp<"store_entry"> {
  let summary = "writes one element of an array in global memory";
  let description = [{
    By one thread of the warp, or by one of each; what the kernel reads of it, it reads behind a barrier.

    ```mlir
    tile.store_entry %counts[%at], %full
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$array, I64:$index, I32:$value);
  let assemblyFormat = "$array `[` $index `]` `,` $value attr-dict";
}

def Tile_WarpIndexOp : Tile_ScalarOp<"warp_index"> {
  let summary = "the number of this warp in its block";
  let description = [{
    For loops that warps share: what each does is a warp's.

    ```mlir
    %warp = tile.warp_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

#endif // TILE_LIST_OPS
