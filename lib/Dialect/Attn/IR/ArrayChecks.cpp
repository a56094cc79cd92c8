// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the arrays of a problem may hold: layouts', lists of tiles and blocks, parents.
//
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

using namespace attn;
using llvm::Twine;

static llvm::Error error(const Twine &what) { return llvm::createStringError(llvm::inconvertibleErrorCode(), what); }

llvm::Error attn::checkIdRows(const Sizes &sizes) {
  for (auto [name, rows, tokens] :
       {std::tuple("q", sizes.rowsQ, sizes.tokensQ), std::tuple("k", sizes.rowsKv, sizes.tokensKv)})
    if (rows != sizes.idRows * tokens)
      return error("expected `" + Twine(name) + "` of " + Twine(sizes.idRows * tokens) + " tokens, as " +
                   Twine(sizes.idRows) + " rows of " + Twine(tokens) + " ids have, got: " + Twine(rows));
  return llvm::Error::success();
}

static llvm::Error checkAscending(const Twine &name, llvm::ArrayRef<int32_t> values, int64_t rows) {
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] < values[i - 1])
      return error("expected `" + name + "` to ascend, got: " + Twine(values[i]) + " after " + Twine(values[i - 1]) +
                   " at index " + Twine(i));
  if (values.back() > rows)
    return error("expected the last of `" + name + "` within the buffer of " + Twine(rows) +
                 " tokens, got: " + Twine(values.back()));
  return llvm::Error::success();
}

void attn::usedSlots(llvm::ArrayRef<int32_t> offsets, int64_t rows, int64_t tile, VisitSlot visit) {
  const int64_t sequences = int64_t(offsets.size()) - 1;
  for (int64_t b = -1; b <= sequences; ++b) {
    int64_t begin = b < 0 ? 0 : offsets[b], end = b < sequences ? offsets[b + 1] : rows;
    int64_t slot = b < 0 ? 0 : begin / tile + b + 1;
    for (int64_t first = 0; begin + first < end; first += tile)
      visit(slot++, b >= 0 && b < sequences ? std::optional(b) : std::nullopt, first);
  }
}

llvm::Error attn::checkTiles(llvm::ArrayRef<int32_t> tiles, int32_t count, llvm::ArrayRef<int32_t> offsets,
                             int64_t rows, int64_t tile) {
  std::vector<int> left(tiles.size(), 0); // how often a slot has yet to come
  int64_t used = 0;
  usedSlots(offsets, rows, tile, [&](int64_t slot, std::optional<int64_t>, int64_t) { left[slot] = 1, ++used; });
  if (count != used)
    return error("expected a `tile_count` of " + Twine(used) + ", the tiles that have something to write, got: " +
                 Twine(count));
  for (int32_t i = 0; i < count; ++i)
    if (tiles[i] < 0 || size_t(tiles[i]) >= tiles.size() || left[tiles[i]]-- == 0)
      return error("expected each tile that has something to write once in `tiles_q`, got: " + Twine(tiles[i]) +
                   " at index " + Twine(i));
  return llvm::Error::success();
}

llvm::Error attn::checkBlocks(const MaskOperand &of, llvm::ArrayRef<int32_t> offsets, llvm::ArrayRef<int32_t> columns,
                              int64_t line, int64_t rowsKv) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] > int64_t(columns.size()))
      return error("expected `" + of.name + "` within the " + Twine(columns.size()) + " entries of `" +
                   of.lists->columns + "`, got: " + Twine(offsets[i]) + " at index " + Twine(i));
    if (i % line && offsets[i] < offsets[i - 1])
      return error("expected `" + of.name + "` to ascend, got: " + Twine(offsets[i]) + " after " +
                   Twine(offsets[i - 1]) + " at index " + Twine(i));
  }
  const int64_t blocks = llvm::divideCeil(rowsKv, of.lists->kv);
  for (auto [i, column] : llvm::enumerate(columns))
    if (column < 0 || column >= blocks)
      return error("expected numbers of blocks of " + Twine(of.lists->kv) + " keys, of which there are " +
                   Twine(blocks) + ", in `" + of.lists->columns + "`, got: " + Twine(column) + " at index " + Twine(i));
  return llvm::Error::success();
}

llvm::Error attn::checkParents(llvm::StringRef name, llvm::ArrayRef<int32_t> parents, llvm::ArrayRef<int32_t> cuSeqlens,
                               llvm::ArrayRef<int32_t> paddedOffsets, int64_t rowsKv) {
  const bool packed = !cuSeqlens.empty();
  const int64_t sequences = packed ? int64_t(cuSeqlens.size()) - 1 : int64_t(parents.size()) / std::max<int64_t>(rowsKv, 1);
  for (int64_t b = 0; b < sequences; ++b) {
    int64_t start = !packed ? b * rowsKv : paddedOffsets.empty() ? cuSeqlens[b] : paddedOffsets[b];
    for (int64_t key = 0, length = packed ? cuSeqlens[b + 1] - cuSeqlens[b] : rowsKv; key < length; ++key)
      if (int32_t parent = parents[start + key]; parent < -1 || parent >= key)
        return error("expected an earlier key of the sequence, or -1, in `" + name + "` for key " + Twine(key) +
                     " of sequence " + Twine(b) + ", got: " + Twine(parent));
  }
  return llvm::Error::success();
}

llvm::Error attn::checkOffsets(llvm::StringRef side, llvm::ArrayRef<int32_t> cuSeqlens,
                               llvm::ArrayRef<int32_t> paddedOffsets, int64_t rows, bool writesKv) {
  std::string lengthsName = ("cu_seqlens_" + side).str(), offsetsName = ("padded_offsets_" + side).str();
  if (cuSeqlens[0] != 0)
    return error("expected `" + lengthsName + "` to start at 0, got: " + Twine(cuSeqlens[0]));
  if (llvm::Error failure = checkAscending(lengthsName, cuSeqlens, rows))
    return failure;
  if (paddedOffsets.empty())
    return llvm::Error::success();
  if (side == "kv" && !writesKv) { // only read, so their order does not matter
    for (size_t b = 0; b + 1 < cuSeqlens.size(); ++b)
      if (int64_t offset = paddedOffsets[b], length = cuSeqlens[b + 1] - cuSeqlens[b];
          offset < 0 || offset + length > rows)
        return error("expected sequence " + Twine(b) + " of `" + offsetsName + "` within the buffer of " + Twine(rows) +
                     " tokens, got: " + Twine(length) + " from " + Twine(offset));
    return llvm::Error::success();
  }
  if (paddedOffsets[0] < 0)
    return error("expected `" + offsetsName + "` to start at 0 or later, got: " + Twine(paddedOffsets[0]));
  if (llvm::Error failure = checkAscending(offsetsName, paddedOffsets, rows))
    return failure;
  for (size_t b = 0; b + 1 < paddedOffsets.size(); ++b) {
    int32_t slot = paddedOffsets[b + 1] - paddedOffsets[b], length = cuSeqlens[b + 1] - cuSeqlens[b];
    if (slot < length)
      return error("expected a slot of at least " + Twine(length) + " tokens for sequence " + Twine(b) + " in `" +
                   offsetsName + "`, got: " + Twine(slot));
  }
  return llvm::Error::success();
}
