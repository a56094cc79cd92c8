// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random rows of many kinds, all results exactly as the reference has them; and the
// sequences' pairs are those that positions say, whatever computed them.
//
#include "RandomCases.h"
#include "../Fuzz/Random.h"
#include <fmt/format.h>
#include <set>

using namespace attn;
using namespace attn::segments;
using namespace attn::reference;
using attn::fuzz::Random;

static const Choice choices[] = {{"#attn.full", 4, true},
                                 {"#attn.full", 33, false, 16},
                                 {"#attn.causal", 1, true, 16},
                                 {"#attn.causal", 4, true, 16},
                                 {"#attn.causal", 33},
                                 {"#attn.causal", 256, false, 128},
                                 {"#attn.causal<bottom_right>", 4, true},
                                 {"#attn.causal<bottom_right>", 33, false, 32},
                                 {"#attn.band<left = 2, right = 0>", 4, false, 16},
                                 {"#attn.band<left = 100, right = 0>", 33, true, 256},
                                 {"#attn.band<left = 2, right = 0, bottom_right>", 4, true, 16},
                                 {"#attn.band<left = 0, right = 0, bottom_right>", 33},
                                 {"#attn.band<left = 1, right = 3>", 33, true, 16},
                                 {"#attn.band<left = 1>", 4},
                                 {"#attn.band<right = 1>", 4, true, 32},
                                 {"#attn.band<left = 536870911, right = 0, bottom_right>", 4},
                                 {"#attn.causal<bottom_right>", 2048, true, 128}};
static constexpr size_t longOnly = 1; ///< of the choices, the last ones

namespace {
struct Tokens {
  std::vector<int32_t> ids, positions;
  int64_t size() const { return int64_t(ids.size()); }
  void add(int64_t id, int64_t position) { ids.push_back(int32_t(id)), positions.push_back(int32_t(position)); }
  void fit(int64_t count) { ids.resize(count, 0), positions.resize(count, 0); }
};
struct RowTokens {
  Tokens q, kv;
};
} // namespace

static const char *const families[] = {"self",  "cross",   "ring", "dual-chunk", "order", "jumbled",
                                       "split", "bad-ids", "far",  "far-apart",  "noise", "long"};

/// How many tokens a segment has: often few.
static int64_t lengthOf(Random &random, int64_t most) {
  return std::min(most, random.pick<int64_t>({0, 1, 1, random.between(2, 6), random.between(2, 20), most}));
}

/// Segments one behind another, with padding behind some; positions go on in it.
static Tokens packed(Random &random, llvm::ArrayRef<int64_t> ids, int64_t count, int64_t longest) {
  Tokens tokens;
  bool gaps = random.oneIn(2), everywhere = random.oneIn(2);
  if (random.oneIn(6)) // padding comes first
    for (int64_t i = random.between(1, 5); i > 0; --i)
      tokens.add(0, 0);
  for (int64_t id : ids) {
    int64_t length = lengthOf(random, longest), start = random.oneIn(12) ? random.between(-5, 5) : 0;
    int64_t padding = gaps && (everywhere || random.oneIn(2)) ? random.between(1, 4) : 0;
    for (int64_t i = 0; i < length + padding; ++i)
      tokens.add(i < length ? id : 0, start + i);
    if (tokens.size() > count)
      break;
  }
  tokens.fit(count);
  return tokens;
}

/// Of the tokens of all ranks, those of one.
static Tokens shard(const Tokens &all, int64_t ranks, int64_t rank, bool dualChunk) {
  Tokens own;
  int64_t chunk = std::max<int64_t>(all.size() / ranks / 2, 1);
  for (int64_t i = 0; i < all.size(); ++i)
    if (dualChunk ? i / chunk == rank || i / chunk == 2 * ranks - 1 - rank : i % ranks == rank)
      own.add(all.ids[i], all.positions[i]);
  return own;
}

static void shuffle(Random &random, std::vector<int64_t> &values) {
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[random.between(0, i - 1)]);
}

