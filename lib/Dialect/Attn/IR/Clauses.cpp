// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Clauses.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

/// `mask(...) layout(...) ... [scale(...)]`
static std::string orderOf(ArrayRef<ClauseName> clauses) {
  auto text = [](const ClauseName &clause) {
    std::string own = clause.keyword.str() + (clause.kind == ClauseKind::Flag ? "" : "(...)");
    return clause.kind == ClauseKind::Required ? own : "[" + own + "]";
  };
  return llvm::join(llvm::map_range(clauses, text), " ");
}

StringRef attn::wordAt(SMLoc loc) {
  const char *begin = loc.getPointer(), *end = begin;
  while (llvm::isAlnum(*end) || *end == '_' || *end == '$' || *end == '.')
    ++end;
  return llvm::isDigit(*begin) ? StringRef() : StringRef(begin, end - begin);
}

/// Of what may stand behind an op, the words without a dot: a location, and the ops of MLIR's builtin dialect.
static bool isElsewhere(StringRef word) {
  return word.contains('.') || word == "loc" || word == "module" || word == "unrealized_conversion_cast";
}

std::optional<StringRef> attn::findNear(StringRef word, ArrayRef<StringRef> names) {
  if (word.size() > 64)
    return std::nullopt;
  StringRef near = *llvm::min_element(
      names, [&](StringRef a, StringRef b) { return word.edit_distance(a) < word.edit_distance(b); });
  return 3 * word.edit_distance(near) <= std::max<size_t>(3, word.size()) ? std::optional(near) : std::nullopt;
}

ParseResult attn::parseClauses(OpAsmParser &parser, ArrayRef<ClauseName> clauses,
                               llvm::function_ref<ParseResult(size_t)> parse) {
  SmallVector<StringRef, 24> keywords, accepted;
  for (const ClauseName &clause : clauses)
    keywords.push_back(clause.keyword);
  accepted = keywords;
  for (const ClauseName &clause : clauses)
    if (!clause.formerly.empty())
      accepted.push_back(clause.formerly);
  SmallVector<StringRef, 24> seen(clauses.size()); // as which keyword
  SMLoc loc = parser.getCurrentLocation();
  for (StringRef keyword; succeeded(parser.parseOptionalKeyword(&keyword, accepted));
       loc = parser.getCurrentLocation()) {
    auto named = [&](const ClauseName &clause) { return keyword == clause.keyword || keyword == clause.formerly; };
    size_t i = llvm::find_if(clauses, named) - clauses.begin();
    if (!seen[i].empty()) {
      InFlightDiagnostic error = parser.emitError(loc, "expected each clause once, got: `") << keyword << "` again";
      return seen[i] == keyword ? error : error << ", before as `" << seen[i] << "`";
    }
    if (keyword != clauses[i].keyword)
      emitWarning(parser.getEncodedSourceLoc(loc))
          << "`" << keyword << "` is now `" << clauses[i].keyword << "`; the old name is accepted until version 0.2";
    seen[i] = keyword;
    if (parse(i))
      return failure();
  }
  if (StringRef word = wordAt(loc); !word.empty() && !isElsewhere(word)) {
    InFlightDiagnostic error = parser.emitError(loc, "expected a clause, got: `") << word << "`";
    if (std::optional<StringRef> near = findNear(word, keywords))
      error << ", which is near `" << *near << "`";
    return error << "; clauses are " << orderOf(clauses);
  }
  for (auto [clause, keyword] : llvm::zip_equal(clauses, seen))
    if (clause.kind == ClauseKind::Required && keyword.empty())
      return parser.emitError(parser.getNameLoc(), "expected a clause `")
             << clause.keyword << "(...)`, got: none; clauses are " << orderOf(clauses);
  return success();
}

ParseResult attn::parseOtherAttributes(OpAsmParser &parser, OperationState &result, ArrayRef<StringRef> own) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  for (NamedAttribute attribute : result.attributes)
    if (llvm::is_contained(own, attribute.getName()))
      return parser.emitError(loc, "expected a clause in place of an attribute in braces, got: `")
             << attribute.getName().getValue() << "`";
  for (NamedAttribute attribute : result.attributes) // what is misspelled, or no clause's name, must not go unheard
    if (attribute.getName() != SymbolTable::getVisibilityAttrName() && !attribute.getNameDialect())
      return parser.emitError(loc, "expected sym_visibility, or names with a dialect's prefix, in braces, got: `")
             << attribute.getName().getValue() << "`";
  return success();
}
