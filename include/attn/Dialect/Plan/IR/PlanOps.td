// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PLAN_OPS
#define PLAN_OPS

include "attn/Dialect/Plan/IR/PlanShardings.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;
class Plan_Step<string mnemonic, list<Trait> traits = []> : Plan_Op<mnemonic, [HasParent<"DefOp">]#traits>;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Plan_Kind : I32EnumAttr<"Kind", "what rows are of",
                            [I32EnumAttrCase<"q", 0>, I32EnumAttrCase<"kv", 1>, I32EnumAttrCase<"partial", 2>,
                             I32EnumAttrCase<"dq", 3>, I32EnumAttrCase<"dkv", 4>]> {
  let cppNamespace = "::attn::plan";
}

def Plan_Rows : TypeDef<Plan_Dialect, "Rows"> {
  let mnemonic = "rows";
  let summary = "rows that each rank has, of some tokens and heads";
  let description = [{
    Which tokens and heads follows from the op, the rank, and the lengths of a call. Kinds: `q` (in a backward pass with
    dO, LSE and delta), `kv` (K and V), `partial` (O and LSE over a part of the keys, float32), `dq`, and `dkv` (dK and
    dV), both float32.

    Example: `!plan.rows<kv>`.
  }];
  let parameters = (ins EnumParameter<Plan_Kind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def Plan_Arrival : TypeDef<Plan_Dialect, "Arrival"> {
  let mnemonic = "arrival";
  let summary = "rows that are on their way from another rank";
  let description = [{
    They cannot be read before a `plan.wait`.

    Example: `!plan.arrival<kv>`.
  }];
  let parameters = (ins EnumParameter<Plan_Kind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def Plan_AnyRows : Type<Plan_Rows.predicate, "rows of a plan">;
def Plan_AnyArrival : Type<Plan_Arrival.predicate, "rows on their way">;
class Plan_RowsOf<string kind>
    : Type<CPred<"::attn::plan::isRows($_self, ::attn::plan::Kind::"#kind#")">, "rows of "#kind,
           "::attn::plan::RowsType">,
      BuildableType<"::attn::plan::RowsType::get($_builder.getContext(), ::attn::plan::Kind::"#kind#")">;
def Plan_Q : Plan_RowsOf<"q">;
def Plan_Kv : Plan_RowsOf<"kv">;
def Plan_Partial : Plan_RowsOf<"partial">;
def Plan_Dq : Plan_RowsOf<"dq">;
def Plan_Dkv : Plan_RowsOf<"dkv">;

def Plan_ShardingAttr : Attr<CPred<"::llvm::isa<::attn::plan::ShardingInterface>($_self)">, "a sharding"> {
  let storageType = "::attn::plan::ShardingInterface";
  let returnType = "::attn::plan::ShardingInterface";
  let convertFromStorage = "$_self";
}

def Plan_Which
    : I32EnumAttr<"Which", "which rows an exchange moves",
                  [I32EnumAttrCase<"all", 0>, I32EnumAttrCase<"needed", 1>, I32EnumAttrCase<"all_if_needed", 2>]> {
  let cppNamespace = "::attn::plan";
  let genSpecializedAttr = 0;
}
def Plan_WhichAttr : EnumAttr<Plan_Dialect, Plan_Which, "which">;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

def Plan_DefOp : Plan_Op<"def", [Symbol, SingleBlock, NoTerminator, NoRegionArguments, IsolatedFromAbove,
                                 DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the steps of all ranks for a problem";
  let description = [{
    All ranks run the same steps on other rows. Rows are values: what a rank sends cannot change, and what it receives
    is read after a `plan.wait`. Memory is placed later.

    `sharding(q, kv)`: of queries, and of keys if theirs is another one. `backward`: the gradients of the problem.

    In a ring of three ranks, keys go from each rank to the next. A rank passes keys on only if a rank farther on sees
    some of them.

    ```mlir
    attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
    plan.def @ring of(@p) ranks(3) sharding(#plan.dual_chunk) {
      %q = plan.local : !plan.rows<q>
      %kv = plan.local : !plan.rows<kv>
      %t1 = plan.exchange %kv offset(1) rows all_if_needed : !plan.rows<kv>
      %o = plan.attend [%q], [%kv]
      %kv1 = plan.wait %t1 : !plan.arrival<kv>
      %t2 = plan.exchange %kv1 offset(1) rows all_if_needed : !plan.rows<kv>
      %o1 = plan.attend [%q], [%kv1] into [%o]
      %kv2 = plan.wait %t2 : !plan.arrival<kv>
      %o2 = plan.attend [%q], [%kv2] into [%o1]
      plan.store %o2 : !plan.rows<partial>
    }
    ```

    Constraints:
    - C1: there are 1 to 256 ranks.
    - C2: the last step is a `plan.store`, of `partial` rows, or with `backward` of `dq` and `dkv` rows.
    - C3: there is one `plan.wait` for what arrives, one use of a partial result and of dq, and a use of other rows.
    - C4: all steps are ops of this dialect, and `of` names an `attn.problem`.

    What depends on lengths is checked for the sequences of a call (`Tables::compute`): each head of each query attends
    to each key that it sees exactly once, each of these gradients comes home exactly once, sums have no other tokens
    than the keys they are of, and results have each of the rank's rows and heads once.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$of, I64Attr:$ranks, Plan_ShardingAttr:$sharding,
      OptionalAttr<Plan_ShardingAttr>:$kv_sharding, UnitAttr:$backward);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `of` `(` $of `)` `ranks` `(` $ranks `)` `sharding` `(` $sharding (`,` $kv_sharding^)? `)`
    (`backward` $backward^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ShardingInterface shardingOf(bool keys) {
      return keys && getKvSharding() ? *getKvSharding() : getSharding();
    }
  }];
}

def Plan_LocalOp : Plan_Step<"local"> {
  let summary = "this rank's own rows";
  let description = [{
    Those of its shard, padding included, with all heads.

    An example is that of `plan.def`.

    Constraints:
    - C1: the rows are of q or kv.
  }];
  let results = (outs Plan_AnyRows:$rows);
  let assemblyFormat = "attr-dict `:` type($rows)";
  let hasVerifier = 1;
}

def Plan_HeadsOp : Plan_Step<"heads", [AllTypesMatch<["rows", "part"]>]> {
  let summary = "the part of the heads that this rank computes";
  let description = [{
    Ranks are in groups of g neighbours (`within(g)`). Rank x of a group computes query heads
    [floor(x H / g), floor((x + 1) H / g)) of H for all rows of the group, which is the context parallelism of
    DeepSpeed-Ulysses. Of K and V it has the heads that these use: several ranks may have the same one, and some ranks
    may have none.

    In a group of two ranks, heads are exchanged for rows, and results back:

    ```mlir
    attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
    plan.def @heads of(@p) ranks(2) sharding(#plan.contiguous) {
      %q = plan.local : !plan.rows<q>
      %kv = plan.local : !plan.rows<kv>
      %tq = plan.exchange %q offset(1) within(2) heads : !plan.rows<q>
      %tkv = plan.exchange %kv offset(1) within(2) heads : !plan.rows<kv>
      %q0 = plan.heads %q within(2) : !plan.rows<q>
      %kv0 = plan.heads %kv within(2) : !plan.rows<kv>
      %q1 = plan.wait %tq : !plan.arrival<q>
      %kv1 = plan.wait %tkv : !plan.arrival<kv>
      %o0, %o1 = plan.attend [%q0, %q1], [%kv0, %kv1]
      %home = plan.exchange %o1 offset(-1) within(2) : !plan.rows<partial>
      %came = plan.wait %home : !plan.arrival<partial>
      %o = plan.join_heads like(%q) [%o0, %came] : !plan.rows<partial>
      plan.store %o : !plan.rows<partial>
    }
    ```

    Constraints:
    - C1: the rows are those of a `plan.local`.
    - C2: the number of ranks is a multiple of g.
  }];
  let arguments = (ins Plan_AnyRows:$rows, I64Attr:$within);
  let results = (outs Plan_AnyRows:$part);
  let assemblyFormat = "$rows `within` `(` $within `)` attr-dict `:` type($rows)";
  let hasVerifier = 1;
}

def Plan_ExchangeOp
    : Plan_Step<"exchange", [AttrSizedOperandSegments,
                             TypesMatchWith<"rows of the same kind arrive", "rows", "arrival",
                                            "ArrivalType::get($_ctxt, ::llvm::cast<RowsType>($_self).getKind())">]> {
  let summary = "sends rows to one rank and receives rows from another";
  let description = [{
    Each rank r of n sends to rank (r + offset) mod n, and receives what rank (r - offset) mod n sends. With
    `within(g)`, ranks are in groups of g neighbours, and the offset is within a group.

    `heads`: only the receiver's part of the heads, as `plan.heads` has them.

    `rows`:
    - `all` (if nothing is said);
    - `needed`: of keys that query rows see which attend to them after this exchange, on the receiver or on ranks that
      get them from it; without padding;
    - `all_if_needed`: all if some of them are needed, otherwise none.

    `if`: a rank sends if it sent rows in that exchange; `unless`: if it did not. In a ring, gradients go along with
    their keys, and home from the last rank that has them.

    Examples are those of `plan.def` and `plan.heads`.

    Constraints:
    - C1: n is a multiple of g.
    - C2: the offset is not 0, and between -n and n, or with `within(g)` between -g and g.
    - C3: rows of which only some are sent are of kv. `if` and `unless` go with dkv; they are what arrives in another
      `plan.exchange`, and there is one of them at most.
    - C4: `heads` goes with all rows of a `plan.local`.
  }];
  let arguments = (ins Plan_AnyRows:$rows, I64Attr:$offset, OptionalAttr<I64Attr>:$within, UnitAttr:$by_heads,
      DefaultValuedAttr<Plan_WhichAttr, "Which::all">:$which, Optional<Plan_AnyArrival>:$if_sent,
      Optional<Plan_AnyArrival>:$unless_sent);
  let results = (outs Plan_AnyArrival:$arrival);
  let assemblyFormat = [{
    $rows `offset` `(` $offset `)` (`within` `(` $within^ `)`)? (`heads` $by_heads^)? (`rows` `` $which^)?
    (`if` `(` $if_sent^ `:` type($if_sent) `)`)? (`unless` `(` $unless_sent^ `:` type($unless_sent) `)`)?
    attr-dict `:` type($rows)
  }];
  let hasVerifier = 1;
}

def Plan_WaitOp
    : Plan_Step<"wait", [TypesMatchWith<"what arrived is of this kind", "arrival", "rows",
                                        "RowsType::get($_ctxt, ::llvm::cast<ArrivalType>($_self).getKind())">]> {
  let summary = "waits for rows from another rank";
  let description = "An example is that of `plan.def`.";
  let arguments = (ins Plan_AnyArrival:$arrival);
  let results = (outs Plan_AnyRows:$rows);
  let assemblyFormat = "$arrival attr-dict `:` type($arrival)";
}

def Plan_AttendOp : Plan_Step<"attend", [AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "attention of query rows over some keys";
  let description = [{
    For each of the queries in the first list, O and LSE over all keys in the second; 0 and -inf for a row that sees
    none of them. `into`: and over those of a partial result, in float32, which is the same as attention over all of
    them.

    Examples are those of `plan.def` and `plan.heads`.

    Constraints:
    - C1: with `into` there are as many partial results as queries.
    - C2: there are queries, and keys.
  }];
  let arguments = (ins Variadic<Plan_Q>:$queries, Variadic<Plan_Kv>:$keys, Variadic<Plan_Partial>:$before);
  let results = (outs Variadic<Plan_Partial>:$partials);
  let assemblyFormat = "` ` `[` $queries `]` `,` `[` $keys `]` (`into` ` ` `[` $before^ `]`)? attr-dict";
  let hasVerifier = 1;
}

def Plan_GradsOp : Plan_Step<"grads", [AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "gradients of query rows and of some keys";
  let description = [{
    For each of the queries in the first list, dQ over all keys in the second; then for each of the keys, dK and dV over
    all query rows; 0 where no query sees a key. `into`: dQ is added to that of other keys.

    ```mlir
    attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
    plan.def @gather of(@p) ranks(2) sharding(#plan.dual_chunk) backward {
      %q = plan.local : !plan.rows<q>
      %kv = plan.local : !plan.rows<kv>
      %t = plan.exchange %kv offset(1) rows needed : !plan.rows<kv>
      %dq, %own = plan.grads [%q], [%kv]
      %kv1 = plan.wait %t : !plan.arrival<kv>
      %dq1, %others = plan.grads [%q], [%kv1] into [%dq]
      %home = plan.exchange %others offset(-1) : !plan.rows<dkv>
      %came = plan.wait %home : !plan.arrival<dkv>
      %dkv = plan.sum like(%kv) [%own, %came]
      plan.store %dq1, %dkv : !plan.rows<dq>, !plan.rows<dkv>
    }
    ```

    Constraints:
    - C1: with `into` there are as many dQ as queries.
    - C2: there are queries, and keys.
  }];
  let arguments = (ins Variadic<Plan_Q>:$queries, Variadic<Plan_Kv>:$keys, Variadic<Plan_Dq>:$before);
  let results = (outs Variadic<Plan_AnyRows>:$gradients);
  let assemblyFormat = "` ` `[` $queries `]` `,` `[` $keys `]` (`into` ` ` `[` $before^ `]`)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::ResultRange getDq() { return getGradients().take_front(getQueries().size()); }
    ::mlir::ResultRange getDkv() { return getGradients().drop_front(getQueries().size()); }
  }];
}

def Plan_JoinHeadsOp : Plan_Step<"join_heads"> {
  let summary = "results of parts of the heads, side by side";
  let description = [{
    The result has the rows and heads of the queries `like`. The parts have the same rows; each head is in one of them,
    and they have no others. Results that come from other ranks and that no later step adds to travel in the dtype of
    the problem.

    An example is that of `plan.heads`.

    Constraints:
    - C1: the parts are of one kind, partial or dq.
  }];
  let arguments = (ins Plan_Q:$like, Variadic<Plan_AnyRows>:$parts);
  let results = (outs Plan_AnyRows:$joined);
  let assemblyFormat = [{
    `like` `(` $like `)` ` ` `[` $parts `]` attr-dict `:` custom<CommonType>(type($parts), type($joined), ref($parts))
  }];
  let hasVerifier = 1;
}

def Plan_SumOp : Plan_Step<"sum"> {
  let summary = "sums gradients of keys, by token and head";
  let description = [{
    The result has the tokens and heads of the keys `like`. The parts, which have some of them, are added in float32 in
    the order of the list, and the sum is rounded once.

    An example is that of `plan.grads`.
  }];
  let arguments = (ins Plan_Kv:$like, Variadic<Plan_Dkv>:$parts);
  let results = (outs Plan_Dkv:$sum);
  let assemblyFormat = "`like` `(` $like `)` ` ` `[` $parts `]` attr-dict";
}

def Plan_StoreOp : Plan_Step<"store"> {
  let summary = "the results of a plan";
  let description = [{
    They are of the rank's own rows, with all heads. A sink joins here, once.

    An example is that of `plan.def`.
  }];
  let arguments = (ins Variadic<Plan_AnyRows>:$rows);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
}

#endif // PLAN_OPS
