// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef METADATA_DIALECT
#define METADATA_DIALECT

include "attn/Dialect/Tile/IR/TileInterfaces.td"

def Metadata_Dialect : Dialect {
  let name = "metadata";
  let cppNamespace = "::attn::metadata";
  let summary = "how kernels build what attention kernels read: sequences, tile lists, block bits, trees";
  let description = [{
    Run-time arrays may decide which sequences a batch has and which pairs are visible. Preceding kernels turn these
    arrays into metadata, and attention kernels read the metadata. The ops of this dialect are the steps of the
    preceding kernels:

    - **Segments.** Lengths and offsets of sequences follow from the ids and positions of tokens. A cluster of CTAs
      has one row of the batch, and counts the row's segments in a table (`!metadata.segment_table`).
    - **Lists.** A tile of one side gets the list of the tiles of the other side that it has to visit
      (`metadata.select_tiles`). A tile scheduler gets the list of its work tiles.
    - **Block maps.** Lists of blocks become bits (`metadata.fill_block_bits`). Tiles and elements are tested against
      lists or bits (`metadata.gather_tiles`, `metadata.is_listed`), elements by attention kernels themselves.
    - **Trees.** Parents of keys become intervals of numbers (`metadata.number_tree`).

    The kernels are `tile.kernel` ops with pointers, places and control flow of the `tile` dialect. Ops of this dialect
    state their effects as ops of the `tile` dialect do (`TileOpInterface`), and are printed likewise: each op is one
    call of a device function.
  }];
  let dependentDialects = ["::attn::tile::TileDialect"];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// `TileOpInterface`, of all ops in the dialect's definitions.
    void *getRegisteredInterfaceForOp(::mlir::TypeID interface, ::mlir::OperationName op) override;
  }];
}

class Metadata_ScalarOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Metadata_Dialect, mnemonic, "any", !listconcat([Pure], traits), "-">;
class Metadata_ControlOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Metadata_Dialect, mnemonic, "any", traits, "-">;
class Metadata_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Metadata_Dialect, mnemonic, "compute", traits, "?">;

#endif // METADATA_DIALECT
