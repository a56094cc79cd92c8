// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `tile.alloc` and the allocator of shared memory have to know of a type.
#ifndef TILE_PLACE_INTERFACE
#define TILE_PLACE_INTERFACE

include "mlir/IR/OpBase.td"

def PlaceTypeInterface : TypeInterface<"PlaceTypeInterface"> {
  let cppNamespace = "::attn::tile";
  let description = [{
    The type of a place: memory of a kernel that `tile.alloc` declares, in registers or in shared memory. Other dialects
    may have types of places too. An op that says nothing of a place among its operands reads and writes it
    (`TileOpInterface`).
  }];
  let methods = [InterfaceMethod<"Bytes in shared memory; by default 0, for places in registers.", "int64_t",
                                 "getSharedBytes", (ins), "", "return 0;">,
                 InterfaceMethod<"Its offset in shared memory is a multiple of these bytes; by default 16.", "int64_t",
                                 "getSharedAlignment", (ins), "", "return 16;">];
}

#endif // TILE_PLACE_INTERFACE
