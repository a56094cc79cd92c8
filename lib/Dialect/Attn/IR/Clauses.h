// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops whose text is clauses, `keyword(...)` or a bare `keyword`: read in any order, each at most once, and printed in
// the order of their table. What is no clause is refused by name: to MLIR's own parser it is the next op.
//
#ifndef ATTN_LIB_DIALECT_ATTN_IR_CLAUSES_H
#define ATTN_LIB_DIALECT_ATTN_IR_CLAUSES_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

enum class ClauseKind { Required, Optional, Flag };

/// What a reader sees of a clause.
struct ClauseName {
  llvm::StringRef keyword;
  ClauseKind kind;
  llvm::StringRef formerly = {}; ///< its keyword until 0.1, which is accepted with a warning until 0.2
};

/// A clause of an op with these properties: whether they have it, and what stands between its parentheses.
template <typename Properties> struct Clause : ClauseName {
  bool (*given)(const Properties &);
  mlir::ParseResult (*parse)(mlir::OpAsmParser &, Properties &);
  void (*print)(mlir::OpAsmPrinter &, const Properties &);
};

/// The word at a place of the text, empty if none begins there. A parser of an op cannot look at a word without taking
/// it, and those of other ops are not for it.
llvm::StringRef wordAt(llvm::SMLoc loc);

/// The name that a misspelled word is near to, if there is one.
std::optional<llvm::StringRef> findNear(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> names);

/// Reads clauses until there are none left, each by `parse`, which is told its number.
mlir::ParseResult parseClauses(mlir::OpAsmParser &parser, llvm::ArrayRef<ClauseName> clauses,
                               llvm::function_ref<mlir::ParseResult(size_t)> parse);

/// A dictionary of attributes that are not the op's own. Those are said by clauses, and once.
mlir::ParseResult parseOtherAttributes(mlir::OpAsmParser &parser, mlir::OperationState &result,
                                       llvm::ArrayRef<llvm::StringRef> own);

/// `@name`, clauses, and a dictionary of other attributes.
template <typename Op>
mlir::ParseResult parseOpOf(llvm::ArrayRef<Clause<typename Op::Properties>> clauses, mlir::OpAsmParser &parser,
                            mlir::OperationState &result) {
  auto &properties = result.getOrAddProperties<typename Op::Properties>();
  if (parser.parseSymbolName(properties.sym_name))
    return mlir::failure();
  auto parseOne = [&](size_t i) -> mlir::ParseResult {
    if (clauses[i].kind == ClauseKind::Flag)
      return clauses[i].parse(parser, properties);
    return mlir::failure(parser.parseLParen() || clauses[i].parse(parser, properties) || parser.parseRParen());
  };
  llvm::SmallVector<ClauseName, 24> names(clauses.begin(), clauses.end());
  if (parseClauses(parser, names, parseOne))
    return mlir::failure();
  return parseOtherAttributes(parser, result, Op::getAttributeNames());
}

template <typename Op>
void printOpOf(llvm::ArrayRef<Clause<typename Op::Properties>> clauses, mlir::OpAsmPrinter &printer, Op op) {
  const auto &properties = op.getProperties();
  printer << ' ';
  printer.printSymbolName(op.getSymName());
  for (const auto &clause : clauses) {
    if (!clause.given(properties))
      continue;
    printer << ' ' << clause.keyword;
    if (clause.kind == ClauseKind::Flag)
      continue;
    printer << '(';
    clause.print(printer, properties);
    printer << ')';
  }
  printer.printOptionalAttrDict(op->getAttrs(), Op::getAttributeNames());
}

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_CLAUSES_H
