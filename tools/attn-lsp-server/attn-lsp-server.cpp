// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR's language server with our dialects: errors while one types, definitions, references, hovers (docs/Editors.md).
//
#include "attn/API/Pipeline.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  // Errors do not show an operation in generic form.
  registry.addExtension(
      +[](mlir::MLIRContext *context, mlir::BuiltinDialect *) { context->printOpOnDiagnostic(false); });
  return mlir::asMainReturnCode(mlir::MlirLspServerMain(argc, argv, registry));
}
