// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Cases.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <random>

using namespace attn;

std::string Case::problem(const std::string &schedule) const {
  std::string layout = lengths.empty() ? "bshd" : "thd";
  std::string given = schedule.empty() ? "" : fmt::format(" schedule({})", schedule);
  std::string modifiers = score.empty() ? "" : fmt::format(" score([{}])", score);
  if (!queries.empty()) {
    auto longest = [](const std::vector<int64_t> &rows) { return *std::max_element(rows.begin(), rows.end()); };
    return fmt::format(
        "attn.problem @bench mask({}) layout(thd) heads({}, {}) dims({}) dtype(bf16){} max_seqlen({}, {}){}\n", mask,
        heads, kvHeads, dim, modifiers, longest(queries), longest(lengths), given);
  }
  int64_t typical =
      lengths.empty() ? seqlen : std::accumulate(lengths.begin(), lengths.end(), int64_t(0)) / lengths.size();
  return fmt::format(
      "attn.problem @bench mask({}) layout({}) heads({}, {}) dims({}) dtype(bf16){} expected_seqlen({}){}\n", mask,
      layout, heads, kvHeads, dim, modifiers, typical, given);
}

reference::InputSizes Case::sizes() const {
  reference::InputSizes sizes;
  sizes.batch = batch, sizes.seqlenQ = sizes.seqlenKv = seqlen;
  sizes.lengthsQ = queries.empty() ? lengths : queries, sizes.lengthsKv = lengths;
  sizes.padding = 0;
  return sizes;
}

/// `count` documents that fill `tokens`, cut at random places; the same on every machine.
static std::vector<int64_t> randomDocuments(int64_t tokens, int64_t count) {
  std::mt19937_64 rng(count);
  std::vector<int64_t> cuts = {0, tokens};
  for (int64_t i = 0; i + 1 < count; ++i)
    cuts.push_back(1 + rng() % (tokens - 1));
  std::sort(cuts.begin(), cuts.end());
  std::vector<int64_t> lengths;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    lengths.push_back(cuts[i + 1] - cuts[i]);
  return lengths;
}

