// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/TensorMap.h"
#include "DriverTable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <utility>

using namespace attn::rt;

Result<TensorMap> attn::rt::encodeTensorMap(const TensorMapSpec &spec) {
  Result<const Driver *> opened = Driver::get();
  if (!opened)
    return opened.error();
  const Driver &driver = **opened;
  auto *encode = driver.table().cuTensorMapEncodeTiled;
  if (!encode)
    return Error{fmt::format("a tensor map needs a driver for CUDA 12.0 or later, got: one for CUDA {}.{}",
                             driver.version() / 1000, driver.version() % 1000 / 10),
                 {},
                 {}};
  const int rank = spec.packed ? 5 : 4;
  uint64_t extents[5], strides[4];
  for (int i = 0; i < 4; ++i)
    extents[i] = static_cast<uint64_t>(spec.extents[i]);
  for (int i = 0; i < 3; ++i)
    strides[i] = static_cast<uint64_t>(spec.strides[i]) * 2;
  if (spec.packed) {
    constexpr uint64_t back = uint64_t(1) << 34; // times kPackedRows: 2^64
    extents[3] = extents[1] + 1; // where sequences end: a box of one that would end behind the tensor is zeros
    extents[1] = kPackedRows;
    extents[4] = INT32_MAX; // as far as coordinates go
    strides[2] = strides[0];
    strides[3] = back - strides[0] % back;
  }
  uint32_t box[5] = {static_cast<uint32_t>(spec.boxCols), static_cast<uint32_t>(spec.boxRows),
                     static_cast<uint32_t>(spec.boxHeads), 1, 1};
  if (spec.boxHeads != 1) {
    std::swap(box[1], box[2]);
    std::swap(extents[1], extents[2]);
    std::swap(strides[0], strides[1]);
  }
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  if (spec.rowStep != 1) // the driver counts the rows that a box spans
    steps[1] = static_cast<uint32_t>(spec.rowStep), box[1] *= steps[1];
  TensorMap map;
  // A box has rows of 128 bytes, which is what L2 should fetch at a time: with 256, K and V are read 4 % slower.
  if (int code =
          encode(&map, spec.bf16 ? cuda::tensorMapBfloat16 : cuda::tensorMapFloat16, rank,
                 reinterpret_cast<void *>(spec.address), extents, strides, box, steps, cuda::tensorMapInterleaveNone,
                 cuda::tensorMapSwizzle128B, cuda::tensorMapPromotionNone, cuda::tensorMapFillZeros)) {
    Error error = driver.error("cuTensorMapEncodeTiled", code);
    error.message +=
        fmt::format(" for {}{} of extents [{}], strides [{}] and box [{}] at {:#x}", spec.packed ? "packed " : "",
                    spec.bf16 ? "bf16" : "f16", fmt::join(spec.extents, ", "), fmt::join(spec.strides, ", "),
                    fmt::join(box, box + rank, ", "), spec.address);
    return error;
  }
  return map;
}
