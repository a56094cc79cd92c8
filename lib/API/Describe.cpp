// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Describe.h"
#include "attn/API/Compile.h"
#include "attn/Conversion/Describe.h"
#include <mutex>
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

rt::Result<std::string> attn::describe(llvm::StringRef text, llvm::StringRef name) {
  static std::mutex mutex;
  static Compilation *compilation = new Compilation; // lives as long as the process
  std::lock_guard<std::mutex> lock(mutex);
  auto module = compilation->parse(text, "problem");
  if (!module)
    return module.error();
  rt::Result<mlir::Operation *> found = findProgram(**module, name);
  if (!found)
    return found.error();
  Json json = {{"version", rt::Program::kVersion}, {"name", mlir::SymbolTable::getSymbolName(*found).str()}};
  rt::Program program; // whose tensors have a text
  if (auto segments = llvm::dyn_cast<SegmentsOp>(*found)) {
    json["pass"] = "segments";
    program.tensors = describeTensors(segments);
    program.sizes = describeSizes(int64_t(segments.getSegments()));
  } else {
    auto backward = llvm::dyn_cast<BackwardOp>(*found);
    Computation computation = backward ? Computation(backward) : Computation(llvm::cast<ProblemOp>(*found));
    json["pass"] = backward ? "backward" : "forward";
    json["forward"] = computation.problem.getSymName().str();
    json["backward"] = backwardPassesOf(**module, computation.problem);
    json["dtype"] = computation.problem.getDtype().isBF16() ? "bf16" : "f16";
    program.tensors = describeTensors(computation);
    program.sizes = describeSizes(computation.problem.getSegments().value_or(0));
  }
  Json plain = Json::parse(program.toJson());
  for (const char *field : {"sizes", "tensors"})
    json[field] = plain[field];
  return json.dump(2) + "\n";
}
