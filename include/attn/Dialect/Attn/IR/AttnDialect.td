// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_DIALECT
#define ATTN_DIALECT

include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attn";
  let summary = "what an attention computation is: masks, layouts, problems";
  let description = [{
    The `attn` dialect says *what* is computed and nothing about how: a
    [problem](#attnproblem-attnproblemop) names a mask expression, the layouts of its tensors, head
    counts and dimensions. It has no tiles, no threads and no machine; the
    `tile` dialect has them. Masks are attributes; their interface has the definition and all
    analyses (`MaskInterface`). docs/Structure.md lists the places of a new mask.

    ```mlir
    attn.problem @prefix_lm
      mask(#attn.or<#attn.prefix<128>, #attn.causal>)
      layout(bshd) heads(16, 4) dims(128) dtype(bf16)
    ```
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// An unknown attribute is refused with the name that is near.
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute, ::mlir::DialectAsmPrinter &printer) const override;
  }];
}

#endif // ATTN_DIALECT
