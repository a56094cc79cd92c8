// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op of the dialect reads, writes and by which role it is run: its base class and its operands' types say so.
#ifndef TILE_INTERFACES
#define TILE_INTERFACES

include "attn/Dialect/Tile/IR/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TileOpInterface : OpInterface<"TileOpInterface"> {
  let cppNamespace = "::attn::tile";
  let description = [{
    The interface says what an op reads and writes, and which role of a CTA runs it. `tile-verify-async` rejects ops
    that do not implement it, of this dialect and of others with a `BehaviorTable`. `tile-assign-roles` gives an op to
    the roles that may run it, and the printer makes pointers `const` that no op writes.

    The definition of an op derives from one of these classes:

    | class | run by |
    |---|---|
    | `Tile_ScalarOp` | any role: results follow from operands (the op is `Pure`) |
    | `Tile_ControlOp` | any role: control flow, and places |
    | `Tile_ComputeOp` | consumers, the dQ MMA warpgroup, or all warps without roles: copies, products, and the like |
    | `Tile_ProducerOp` | the producer: what `tile-assign-roles` makes of copies |
    | `Tile_DqStoreOp` | the dQ store warps |

    Its operands are places, pointers or scalars. `In<...>`, `Out<...>` and `InOut<...>` around the type of an operand
    say that the op reads it, writes it, or both. Without them a pointer is read, and a place is read and
    written; operands of scalar and control ops count as not accessed.

    - An op whose result is a token reads and writes until the token is waited for.
    - An op without a token that writes a tile or row statistics in shared memory ends with a barrier of the CTA.
    - Rings, mailboxes, staging places and tables have barriers of their own.
    - Regions hold scalar ops, or are control flow.

    A dialect implements the interface for all its definitions by one table (`BehaviorTable`).

    `MemoryEffectOpInterface` is no substitute: its effects end with the op, and generic passes would erase or move ops,
    waits among others, by them.
  }];
  let methods = [InterfaceMethod<"The role, reads and writes of the op's definition.", "const ::attn::tile::Behavior &",
                                 "getBehavior">];
  let extraClassDeclaration = [{
    ::attn::tile::Role getRole() { return getBehavior().role; }
    /// The reads and writes of each place and pointer among its operands.
    ::llvm::SmallVector<::attn::tile::Access, 4> getAccesses();
    /// The token until whose wait the accesses go on; null if they end with the op.
    ::mlir::Value getTokenOfAccesses();
    /// Does the op write shared memory without a token? Then it ends with a barrier of the CTA.
    bool endsWithBarrier();
  }];
}

class Tile_Access<Constraint type, string does> : Arg<type> {
  string letter = does#!if(!or(!isa<Variadic>(type), !isa<Optional>(type)), "*", "");
}
class In<Constraint type> : Tile_Access<type, "r">;
class Out<Constraint type> : Tile_Access<type, "w">;
class InOut<Constraint type> : Tile_Access<type, "u">;

/// The letter of an argument, with a star if it is optional or variadic; no letter for an attribute.
class Tile_LetterOf<dag arguments, int i, string unsaid> {
  defvar said = !getdagarg<Tile_Access>(arguments, i);
  string letter = !cond(!initialized(said): said.letter,
                        !initialized(!getdagarg<AttrConstraint>(arguments, i)): "",
                        !initialized(!getdagarg<Variadic>(arguments, i)): unsaid#"*",
                        !initialized(!getdagarg<Optional>(arguments, i)): unsaid#"*",
                        true: unsaid);
}

/// `unsaid`: the letter of an operand without `In`, `Out` or `InOut`.
class Tile_OpOfRole<Dialect dialect, string mnemonic, string role, list<Trait> traits, string unsaid>
    : Op<dialect, mnemonic, traits> {
  string letters = !foldl("", !range(!size(arguments)), all, i, all#Tile_LetterOf<arguments, i, unsaid>.letter);
  code declarations = "";
  let extraClassDeclaration =
      "static constexpr ::attn::tile::Behavior behavior = {::attn::tile::Role::"#role#", \""#letters#"\"};"
      "\n"#declarations;
}

class Tile_ScalarOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Tile_Dialect, mnemonic, "any", !listconcat([Pure], traits), "-">;
class Tile_ControlOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Tile_Dialect, mnemonic, "any", traits, "-">;
class Tile_ProducerOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Tile_Dialect, mnemonic, "producer", traits, "?">;
class Tile_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Tile_Dialect, mnemonic, "compute", traits, "?">;
class Tile_DqStoreOp<string mnemonic, list<Trait> traits = []>
    : Tile_OpOfRole<Tile_Dialect, mnemonic, "dq_store", traits, "?">;

#endif // TILE_INTERFACES