static RowTokens makeRow(Random &random, llvm::StringRef family, int64_t segments, int64_t countQ, int64_t countKv) {
  std::vector<int64_t> ids;
  for (int64_t id = 1; id <= segments; ++id)
    if (!random.oneIn(8)) // some are missing
      ids.push_back(id);
  int64_t longest = std::max<int64_t>(std::max(countQ, countKv) / random.pick<int64_t>({1, 2, 4, 8}), 1);
  if (family == "long")
    longest = std::min<int64_t>(longest, random.pick<int64_t>({3, 40, 700}));
  if (family == "jumbled")
    longest = random.between(1, 4);
  std::vector<int64_t> idsKv = ids;
  if (family == "order" || family == "noise")
    shuffle(random, ids);
  if (family == "order" && random.oneIn(2))
    idsKv = ids;
  if (family == "cross" && random.oneIn(2))
    llvm::erase_if(idsKv, [&](int64_t) { return random.oneIn(5); });

  RowTokens row{packed(random, ids, countQ, longest), packed(random, idsKv, countKv, longest)};
  if ((family == "self" || family == "long" || random.oneIn(3)) && countQ == countKv)
    row.kv = row.q;
  if (family == "ring" || family == "dual-chunk") {
    int64_t ranks = random.pick<int64_t>({2, 4, 8});
    Tokens all = packed(random, ids, std::max(countQ, countKv) * ranks, longest * ranks);
    row.q = shard(all, ranks, random.between(0, ranks - 1), family != "ring");
    row.kv = shard(all, ranks, random.between(0, ranks - 1), family != "ring");
    row.q.fit(countQ), row.kv.fit(countKv);
  }
  for (Tokens *tokens : {&row.q, &row.kv}) {
    if (tokens->size() == 0)
      continue;
    auto any = [&] { return random.between(0, tokens->size() - 1); };
    for (int64_t n = random.between(0, 3); n > 0 && family == "split"; --n)
      tokens->ids[any()] = int32_t(random.oneIn(2) ? 0 : random.between(1, segments));
    for (int64_t n = random.between(0, 3); n > 0 && family == "bad-ids"; --n)
      tokens->ids[any()] = random.pick<int32_t>({-1, int32_t(segments + 1), INT32_MIN, INT32_MAX, -int32_t(segments)});
    for (int64_t n = random.between(0, 3); n > 0 && family == "far"; --n)
      tokens->positions[any()] = random.pick<int32_t>(
          {1 << 29, -(1 << 29), (1 << 29) + 1, -(1 << 29) - 1, INT32_MIN, INT32_MAX, (1 << 29) - 1});
    if (family == "far-apart") { // as far as positions go
      int64_t by = random.pick<int64_t>({(1 << 29) - tokens->size() - 5, -(1 << 29) + 5, 0});
      for (int32_t &position : tokens->positions)
        position += int32_t(by);
    }
    if (family == "jumbled") // one run for each id, whose positions do not rise
      for (int32_t &position : tokens->positions)
        position = random.oneIn(3) ? int32_t(random.between(-1, longest + 1)) : position;
    if (family == "noise")
      for (int64_t i = 0; i < tokens->size(); ++i) {
        if (random.oneIn(3))
          tokens->ids[i] = int32_t(random.between(0, std::min<int64_t>(segments, 3)));
        if (random.oneIn(3))
          tokens->positions[i] = int32_t(random.between(-3, 9));
      }
  }
  if (random.oneIn(2)) // positions of padding may be anything
    for (Tokens *tokens : {&row.q, &row.kv})
      for (int64_t i = 0; i < tokens->size(); ++i)
        if (tokens->ids[i] == 0)
          tokens->positions[i] = random.pick<int32_t>({poison, INT32_MIN, INT32_MAX, -1, 0, 3});
  return row;
}

static Shape makeLead(Random &random, bool isLong) {
  Shape lead;
  int64_t rows = 1;
  for (int64_t rank = random.between(0, 3); rank > 0; --rank) {
    int64_t extent = isLong ? random.between(1, 2) : random.pick<int64_t>({1, 2, 3, 4, 8});
    lead.push_back(rows * extent <= 8 ? extent : 1);
    rows *= lead.back();
  }
  if (!lead.empty() && random.oneIn(40))
    lead[random.between(0, int64_t(lead.size()) - 1)] = 0;
  return lead;
}

static int64_t makeCount(Random &random, bool isLong) {
  if (isLong)
    return random.pick<int64_t>(
        {random.between(4000, 5000), 4096 * random.between(1, 4), 65536, random.between(60'000, 140'000)});
  return random.pick<int64_t>({random.between(0, 1), random.between(2, 40), random.between(2, 40),
                               random.between(2, 40), 16, 64, random.between(40, 150)});
}

