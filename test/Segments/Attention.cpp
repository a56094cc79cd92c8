// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over the sequences that segments are made of. Queries are 0, so each
// weighs the keys that it sees alike: o is the mean of their values, and lse says how
// many they are. Both are held against the pairs that positions say, and a kernel that is given
// ids and positions itself against both.
//
#include "Programs.h"
#include "RandomCases.h"
#include "attn/Reference/Inputs.h"
#include <cmath>
#include <fmt/format.h>

using namespace attn;
using namespace attn::segments;
using namespace attn::reference;

constexpr int64_t dim = 8;

/// The same call from ids to o: not one bit is another, as tiles are the same in any order.
static std::string attendByIds(const Kernel &fused, Tensors operands, const Tensors &inputs, const Tensors &segments,
                               const Tensors &apart) {
  Tensors results;
  for (auto &entry : inputs)
    operands[entry.first()] = entry.second;
  for (const rt::Program::Tensor &spec : fused.getTensors())
    if (spec.isResult()) {
      auto other = apart.find(spec.name);
      const Tensor &shaped = other == apart.end() ? segments.find(spec.name)->second : other->second;
      results[spec.name] = Tensor(shaped.dtype(), shaped.shape());
      llvm::fill(results[spec.name].bytes(), char(0xff));
    }
  if (rt::Status ran = runTensors(fused, operands, results); !ran)
    return "by ids: " + ran.error().str();
  for (auto &entry : results) {
    auto other = apart.find(entry.first());
    const Tensor &expected = other == apart.end() ? segments.find(entry.first())->second : other->second;
    for (int64_t i = 0; i < expected.numElements(); ++i)
      if (double want = expected.load(i), got = entry.second.load(i); want != got)
        return fmt::format("by ids: {}: expected {} at {}, got: {}", entry.first().str(), want, i, got);
  }
  return "";
}

static std::string attend(Compiled &program, const Kernel &attention, const Kernel &fused, const Tensors &inputs,
                          const Tensors &segments) {
  Sizes sizes = llvm::cantFail(sizesOf(program.op, inputs));
  int64_t queries = sizes.rowsQ, keys = sizes.rowsKv;
  Tensors operands, results;
  operands["q"] = Tensor(reference::Dtype::F16, {queries, 1, dim});
  for (const char *name : {"k", "v"}) {
    operands[name] = Tensor(reference::Dtype::F16, {keys, 1, dim});
    operands[name].fillNormal(name[0]);
  }
  for (const char *name : {"cu_seqlens_q", "padded_offsets_q", "cu_seqlens_kv", "padded_offsets_kv"})
    operands[name] = segments.find(name)->second;
  results["o"] = Tensor(reference::Dtype::F16, {queries, 1, dim});
  results["lse"] = Tensor(reference::Dtype::F32, {1, queries});
  for (auto &entry : results)
    llvm::fill(entry.second.bytes(), char(0xff));
  if (rt::Status ran = runTensors(attention, operands, results); !ran)
    return ran.error().str();

  // Queries of segments that are not among the sequences get zeros.
  std::vector<bool> known(queries, false);
  const Tensor &cu = segments.find("cu_seqlens_q")->second, &offsets = segments.find("padded_offsets_q")->second;
  for (int64_t b = 0; b + 1 < cu.numElements(); ++b)
    for (int64_t i = 0; i < cu.load(b + 1) - cu.load(b); ++i)
      known[int64_t(offsets.load(b)) + i] = true;
  std::vector<double> count(queries, 0), sums(queries * dim, 0);
  visiblePairs(program.op, inputs, sizes, [&](int64_t row, int64_t query, int64_t key) {
    query += row * sizes.tokensQ, key += row * sizes.tokensKv;
    if (!known[query])
      return;
    ++count[query];
    for (int64_t d = 0; d < dim; ++d)
      sums[query * dim + d] += operands["v"].load(key * dim + d);
  });
  for (int64_t t = 0; t < queries; ++t) {
    double lse = results["lse"].load(t), want = count[t] ? std::log(count[t]) : -HUGE_VAL;
    if (lse != want && !(std::fabs(lse - want) < 1e-4))
      return fmt::format("lse of token {}: expected that of {} keys, got: {}", t, count[t], std::exp(lse));
    for (int64_t d = 0; d < dim; ++d)
      if (double o = results["o"].load(t * dim + d), mean = count[t] ? sums[t * dim + d] / count[t] : 0;
          !(std::fabs(o - mean) < 4e-3))
        return fmt::format("o of token {}: expected {}, got: {}", t, mean, o);
  }
  for (const char *name : {"cu_seqlens_q", "padded_offsets_q", "cu_seqlens_kv", "padded_offsets_kv"})
    operands.erase(name);
  return attendByIds(fused, std::move(operands), inputs, segments, results);
}

bool segments::attention(Programs &programs, const Target &target, int64_t count, uint64_t seed) {
  const Choice choices[] = {{"#attn.full", 4, true},
                            {"#attn.causal", 33},
                            {"#attn.causal<bottom_right>", 4, true},
                            {"#attn.band<left = 2, right = 0>", 4, false, 16},
                            {"#attn.band<left = 2, right = 0, bottom_right>", 4, true, 16},
                            {"#attn.band<left = 1, right = 3>", 33, true, 16}};
  programs.compile(choices);
  int64_t cases = 0, failures = 0;
  for (const Choice &choice : choices) {
    std::string text = fmt::format(
        "attn.problem @over_segments mask({}) layout(thd padded) heads(1) dims({}) dtype(f16)", choice.mask, dim);
    auto kernel = Kernel::create(text, "", target);
    auto fused = Kernel::create(fmt::format("{} segments({})", text, choice.segments), "", target);
    for (auto *created : {&kernel, &fused})
      if (!*created) {
        llvm::errs() << created->error().str() << "\n";
        return false;
      }
    Compiled &program = programs.get(choice);
    for (const char *family : {"self", "cross", "ring", "order", "split", "noise"})
      for (int64_t i = 0; i < count; ++i) {
        std::string description;
        Tensors inputs = makeInputs(seed, program, family, i, description), results;
        std::string failure = check(program, inputs, i, results);
        if (failure.empty())
          failure = attend(program, **kernel, **fused, inputs, results);
        ++cases;
        if (failure.empty())
          continue;
        if (++failures <= 20)
          llvm::outs() << "FAILED --seed=" << seed << " " << family << " " << i << ": " << failure << " | "
                       << program.text << " | " << description << "\n";
      }
  }
  llvm::outs() << cases << " cases, " << failures << " failures\n";
  return failures == 0 && cases > 0;
}
