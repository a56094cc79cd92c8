// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.compress: offsets of compressed sequences, then the means of windows of K and V.
//
#include "CallKernel.h"
#include "Lowerings.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::writeCompress(CompressOp op, ProgramBuilder &program, const TargetInfo &target) {
  constexpr const char *header = "attn/compress.h";
  const int64_t length = op.getLength(), stride = op.getStride(), heads = op.getKvHeads();
  const bool packed = op.getLayout().isPacked();
  if (packed) {
    CallKernel offsets(op, program, target, "_offsets");
    offsets.warps = 16, offsets.ctasPerSm = 1;
    offsets.call(functionOf("compressed_offsets", length, stride, offsets.threads()), {"cu_seqlens_compressed"},
                 {"cu_seqlens", "batch"});
    offsets.build(header);
  }
  CallKernel means(op, program, target);
  // A thread has few units of 16 bytes, so that also short inputs have threads for all multiprocessors.
  const int64_t units = heads * std::max(op.getDimQk(), op.getDimV()) / 8;
  means.setRows(std::clamp<int64_t>(means.threads() / units, 1, 64),
                packed ? program.extentsOf("compressed_k").front()
                       : rt::Extent::symbol("batch") * program.rowsOf("compressed_k"));
  SmallVector<std::pair<std::string, int64_t>, 2> sides = {{"k", op.getDimQk()}, {"v", op.getDimV()}};
  if (op.getKOnly())
    sides.pop_back();
  for (const auto &[x, dim] : sides) {
    const std::string y = "compressed_" + x;
    if (packed)
      means.call(functionOf("compress_rows", heads, dim, length, stride, means.threads()), {y},
                 {x, "cu_seqlens", "cu_seqlens_compressed", y + ".row", y + ".head", x + ".row", x + ".head", "batch",
                  "first", "rows"});
    else
      means.call(functionOf("compress_dense_rows", heads, dim, length, stride, means.threads()), {y},
                 {x, y + ".batch", y + ".row", y + ".head", x + ".batch", x + ".row", x + ".head", y + ".rows", "first",
                  "rows"});
  }
  means.build(header);
  return success();
}

LogicalResult attn::writeCompressBackward(CompressBackwardOp op, ProgramBuilder &program, const TargetInfo &target) {
  CompressOp compress = op.getCompressOp();
  const int64_t heads = compress.getKvHeads(), added = op.getAdd().value_or(0);
  const bool packed = compress.getLayout().isPacked();
  using rt::Extent;
  CallKernel kernel(op, program, target);
  const int64_t units = heads * std::max(compress.getDimQk(), compress.getDimV()) / 8;
  kernel.setRows(std::clamp<int64_t>(2 * kernel.threads() / units, 1, 64),
                 packed ? Extent::symbol("total_kv") : Extent::symbol("batch") * Extent::symbol("seqlen_kv"));
  for (auto [side, dim] : {std::pair<std::string, int64_t>("k", compress.getDimQk()), {"v", compress.getDimV()}}) {
    SmallVector<std::string> others;
    auto addTensor = [&](const std::string &name) {
      others.push_back(name);
      appendStrides(others, name);
    };
    addTensor("dcompressed_" + side);
    appendStrides(others, "d" + side);
    for (int64_t i = 0; i < added; ++i)
      addTensor("before_d" + side + "_" + std::to_string(i));
    if (packed)
      others.append({"cu_seqlens", "cu_seqlens_compressed", "batch"});
    else
      others.push_back("seqlen_kv");
    others.append({"first", "rows"});
    kernel.call(functionOf(packed ? "compress_grads" : "compress_dense_grads", heads, dim, compress.getLength(),
                           compress.getStride(), added, kernel.threads()),
                {"d" + side}, others);
  }
  kernel.build("attn/compress.h");
  return success();
}
