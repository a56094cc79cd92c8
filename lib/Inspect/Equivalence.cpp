// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/Equivalence.h"
#include "attn/API/Compile.h"
#include "attn/API/SourceText.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include <array>

using namespace attn;

static rt::Result<MaskInterface> readMask(mlir::MLIRContext &context, llvm::StringRef text) {
  if (text.trim().empty())
    return rt::Error{"expected a mask, got: nothing"};
  // The whole text would be the name of its place.
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(said);
    os << (said.empty() ? "" : "\n") << cutLongLines(diagnostic.str());
    if (auto place = mlir::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation()))
      os << ", at character " << place.getColumn();
  });
  mlir::Attribute parsed;
  if (succeeded(checkNesting(context, {text, "mask"})))
    parsed = mlir::parseAttribute(text, &context);
  if (!parsed)
    return rt::Error{said};
  auto mask = mlir::dyn_cast<MaskInterface>(parsed);
  if (!mask) {
    llvm::raw_string_ostream(said) << "expected a mask, got: " << parsed;
    return rt::Error{said};
  }
  return mask;
}

static void compareForms(MaskInterface first, MaskInterface second, MaskEquivalence &result) {
  AffineTerms terms;
  result.areAffine = first.affine(terms) && second.affine(terms);
  if (first == second) {
    result.verdict = MaskEquivalence::Equal;
    return;
  }
  MaskComparison compared = compareMasks(first, second);
  result.verdict = MaskEquivalence::Verdict(compared.verdict);
  const MaskPoint &where = compared.where;
  result.seqlenQ = where.lenQ, result.seqlenKv = where.lenK, result.row = where.q, result.key = where.k;
  result.head = where.head, result.heads = where.heads, result.seenByFirst = compared.shownByFirst;
  for (const auto &[array, position, value] : compared.entries)
    result.entries.push_back({array, position, value});
}

rt::Result<MaskEquivalence> attn::compareMaskTexts(llvm::StringRef first, llvm::StringRef second) {
  rt::Result<MaskEquivalence> result = rt::Error{};
  withCompilation([&](Compilation &compilation) {
    MaskInterface forms[2];
    MaskEquivalence made;
    for (auto [i, text] : llvm::enumerate(std::array{first, second})) {
      rt::Result<MaskInterface> mask = readMask(compilation.getContext(), text);
      if (!mask)
        return void(result = mask.error());
      forms[i] = canonicalMask(*mask);
      llvm::raw_string_ostream(made.forms[i]) << forms[i];
    }
    compareForms(forms[0], forms[1], made);
    result = std::move(made);
  });
  return result;
}

std::string MaskEquivalence::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  switch (verdict) {
  case Equal:
    os << "equal: ";
    if (forms[0] == forms[1])
      os << "both are " << forms[0];
    else
      os << "for all lengths, though their forms are " << forms[0] << " and " << forms[1];
    break;
  case Unknown:
    os << "not decided: no pair was found that tells them apart, but "
       << (areAffine ? "there are too many to look at"
                     : "one of them is more than compares and remainders, or a predicate without another form");
    break;
  case Different:
    os << "different: of " << seqlenQ << " queries and " << seqlenKv << " keys, row " << row << " sees key " << key
       << " under the " << (seenByFirst ? "first" : "second") << " mask only";
    if (heads > 1)
      os << ", as head " << head << " of " << heads;
    for (auto [i, entry] : llvm::enumerate(entries))
      os << (i ? ", " : ", where ") << entry.array << "[" << entry.position << "] = " << entry.value;
    break;
  }
  os << "\n";
  return text;
}
