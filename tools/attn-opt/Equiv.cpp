// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Questions.h"
#include "attn/API/Compile.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/CommandLine.h"

using namespace attn;
namespace cl = llvm::cl;

static MaskInterface readMask(mlir::MLIRContext &context, const std::string &text) {
  // The whole text would be the name of its place.
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    auto place = mlir::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation());
    llvm::errs() << "error: " << diagnostic.str();
    if (place)
      llvm::errs() << ", at character " << place.getColumn();
    llvm::errs() << "\n";
  });
  if (llvm::StringRef(text).trim().empty()) {
    llvm::errs() << "error: expected a mask, got: nothing\n";
    return {};
  }
  mlir::Attribute parsed = mlir::parseAttribute(text, &context);
  auto mask = mlir::dyn_cast_or_null<MaskInterface>(parsed);
  if (parsed && !mask)
    llvm::errs() << "error: expected a mask, got: " << parsed << "\n";
  return mask;
}

int attn::equiv(int argc, char **argv) {
  cl::opt<std::string> first(cl::Positional, cl::desc("<mask>"), cl::Required);
  cl::opt<std::string> second(cl::Positional, cl::desc("<mask>"), cl::Required);
  cl::ParseCommandLineOptions(argc, argv, "whether two masks are the same set, for all lengths\n");
  mlir::DialectRegistry registry;
  registry.insert<AttnDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  MaskInterface masks[] = {readMask(context, first), readMask(context, second)};
  if (!masks[0] || !masks[1])
    return 3;
  llvm::raw_ostream &os = llvm::outs();
  MaskInterface forms[] = {canonicalMask(masks[0]), canonicalMask(masks[1])};
  if (forms[0] == forms[1]) {
    os << "equal: both are " << forms[0] << "\n";
    return 0;
  }
  MaskComparison said = compareMasks(forms[0], forms[1]);
  switch (said.verdict) {
  case MaskComparison::Equal:
    os << "equal: for all lengths, though their forms are " << forms[0] << " and " << forms[1] << "\n";
    return 0;
  case MaskComparison::Unknown: {
    AffineTerms terms;
    bool affine = forms[0].affine(terms) && forms[1].affine(terms);
    os << "not decided: no pair was found that tells them apart, but "
       << (affine ? "there are too many to look at" : "they depend on more than compares and remainders of positions")
       << "\n";
    return 2;
  }
  case MaskComparison::Different:
    break;
  }
  const MaskPoint &p = said.where;
  os << "different: of " << p.lenQ << " queries and " << p.lenK << " keys, row " << p.q << " sees key " << p.k
     << " under the " << (said.shownByFirst ? "first" : "second") << " mask only";
  if (p.heads > 1)
    os << ", as head " << p.head << " of " << p.heads;
  for (auto [i, entry] : llvm::enumerate(said.entries))
    os << (i ? ", " : ", where ") << std::get<0>(entry) << "[" << std::get<1>(entry) << "] = " << std::get<2>(entry);
  os << "\n";
  return 1;
}
