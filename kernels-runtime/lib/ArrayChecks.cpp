// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/ArrayChecks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

using namespace attn::rt;
using Values = std::span<const int32_t>;

template <typename... Args> static Error error(fmt::format_string<Args...> format, Args &&...args) {
  return Error{fmt::format(format, std::forward<Args>(args)...), {}, {}};
}

static Status checkAscending(NamedArray array, int64_t rows) {
  Values values = array.values;
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] < values[i - 1])
      return error("expected `{}` to ascend, got: {} after {} at index {}", array.name, values[i], values[i - 1], i);
  if (values.back() > rows)
    return error("expected the last of `{}` within the buffer of {} tokens, got: {}", array.name, rows, values.back());
  return {};
}

Status attn::rt::checkOffsets(NamedArray cuSeqlens, NamedArray paddedOffsets, int64_t rows, bool isWritten,
                              std::string_view unit) {
  Values lengths = cuSeqlens.values, offsets = paddedOffsets.values;
  if (lengths[0] != 0)
    return error("expected `{}` to start at 0, got: {}", cuSeqlens.name, lengths[0]);
  if (Status ascends = checkAscending(cuSeqlens, rows); !ascends)
    return ascends;
  if (offsets.empty())
    return {};
  if (!isWritten) { // only read, so their order does not matter
    for (size_t b = 0; b + 1 < lengths.size(); ++b)
      if (int64_t offset = offsets[b], length = lengths[b + 1] - lengths[b]; offset < 0 || offset + length > rows)
        return error("expected {} {} of `{}` within the buffer of {} tokens, got: {} from {}", unit, b,
                     paddedOffsets.name, rows, length, offset);
    return {};
  }
  if (offsets[0] < 0)
    return error("expected `{}` to start at 0 or later, got: {}", paddedOffsets.name, offsets[0]);
  if (Status ascends = checkAscending(paddedOffsets, rows); !ascends)
    return ascends;
  for (size_t b = 0; b + 1 < offsets.size(); ++b)
    if (int32_t slot = offsets[b + 1] - offsets[b], length = lengths[b + 1] - lengths[b]; slot < length)
      return error("expected a slot of at least {} tokens for {} {} in `{}`, got: {}", length, unit, b,
                   paddedOffsets.name, slot);
  return {};
}

Status attn::rt::checkPieces(NamedArray cuSeqlens, NamedArray pieces, NamedArray firstPieces, int64_t rows,
                             int64_t whole, int64_t most) {
  constexpr size_t lines = 5;
  const size_t line = pieces.values.size() / lines, count = line - 1, sequences = cuSeqlens.values.size() - 1;
  auto lineOf = [&](size_t number) { return pieces.values.subspan(number * line, line); };
  const Values first = lineOf(0), ends = lineOf(1), positions = lineOf(2), sequenceOf = lineOf(3), order = lineOf(4);
  if (Status fits = checkOffsets(cuSeqlens, {}, whole ? whole : INT32_MAX, false); !fits)
    return fits;
  const std::string rowsName = fmt::format("{}[0]", pieces.name), endsName = fmt::format("{}[1]", pieces.name);
  if (Status fits = checkOffsets({endsName, ends}, {rowsName, first}, rows, true, "piece"); !fits)
    return fits;
  if (Status fits = checkOffsets({firstPieces.name, firstPieces.values}, {}, static_cast<int64_t>(count), false); !fits)
    return fits;
  if (firstPieces.values.back() != static_cast<int64_t>(count))
    return error("expected the last of `{}` to be the number of pieces, {}, got: {}", firstPieces.name, count,
                 firstPieces.values.back());
  for (size_t number = 2; number < lines; ++number)
    if (int32_t last = lineOf(number)[count]; last != 0)
      return error("expected the last entry of `{}[{}]` to be 0, got: {}", pieces.name, number, last);
  std::vector<bool> isListed(count, false);
  for (size_t b = 0; b < sequences; ++b) {
    const int64_t length = cuSeqlens.values[b + 1] - cuSeqlens.values[b];
    if (int64_t own = firstPieces.values[b + 1] - firstPieces.values[b]; most && own > most)
      return error("expected at most {} piece{} of sequence {} in `{}`, got: {}", most, most == 1 ? "" : "s", b,
                   firstPieces.name, own);
    std::vector<std::pair<int64_t, int64_t>> spans; // positions
    for (auto i = static_cast<size_t>(firstPieces.values[b]); i < static_cast<size_t>(firstPieces.values[b + 1]); ++i) {
      const int32_t piece = order[i];
      const auto at = static_cast<size_t>(piece);
      if (piece < 0 || at >= count || isListed[at])
        return error("expected each of the {} pieces once in `{}[4]`, got: {} at index {}", count, pieces.name, piece,
                     i);
      isListed[at] = true;
      if (sequenceOf[at] != static_cast<int64_t>(b))
        return error("expected pieces of sequence {} in `{}[4]` from index {} on, got: piece {} of sequence {}", b,
                     pieces.name, firstPieces.values[b], piece, sequenceOf[at]);
      const int64_t begin = positions[at], end = begin + ends[at + 1] - ends[at];
      if (begin < 0 || end > length)
        return error("expected positions below {} of sequence {} in `{}`, got: {} to {} of piece {}", length, b,
                     pieces.name, begin, end, piece);
      if (begin < end)
        spans.emplace_back(begin, end);
    }
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i)
      if (spans[i].first < spans[i - 1].second)
        return error("expected each position of sequence {} in one piece of `{}` at most, got: {} in two", b,
                     pieces.name, spans[i].first);
  }
  return {};
}

