// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/MakePack.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <set>

using namespace attn;

rt::Result<PackSizes> PackSizes::parse(llvm::StringRef text) {
  PackSizes shape;
  shape.text = text.str();
  for (llvm::StringRef part : llvm::split(text, ',')) {
    auto [name, number] = part.split('=');
    int64_t value = 0;
    if (name.empty() || number.getAsInteger(10, value) || value < 0)
      return rt::Error{fmt::format("expected sizes such as batch=4000,total_q=16000, got: `{}`", part.str())};
    shape.sizes.emplace_back(name.str(), value);
  }
  return shape;
}

/// Whether the program has sizes of these names.
static bool hasSizes(const rt::ProgramCode &code, const NamedSizes &sizes) {
  auto given = llvm::ArrayRef(code.sizes()).take_front(code.given());
  return llvm::all_of(sizes, [&](auto &size) { return llvm::is_contained(given, size.first); });
}

/// The lengths that calls of such sizes have a program for; nothing: they have the general one.
static rt::Result<std::optional<rt::ExpectedLengths>> lengthsOf(const rt::ProgramCode &code, const NamedSizes &sizes) {
  std::vector<int64_t> values(code.sizes().size(), -1);
  for (auto &[name, value] : sizes)
    values[llvm::find(code.sizes(), name) - code.sizes().begin()] = value;
  const rt::SpecializationRule &rule = code.program().specialization;
  for (const char *name : {"batch", rule.packedQ ? "total_q" : "seqlen_q", rule.packedKv ? "total_kv" : "seqlen_kv"})
    if (code.valueOf(name, values.data()) < 0 && rule.source != rt::SpecializationRule::Source::Nothing)
      return rt::Error{fmt::format("expected `{}` among the sizes for @{}, got: none", name, code.program().name)};
  return code.expectedLengths(values.data());
}

static rt::PackedProgram packedOf(llvm::StringRef name, const Target &target, CompiledProgram compiled,
                                  std::optional<rt::ExpectedLengths> expected) {
  rt::PackedProgram packed;
  packed.name = name.str(), packed.target = target.str(), packed.schedule = compiled.program.schedule;
  packed.expected = expected;
  packed.program = std::move(compiled.program.plan);
  packed.kernels = std::move(compiled.kernels);
  return packed;
}

rt::Status attn::addToPack(rt::Pack &pack, rt::Cache &cache, llvm::StringRef text, llvm::StringRef name,
                           const Target &target, llvm::MutableArrayRef<PackSizes> shapes) {
  for (const rt::PackedProgram &other : pack.programs)
    if (other.name == name && other.target == target.str())
      return rt::Error{
          fmt::format("expected each pass once for a target, got: @{} for {} again", other.name, other.target)};
  rt::Result<CompiledProgram> plain = compileThrough(cache, text, name, target);
  if (!plain)
    return plain.error();
  rt::Result<rt::ProgramCode> code = rt::ProgramCode::compile(plain->program.plan);
  if (!code)
    return code.error();
  std::set<rt::ExpectedLengths> expected;
  for (PackSizes &shape : shapes) {
    if (!hasSizes(*code, shape.sizes))
      continue;
    auto lengths = lengthsOf(*code, shape.sizes);
    if (!lengths)
      return lengths.error();
    shape.isUsed = true;
    if (*lengths)
      expected.insert(**lengths);
  }
  std::vector<rt::PackedProgram> special;
  for (const rt::ExpectedLengths &lengths : expected) {
    auto compiled = compileSpecialized(cache, text, name, target, lengths, plain->program);
    if (!compiled)
      return compiled.error();
    if (*compiled)
      special.push_back(packedOf(name, target, std::move(**compiled), lengths));
  }
  rt::Result<std::vector<std::string>> features =
      rt::createCompiler(plain->kernels.front()->artifact.target)->features();
  if (!features)
    return features.error();
  special.insert(special.begin(), packedOf(name, target, std::move(*plain), std::nullopt));
  for (rt::PackedProgram &program : special) {
    program.features = *features;
    pack.programs.push_back(std::move(program));
  }
  return {};
}

rt::Status attn::writePack(const rt::Pack &pack, llvm::ArrayRef<PackSizes> shapes, const std::string &path) {
  if (pack.programs.empty())
    return rt::Error{"expected passes in the files, got: none"};
  for (const PackSizes &shape : shapes)
    if (!shape.isUsed)
      return rt::Error{fmt::format("expected sizes that a pass has (attnDescribe), got: {}", shape.text)};
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << pack.toBytes();
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return rt::Error{fmt::format("cannot write `{}`: {}", path, error.message())};
  return {};
}
