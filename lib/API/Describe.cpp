// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Describe.h"
#include "attn/API/Compile.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include <nlohmann/json.hpp>

using namespace attn;
using Json = nlohmann::ordered_json;

/// The backward passes of a problem.
static Json backwardPassesOf(mlir::ModuleOp module, ProblemOp problem) {
  Json names = Json::array();
  for (auto backward : module.getOps<BackwardOp>())
    if (backward.getProblemOp() == problem)
      names.push_back(backward.getSymName().str());
  return names;
}

static rt::Result<std::string> describeIn(Compilation &compilation, llvm::StringRef text, llvm::StringRef name) {
  auto module = compilation.parse(text, "problem");
  if (!module)
    return module.error();
  rt::Result<mlir::Operation *> found = findProgram(**module, name);
  if (!found)
    return found.error();
  Json json = {{"version", 2}, {"name", mlir::SymbolTable::getSymbolName(*found).str()}};
  if (llvm::isa<SegmentsOp>(*found)) {
    json["pass"] = "segments";
  } else if (llvm::isa<GatherRowsOp, ComputationInterface, attn::ProgramOp>(*found)) {
    json["pass"] = (*found)->getName().stripDialect().str();
  } else {
    Computation computation = *findComputation(**module, name);
    json["pass"] = computation.backward ? "backward" : "forward";
    json["forward"] = computation.problem.getSymName().str();
    json["backward"] = backwardPassesOf(**module, computation.problem);
    json["dtype"] = rt::toString(dtypeOf(computation.problem.getDtype()));
  }
  rt::Result<rt::Program> made = signatureOf(*found);
  if (!made)
    return made.error();
  Json signature = Json::parse(made->toJson());
  for (const char *field : {"sizes", "tensors"})
    json[field] = signature[field];
  return json.dump(2) + "\n";
}

rt::Result<std::string> attn::describe(llvm::StringRef text, llvm::StringRef name) {
  rt::Result<std::string> description = rt::Error{};
  withCompilation([&](Compilation &compilation) { description = describeIn(compilation, text, name); });
  return description;
}