void attn::rt::usedWorkTiles(Values offsets, int64_t rows, int64_t tile, const VisitSlot &visit) {
  const int64_t sequences = static_cast<int64_t>(offsets.size()) - 1;
  for (int64_t b = -1; b <= sequences; ++b) {
    int64_t begin = b < 0 ? 0 : offsets[static_cast<size_t>(b)],
            end = b < sequences ? offsets[static_cast<size_t>(b + 1)] : rows;
    int64_t slot = b < 0 ? 0 : begin / tile + b + 1;
    for (int64_t first = 0; begin + first < end; first += tile)
      visit(slot++, b >= 0 && b < sequences ? std::optional(b) : std::nullopt, first);
  }
}

Status attn::rt::checkTiles(NamedArray tiles, int32_t count, Values offsets, int64_t rows, int64_t tile) {
  std::vector<int> left(tiles.values.size(), 0); // how often a slot has yet to come
  int64_t used = 0;
  usedWorkTiles(offsets, rows, tile, [&](int64_t slot, std::optional<int64_t>, int64_t) {
    if (static_cast<size_t>(slot) < left.size())
      left[static_cast<size_t>(slot)] = 1;
    ++used;
  });
  if (count != used)
    return error("expected a `tile_count` of {}, the tiles that have something to write, got: {}", used, count);
  for (size_t i = 0; i < std::min(static_cast<size_t>(count), left.size()); ++i)
    if (int32_t slot = tiles.values[i];
        slot < 0 || static_cast<size_t>(slot) >= left.size() || left[static_cast<size_t>(slot)]-- == 0)
      return error("expected each tile that has something to write once in `{}`, got: {} at index {}", tiles.name, slot,
                   i);
  return {};
}

Status attn::rt::checkBlocks(NamedArray offsets, NamedArray columns, int64_t line, int64_t blocks, int64_t keys) {
  Values ends = offsets.values, entries = columns.values;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < 0 || ends[i] > static_cast<int64_t>(entries.size()))
      return error("expected `{}` within the {} entries of `{}`, got: {} at index {}", offsets.name, entries.size(),
                   columns.name, ends[i], i);
    if (static_cast<int64_t>(i) % line && ends[i] < ends[i - 1])
      return error("expected `{}` to ascend, got: {} after {} at index {}", offsets.name, ends[i], ends[i - 1], i);
  }
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i] < 0 || entries[i] >= blocks)
      return error("expected numbers of blocks of {} keys, of which there are {}, in `{}`, got: {} at index {}", keys,
                   blocks, columns.name, entries[i], i);
  return {};
}

Status attn::rt::checkParents(NamedArray parents, Values cuSeqlens, Values paddedOffsets, int64_t rows) {
  const bool packed = !cuSeqlens.empty();
  const size_t sequences =
      packed ? cuSeqlens.size() - 1 : parents.values.size() / static_cast<size_t>(std::max<int64_t>(rows, 1));
  for (size_t b = 0; b < sequences; ++b) {
    int64_t start = !packed ? static_cast<int64_t>(b) * rows : paddedOffsets.empty() ? cuSeqlens[b] : paddedOffsets[b];
    for (int64_t key = 0, length = packed ? cuSeqlens[b + 1] - cuSeqlens[b] : rows; key < length; ++key)
      if (int32_t parent = parents.values[static_cast<size_t>(start + key)]; parent < -1 || parent >= key)
        return error("expected an earlier key of the sequence, or -1, in `{}` for key {} of sequence {}, got: {}",
                     parents.name, key, b, parent);
  }
  return {};
}
