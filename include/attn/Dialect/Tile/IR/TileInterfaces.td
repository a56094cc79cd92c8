// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op of the dialect does: each says it by its base class and by what stands around its operands.
#ifndef TILE_INTERFACES
#define TILE_INTERFACES

include "attn/Dialect/Tile/IR/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TileOpInterface : OpInterface<"TileOpInterface"> {
  let cppNamespace = "::attn::tile";
  let description = [{
    An op says what it reads and writes, and which role of a block runs it. `tile-verify-async` rejects a program with
    an op that does not say it, of this dialect or of another with a `BehaviorTable`. `tile-assign-roles` leaves an op
    to the roles that may run it, and the printer makes pointers `const` that no op writes to.

    The definition of an op derives from one of these classes:

    | class | run by |
    |---|---|
    | `Tile_ScalarOp` | any role: results follow from operands (the op is `Pure`) |
    | `Tile_ControlOp` | any role: control flow, and places |
    | `Tile_ComputeOp` | consumers, the dQ MMA warpgroup, or all warps without roles: copies, products, and the like |
    | `Tile_ProducerOp` | the producer: what `tile-assign-roles` makes of copies |
    | `Tile_DqStoreOp` | the adder |

    Its operands are places, pointers or scalars. `In<...>`, `Out<...>` and `InOut<...>` around the type of an operand
    say that the op reads it, writes it, or both. Without them a pointer is read, a place is read and written, and a
    scalar op touches nothing.

    - An op whose result is a token reads and writes until the token is waited for.
    - An op without a token that writes a tile or statistics in shared memory ends with a barrier of the block.
    - Rings, feeds, staging places and tables have barriers of their own.
    - Regions hold scalar ops, or are control flow.

    A dialect implements the interface for all its definitions by one table (`BehaviorTable`).

    `MemoryEffectOpInterface` would not do: its effects end with the op, and generic passes would erase or move ops by
    them, waits among others.
  }];
  let methods = [InterfaceMethod<"What its definition says.", "const ::attn::tile::Behavior &", "getBehavior">];
  let extraClassDeclaration = [{
    ::attn::tile::Role getRole() { return getBehavior().role; }
    /// What is done to each place and pointer among its operands.
    ::llvm::SmallVector<::attn::tile::Access, 4> getAccesses();
    /// What its accesses go on until; null of an op that is over when the next one begins.
    ::mlir::Value getTokenOfAccesses();
    /// Does it write shared memory, and no token says when that is over? Then it ends with a barrier of the block.
    bool endsWithBarrier();
  }];
}

class Tile_Access<Constraint type, string does> : Arg<type> {
  string letter = does#!if(!or(!isa<Variadic>(type), !isa<Optional>(type)), "*", "");
}
class In<Constraint type> : Tile_Access<type, "r">;
class Out<Constraint type> : Tile_Access<type, "w">;
class InOut<Constraint type> : Tile_Access<type, "u">;

/// The letter of an argument, with a star if it is any number of operands; none of an attribute.
class Tile_LetterOf<dag arguments, int i, string unsaid> {
  defvar said = !getdagarg<Tile_Access>(arguments, i);
  string letter = !cond(!initialized(said): said.letter,
                        !initialized(!getdagarg<AttrConstraint>(arguments, i)): "",
                        !initialized(!getdagarg<Variadic>(arguments, i)): unsaid#"*",
                        !initialized(!getdagarg<Optional>(arguments, i)): unsaid#"*",
                        true: unsaid);
}

/// `unsaid`: the letter of an operand of which nothing is said.
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
    : Tile_OpOfRole<Tile_Dialect, mnemonic, "adder", traits, "?">;

#endif // TILE_INTERFACES