std::vector<Case> attn::allCases() {
  std::vector<Case> cases;
  auto add = [&](Case c) { cases.push_back(std::move(c)); };
  auto dense = [&](std::string suite, int64_t dim, int64_t batch, int64_t seqlen, std::string what, std::string mask) {
    int64_t heads = 2048 / dim;
    add({suite,
         fmt::format("d{} b{} h{} s{} {}", dim, batch, heads, seqlen, what),
         mask,
         heads,
         heads,
         dim,
         batch,
         seqlen,
         {}});
  };
  for (int64_t dim : {64, 128, 256})
    for (int64_t seqlen : {1024, 4096, 16384}) {
      dense("dense", dim, 16384 / seqlen, seqlen, "full", "#attn.full");
      dense("dense", dim, 16384 / seqlen, seqlen, "causal", "#attn.causal");
    }
  add({"dense", "gqa d128 b1 h32/8 s32768 causal", "#attn.causal", 32, 8, 128, 1, 32768, {}});

  const std::string window = "#attn.band<left = 1023, right = 0>";
  for (int64_t dim : {64, 128, 256})
    dense("masks", dim, 1, 16384, "causal window1024", window);
  dense("masks", 128, 1, 16384, "window1024 or 64 sinks", "#attn.or<#attn.prefix<64>, " + window + ">");
  dense("masks", 128, 1, 16384, "prefix4096", "#attn.or<#attn.prefix<4096>, #attn.causal>");

  dense("masks", 128, 1, 16384, "causal softcap", "#attn.causal");
  cases.back().score = "#attn.softcap<30.0>";
  dense("masks", 128, 1, 16384, "causal alibi", "#attn.causal");
  cases.back().score = "#attn.alibi";

  const std::vector<int64_t> uneven = {4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256};
  auto packed = [&](int64_t dim, std::string what, std::vector<int64_t> lengths, std::string mask) {
    int64_t heads = 2048 / dim;
    add({"packed", fmt::format("d{} h{} {}", dim, heads, what), mask, heads, heads, dim, 1, 0, std::move(lengths)});
  };
  for (int64_t dim : {64, 128, 256}) {
    packed(dim, "docs 16x1024 full", std::vector<int64_t>(16, 1024), "#attn.full");
    packed(dim, "docs 16x1024 causal", std::vector<int64_t>(16, 1024), "#attn.causal");
    packed(dim, "docs 4x4096 full", std::vector<int64_t>(4, 4096), "#attn.full");
    packed(dim, "docs 4x4096 causal", std::vector<int64_t>(4, 4096), "#attn.causal");
    packed(dim, "docs 1x16384 full", {16384}, "#attn.full");
    packed(dim, "docs 1x16384 causal", {16384}, "#attn.causal");
    packed(dim, fmt::format("docs [{}] causal", fmt::join(uneven, ",")), uneven, "#attn.causal");
  }
  for (int64_t count : {8, 32, 128})
    add({"packed", fmt::format("T32768 h16 d128 docs{} causal", count), "#attn.causal", 16, 16, 128, 1, 0,
         randomDocuments(32768, count)});
  add({"packed", "T32768 h16 d128 docs8 causal swa1024", "#attn.band<left = 1024, right = 0>", 16, 16, 128, 1, 0,
       randomDocuments(32768, 8)});

  auto few = [&](int64_t dim, int64_t heads, int64_t kvHeads, std::string what, int64_t queries,
                 std::vector<int64_t> keys) {
    std::string shared = kvHeads == heads ? "" : fmt::format("/{}", kvHeads);
    std::vector<int64_t> rows(keys.size(), queries);
    add({"short", fmt::format("d{} b{} h{}{} sq{} skv{}", dim, keys.size(), heads, shared, queries, what), "#attn.full",
         heads, kvHeads, dim, 1, 0, std::move(keys), "", std::move(rows)});
  };
  auto uniform = [&](int64_t dim, int64_t batch, int64_t queries, int64_t keys) {
    few(dim, 16, 16, std::to_string(keys), queries, std::vector<int64_t>(batch, keys));
  };
  for (int64_t keys : {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17})
    uniform(128, 30720, 1, keys);
  std::mt19937_64 rng(1);
  std::vector<int64_t> ragged(30720), mostly2(30720);
  for (int64_t &keys : ragged)
    keys = 2 + rng() % 15;
  for (int64_t &keys : mostly2)
    keys = rng() % 10 ? 2 : 2 + rng() % 15;
  for (int64_t dim : {128, 64, 256, 512}) {
    few(dim, 16, 16, " random 2..16", 1, ragged);
    few(dim, 16, 16, " 90% of 2", 1, mostly2);
    if (dim != 128)
      for (int64_t keys : {2, 4, 6, 8, 12, 16})
        uniform(dim, 30720, 1, keys);
  }
  few(128, 16, 4, "16", 1, std::vector<int64_t>(30720, 16));
  for (int64_t batch : {1, 32, 500, 2000, 4000})
    uniform(128, batch, 1, 16);
  for (int64_t keys : {2, 4, 6, 8, 12})
    uniform(128, 4000, 1, keys);
  uniform(128, 2048, 2, 4);
  // Rows of several segments of one query each, 2 in 2048 rows of 4 keys, and 4096 in 2 of 8192: all that is known
  // ahead is a row's length.
  uniform(128, 2 * 2048, 1, 2);
  uniform(128, 2 * 4096, 1, 2);
  uniform(128, 2048, 16, 16);
  uniform(128, 2048, 17, 17);

  add({"cpu", "d64 b1 h8 s2048 causal", "#attn.causal", 8, 8, 64, 1, 2048, {}});
  add({"cpu", "d128 b1 h4 s1024 full", "#attn.full", 4, 4, 128, 1, 1024, {}});
  return cases;
}
