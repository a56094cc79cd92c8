// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Warm.h"
#include "attn/API/Jit.h"

using namespace attn;

rt::Result<std::vector<std::string>> attn::passesOf(llvm::StringRef text) {
  rt::Result<std::vector<std::string>> names = rt::Error{};
  withCompilation([&](Compilation &compilation) {
    auto module = compilation.parse(text, "problem");
    if (!module)
      return void(names = module.error());
    std::vector<std::string> found;
    for (mlir::Operation *pass : programsOf(**module))
      found.push_back(mlir::SymbolTable::getSymbolName(pass).str());
    names = found.empty()
                ? rt::Result<std::vector<std::string>>(rt::Error{"expected an `attn.problem` in the module, got: none"})
                : std::move(found);
  });
  return names;
}

rt::Status attn::warm(rt::Cache &cache, llvm::StringRef text, llvm::StringRef name, const Target &target,
                      llvm::function_ref<void(const rt::CompiledKernel &)> use) {
  std::vector<std::string> names = {name.str()};
  if (name.empty()) {
    rt::Result<std::vector<std::string>> all = passesOf(text);
    if (!all)
      return all.error();
    names = std::move(*all);
  }
  for (const std::string &pass : names) {
    rt::Result<CompiledProgram> compiled = compileThrough(cache, text, pass, target);
    if (!compiled)
      return compiled.error();
    for (const auto &kernel : compiled->kernels)
      use(*kernel);
  }
  return {};
}
