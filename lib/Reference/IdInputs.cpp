// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IdInputs.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;

/// Segments of random lengths with padding between some of them; an id may have no token.
static void fillRow(int32_t *ids, int64_t tokens, int64_t segments, int64_t padding, std::mt19937_64 &rng) {
  auto below = [&](int64_t n) { return int64_t(rng() % uint64_t(n)); };
  int64_t at = 0, id = 1;
  std::fill_n(ids, tokens, 0);
  while (at < tokens && id <= segments) {
    at += below(3) == 0 ? below(padding + 1) : 0;
    int64_t left = segments - id + 1, length = left == 1 && padding == 0 ? tokens - at : below(2 * tokens / left + 2);
    for (int64_t end = std::min(tokens, at + length); at < end; ++at)
      ids[at] = int32_t(id);
    ++id;
  }
}

/// From 0 on in each segment, and going on in padding.
static void countPositions(const int32_t *ids, int32_t *positions, int64_t tokens) {
  for (int64_t i = 0, first = 0; i < tokens; ++i) {
    if (i && ids[i] && ids[i] != ids[i - 1])
      first = i;
    positions[i] = int32_t(i - first);
  }
}

void reference::addMissingIds(ProblemOp problem, InputSizes &sizes, std::mt19937_64 &rng, Tensors &tensors) {
  const FixedSizes fixed = FixedSizes::of(problem);
  Shape lead = {sizes.batch};
  for (const char *name : {"ids_q", "ids_kv"})
    if (auto given = tensors.find(name); given != tensors.end() && !given->second.shape().empty()) {
      lead.assign(given->second.shape().begin(), given->second.shape().end() - 1);
      (llvm::StringRef(name) == "ids_q" ? sizes.seqlenQ : sizes.seqlenKv) = given->second.shape().back();
    }
  for (auto [side, tokens] : {std::pair("q", sizes.seqlenQ), std::pair("kv", sizes.seqlenKv)}) {
    std::string ids = std::string("ids_") + side, positions = std::string("positions_") + side;
    Shape shape = lead;
    shape.push_back(tokens);
    if (!tensors.count(ids)) {
      Tensor made(Dtype::I32, shape);
      const Tensor *other = side == llvm::StringRef("kv") ? &tensors["ids_q"] : nullptr;
      if (other && other->shape() == made.shape()) // self-attention
        made = *other;
      else
        for (int64_t at = 0; at < made.numElements(); at += tokens)
          fillRow(made.data<int32_t>() + at, tokens, fixed.segments, sizes.padding, rng);
      tensors[ids] = std::move(made);
    }
    if (tensors.count(positions) || !SegmentRule::of(problem.getMask())->hasPositions())
      continue;
    const Tensor &of = tensors[ids];
    Tensor made(Dtype::I32, of.shape());
    for (int64_t at = 0; at < made.numElements(); at += tokens)
      countPositions(of.data<int32_t>() + at, made.data<int32_t>() + at, tokens);
    tensors[positions] = std::move(made);
  }
  sizes.batch = 1;
  for (int64_t extent : lead)
    sizes.batch *= extent;
}

void reference::poisonWithoutId(Tensor &tensor, const Tensor &ids) {
  tensor.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
    if (index[0] < ids.numElements() && ids.data<int32_t>()[index[0]] == 0)
      tensor.store(at, std::nan(""));
  });
}
