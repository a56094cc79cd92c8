// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_SCHEDULES_PASSES
#define ATTN_SCHEDULES_PASSES

include "mlir/Pass/PassBase.td"

def AttnChooseSchedule : Pass<"attn-choose-schedule", "::mlir::ModuleOp"> {
  let summary = "write on each problem which kernels compute it, and why";
  let description = [{
    The registered schedules (`attn::Schedule`) are tried in their order. The first one that accepts a problem gives
    its `schedule` attribute, and the measured rule that decided gives `schedule_reason`. A schedule that is given is
    kept, completed where it names a part, and refused if it cannot compute the problem on the target. The module gets
    the target (`tile.target`). Masks of problems have to be canonical (`attn-canonicalize-masks`).
    (`test/Schedules/choose-schedule.mlir`)
  }];
  let options =
      [Option<"target", "target", "std::string", "\"sm_80\"", "`cpu`, `sm_80` or `sm_90a`">,
       Option<"arch", "arch", "int64_t", "0",
              "compute capability of the chip, times ten (sizes depend on it); 0: the target's own (80, 90; a CPU has "
              "none)">,
       Option<
           "fallback", "fallback", "int64_t", "0",
           "which alternative for kernels that do not fit their registers, 0: none; where there are fewer, the last">];
  let dependentDialects = ["::attn::tile::TileDialect"];
}

def ConvertAttnToTile : Pass<"convert-attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "turn problems into kernels";
  let description = [{
    Each `attn.problem` becomes the kernels of its schedule, which `attn-choose-schedule` wrote: the program of one
    CTA for one query tile, written plainly (copy, wait, multiply), with one `tile.kv_loop` over the KV tiles that the
    mask needs. With `split_kv`, a second kernel, `<name>_combine`, follows, for launches with several splits.

    Each `attn.backward` becomes the kernels of its schedule, such as `<name>_preprocess`, `<name>` (dK and dV, and dQ
    where it is accumulated) and `<name>_postprocess` or, where dQ has a kernel of its own, `<name>_dq`. A `private`
    problem is only referenced by other ops and gets no kernels. (`test/Schedules/convert-attn-to-tile.mlir`)
  }];
  let dependentDialects = ["::attn::tile::TileDialect", "::attn::metadata::MetadataDialect",
                           "::attn::program::ProgramDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // ATTN_SCHEDULES_PASSES