/// Rows that share positions also share ids, or not.
Tensors segments::makeInputs(uint64_t seed, Compiled &program, llvm::StringRef family, int64_t number,
                             std::string &description) {
  Random random(seed * 1000 + (llvm::find(families, family) - families), number);
  bool isLong = family == "long";
  Shape lead = makeLead(random, isLong);
  int64_t countQ = makeCount(random, isLong), countKv = countQ;
  if (family != "self" && !isLong && random.oneIn(2))
    countKv = makeCount(random, isLong);
  if (isLong && random.oneIn(2))
    countKv = random.between(countQ / 2, countQ);
  Tensors inputs;
  auto add = [&](const char *name, size_t last, int64_t count) {
    Shape shape(lead.end() - last, lead.end());
    shape.push_back(count);
    inputs[name] = makeTensor(shape, random.between(0, 3), 3);
    description += fmt::format("{} {} ", name, shapeText(shape));
    int64_t rows = 1;
    for (int64_t extent : llvm::ArrayRef(shape).drop_back())
      rows *= extent;
    return rows;
  };
  int64_t rows = add("ids_q", lead.size(), countQ);
  add("ids_kv", lead.size(), countKv);
  auto some = [&] { return random.oneIn(2) ? lead.size() : size_t(random.between(0, lead.size())); };
  int64_t rowsQ = rows, rowsKv = rows;
  if (program.op.getRule().hasPositions()) {
    rowsQ = add("positions_q", some(), countQ);
    rowsKv = add("positions_kv", some(), countKv);
  }
  bool sameIds = random.oneIn(2);
  std::vector<RowTokens> made;
  for (int64_t row = 0; row < rows; ++row) {
    bool copied = sameIds && row >= std::max(rowsQ, rowsKv);
    made.push_back(copied ? made[row % std::max(rowsQ, rowsKv)]
                          : makeRow(random, family, program.op.getSegments(), countQ, countKv));
    auto put = [&](const char *name, int64_t at, const std::vector<int32_t> &values) {
      if (auto it = inputs.find(name); it != inputs.end())
        llvm::copy(values, it->second.data<int32_t>() + at * int64_t(values.size()));
    };
    put("ids_q", row, made[row].q.ids);
    put("ids_kv", row, made[row].kv.ids);
    put("positions_q", row % rowsQ, made[row].q.positions);
    put("positions_kv", row % rowsKv, made[row].kv.positions);
  }
  return inputs;
}

/// Are the pairs of the sequences those that positions say? In rows with a status
/// some segments are missing, but none is wrong.
static std::string comparePairs(Compiled &program, const Tensors &inputs, const Tensors &results) {
  Sizes sizes = llvm::cantFail(sizesOf(program.op, inputs));
  using Pair = std::pair<int64_t, int64_t>;
  std::set<Pair> visible, visited;
  std::set<Pair> complete; // (row, id)
  const int32_t *status = results.find("status")->second.data<int32_t>(),
                *ids = inputs.find("ids_q")->second.data<int32_t>();
  sequencePairs(program.op, results, [&](int64_t query, int64_t key) {
    visited.emplace(query, key);
    complete.emplace(query / sizes.tokensQ, ids[query]);
  });
  visiblePairs(program.op, inputs, sizes, [&](int64_t row, int64_t query, int64_t key) {
    query += row * sizes.tokensQ;
    if ((status[row] & 6) == 0 || complete.count({row, ids[query]}))
      visible.emplace(query, row * sizes.tokensKv + key);
  });
  for (auto [what, some, all] : {std::tuple("visible, but not of a sequence", &visible, &visited),
                                 std::tuple("of a sequence, but not visible", &visited, &visible)})
    for (Pair pair : *some)
      if (!all->count(pair))
        return fmt::format("({}, {}) is {}", pair.first, pair.second, what);
  return "";
}

bool segments::randomCases(Programs &programs, int64_t count, uint64_t seed, llvm::StringRef family, int64_t onlyCase) {
  programs.compile(choices);
  int64_t failures = 0, cases = 0;
  for (llvm::StringRef name : families) {
    if (!family.empty() && family != name)
      continue;
    bool isLong = name == "long";
    int64_t own = isLong ? (count + 49) / 50 : count, pairs = 0;
    std::array<int64_t, 16> byStatus = {};
    for (int64_t i = onlyCase >= 0 ? onlyCase : 0, end = onlyCase >= 0 ? onlyCase + 1 : own; i < end; ++i) {
      Compiled &program = programs.get(choices[i % (std::size(choices) - (isLong ? 0 : longOnly))]);
      std::string description;
      Tensors inputs = makeInputs(seed, program, name, i, description), results;
      std::string failure = check(program, inputs, i, results);
      if (failure.empty() && i % 4 == 0 && !isLong) {
        failure = comparePairs(program, inputs, results);
        ++pairs;
      }
      ++cases;
      const Tensor &status = results["status"];
      for (int64_t r = 0; r < status.numElements(); ++r)
        ++byStatus[status.data<int32_t>()[r] & 15];
      if (failure.empty())
        continue;
      if (++failures <= 20)
        llvm::outs() << "FAILED --seed=" << seed << " --family=" << name << " --case=" << i << ": " << failure << " | "
                     << program.text << " | " << description << "\n";
    }
    llvm::outs() << name << ": rows by status";
    for (auto [status, rows] : llvm::enumerate(byStatus))
      if (rows)
        llvm::outs() << " " << status << ":" << rows;
    llvm::outs() << "; pairs of " << pairs << " cases\n";
  }
  llvm::outs() << cases << " cases, " << failures << " failures\n";
  return failures == 0 && cases > 0;
}
