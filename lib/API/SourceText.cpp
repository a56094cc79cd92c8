// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/SourceText.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

constexpr size_t deepest = 256;     // levels of brackets
constexpr size_t longest = 1000;    // characters of a line that is shown as it is
constexpr size_t shownBeside = 100; // characters of a longer one on each side of the column

/// The position of the first bracket that is too deep, or nothing. Strings and comments do not count, nor does `->`.
static std::optional<size_t> findDeepBracket(StringRef text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
    else if (c == '/' && text.substr(i).starts_with("//"))
      i = std::min(text.find('\n', i), text.size());
    else if (c == '-' && text.substr(i).starts_with("->"))
      ++i;
    else if (StringRef("([{<").contains(c) && ++depth > deepest)
      return i;
    else if (StringRef(")]}>").contains(c) && depth)
      --depth;
  }
  return std::nullopt;
}

LogicalResult attn::checkNesting(MLIRContext &context, llvm::MemoryBufferRef source) {
  if (isBytecode(source))
    return success();
  StringRef text = source.getBuffer();
  std::optional<size_t> deep = findDeepBracket(text);
  if (!deep)
    return success();
  StringRef before = text.take_front(*deep);
  size_t column = before.size() - (before.rfind('\n') + 1) + 1; // npos + 1 is 0
  auto loc = FileLineColLoc::get(&context, source.getBufferIdentifier(), before.count('\n') + 1, column);
  return emitError(loc) << "expected brackets nested at most " << deepest << " deep, got: more";
}

std::string attn::cutLongLines(StringRef text) {
  auto cut = [](StringRef line) {
    return line.size() > longest ? line.take_front(2 * shownBeside).str() + " ..." : line.str();
  };
  return llvm::join(llvm::map_range(llvm::split(text, '\n'), cut), "\n");
}

namespace {
struct Place {
  FileLineColLoc loc;
  StringRef line;
};
} // namespace

/// Where a diagnostic is in the text, and the line there.
static std::optional<Place> placeOf(Diagnostic &diagnostic, llvm::MemoryBufferRef source) {
  auto loc = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
  if (!loc || loc.getFilename() != source.getBufferIdentifier() || loc.getLine() == 0)
    return std::nullopt;
  StringRef rest = source.getBuffer();
  for (unsigned line = 1; line < loc.getLine() && !rest.empty(); ++line)
    rest = rest.split('\n').second;
  return Place{loc, rest.split('\n').first};
}

static void print(llvm::raw_ostream &os, Diagnostic &diagnostic, StringRef kind, llvm::MemoryBufferRef source) {
  std::optional<Place> place = placeOf(diagnostic, source);
  if (place)
    os << place->loc.getFilename().getValue() << ":" << place->loc.getLine() << ":" << place->loc.getColumn() << ": ";
  os << kind << ": " << cutLongLines(diagnostic.str()) << "\n";
  if (!place || place->loc.getColumn() == 0)
    return;
  size_t column = place->loc.getColumn() - 1, begin = column > shownBeside ? column - shownBeside : 0;
  StringRef shown = place->line.substr(begin, 2 * shownBeside), left = begin ? "... " : "";
  std::string plain = shown.str();
  llvm::replace(plain, '\t', ' ');
  os << left << plain << (begin + shown.size() < place->line.size() ? " ..." : "") << "\n";
  os.indent(left.size() + column - begin) << "^\n";
}

void attn::printDiagnostic(Diagnostic &diagnostic, llvm::MemoryBufferRef source) {
  static const char *const kinds[] = {"note", "warning", "error", "remark"};
  print(llvm::errs(), diagnostic, kinds[int(diagnostic.getSeverity())], source);
  for (Diagnostic &note : diagnostic.getNotes())
    print(llvm::errs(), note, "note", source);
}

LogicalResult attn::printCut(Diagnostic &diagnostic, llvm::MemoryBufferRef source) {
  std::optional<Place> place = placeOf(diagnostic, source);
  if (!place || place->line.size() <= longest)
    return failure();
  printDiagnostic(diagnostic, source);
  return success();
}
