// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges, waits, repeats and whens of programs as plain data. Ranks are simulated: kernels are functions here, and
// an exchange is carried out by memcpy at the last moment, the waits of all ranks.
//
#include "TestHelpers.h"
#include "attn-rt/Program.h"

#include <cstring>
#include <fstream>
#include <sstream>

using namespace attn::rt;

/// The one program of a list.
static std::string readText(const std::string &path) {
  std::ifstream file(path);
  std::stringstream list;
  list << file.rdbuf();
  std::string text = list.str();
  size_t begin = text.find('{'), end = text.rfind('}');
  EXPECT(begin < end, "{}", path);
  return text.substr(begin, end + 1 - begin) + "\n";
}

static Program readProgram(const std::string &path) {
  std::string text = readText(path);
  auto program = Program::fromJson(text);
  EXPECT(program.ok(), "{}", program.error().str());
  EXPECT(program->toJson() == text, "equal text");
  return *program;
}

static std::vector<TensorMapSpec> maps; ///< that were asked for
static Result<TensorMap> keepMap(const TensorMapSpec &spec) {
  maps.push_back(spec);
  return TensorMap{};
}

template <typename T> static T valueOf(const BoundStep &step, size_t argument) {
  return *static_cast<T *>(step.pointers[argument]);
}

namespace {
/// A rank, and its memory.
struct Rank {
  std::vector<int32_t> k, o, workspace;
  std::vector<int64_t> values;
  std::vector<Table> tables;
  std::vector<BoundStep> steps;
  size_t at = 0;

  /// Tensors `k` and `o` of as many rows of 2.
  Status bind(const ProgramCode &code, int64_t rank, int64_t ranks, int64_t rows) {
    for (const std::string &name : code.sizes())
      values.push_back(name == "rank" ? rank : name == "ranks" ? ranks : rows);
    code.computeSizes(values.data(), tables.data());
    o.assign(static_cast<size_t>(2 * rows), -1);
    workspace.assign(code.workspaceBytes(values.data(), tables.data()) / 4 + 4, -1);
    void *memory = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(workspace.data()) + 15) / 16 * 16);
    const int64_t shape[] = {rows, 2};
    TensorView tensors[] = {{k.data(), Dtype::I32, shape, {}}, {o.data(), Dtype::I32, shape, {}}};
    return code.bind(tensors, memory, values.data(), steps, keepMap, tables.data());
  }
};
} // namespace

/// Runs the steps of all ranks: each up to its next wait, then the exchanges that they all wait for.
static void run(std::vector<Rank> &ranks, const Program &program,
                const std::function<void(const std::string &, const BoundStep &)> &kernel) {
  for (bool more = true; more;) {
    more = false;
    for (Rank &rank : ranks)
      for (; rank.at < rank.steps.size() && rank.steps[rank.at].kind != BoundStep::Kind::Wait; ++rank.at) {
        const BoundStep &step = rank.steps[rank.at];
        if (step.kind == BoundStep::Kind::Launch)
          kernel(program.kernels[static_cast<size_t>(step.kernel)], step);
        for (auto [data, bytes] : step.zeroed)
          if (step.kind == BoundStep::Kind::Zero)
            std::memset(data, 0, bytes);
      }
    // What arrives is copied aside first, as all send what they had.
    std::vector<std::pair<void *, std::vector<char>>> arrived;
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r].at == ranks[r].steps.size())
        continue;
      const std::vector<int64_t> &exchanges = ranks[r].steps[ranks[r].at++].exchanges;
      more = true;
      for (size_t i = 0; i < exchanges.size(); ++i) {
        const BoundStep::Exchange &own = ranks[r].steps[static_cast<size_t>(exchanges[i])].exchange;
        Rank &peer = ranks[static_cast<size_t>(own.from)];
        size_t wait = peer.at - (own.from < static_cast<int64_t>(r)); // it has moved on
        const BoundStep &other = peer.steps[static_cast<size_t>(peer.steps[wait].exchanges[i])];
        EXPECT(other.exchange.to == static_cast<int64_t>(r) && other.exchange.sent.second == own.received.second,
               "a send meets its receive");
        const char *data = static_cast<const char *>(other.exchange.sent.first);
        arrived.emplace_back(own.received.first, std::vector<char>(data, data + other.exchange.sent.second));
      }
    }
    for (auto &[to, bytes] : arrived)
      std::memcpy(to, bytes.data(), bytes.size());
  }
}

/// 100 to the power of a rank, times a number of the element: sums show whose keys were seen how often.
static int32_t keyOf(int64_t rank, int64_t element) {
  int32_t key = static_cast<int32_t>(element + 1);
  for (; rank > 0; --rank)
    key *= 100;
  return key;
}

static int ring(const std::string &path) {
  Program program = readProgram(path);
  auto code = ProgramCode::compile(program);
  EXPECT(code.ok() && code->hasExchanges(), "{}", code.error().str());
  constexpr int64_t rows = 3;
  for (bool causal : {false, true})
    for (int64_t count : {1, 2, 4}) {
      std::vector<Rank> ranks(static_cast<size_t>(count));
      std::vector<std::vector<int64_t>> visits(ranks.size());
      for (int64_t r = 0; r < count; ++r) {
        Rank &rank = ranks[static_cast<size_t>(r)];
        for (int64_t step = 0; step < count; ++step) // the keys of rank r - step
          visits[static_cast<size_t>(r)].push_back(!causal || step <= r);
        for (int64_t i = 0; i < 2 * rows; ++i)
          rank.k.push_back(keyOf(r, i));
        rank.tables = {{visits[static_cast<size_t>(r)].data(), count}};
        Status bound = rank.bind(*code, r, count, rows);
        EXPECT(bound.ok(), "{}", bound.error().str());
      }
      std::vector<int64_t> after, kinds;
      for (const BoundStep &step : ranks.back().steps) {
        kinds.push_back(static_cast<int64_t>(step.kind));
        if (step.kind == BoundStep::Kind::Exchange)
          after.push_back(step.exchange.after);
      }
      if (count == 4 && !causal) { // each exchange runs beside the launch before it
        EXPECT(kinds == (std::vector<int64_t>{0, 2, 3, 0, 2, 3, 0, 2, 3, 0, 0}));
        EXPECT(after == (std::vector<int64_t>{-1, 2, 5}), "{} {} {}", after[0], after[1], after[2]);
      }
      std::vector<std::vector<int32_t>> keys;
      for (Rank &rank : ranks)
        keys.push_back(rank.k);
      run(ranks, program, [&](const std::string &name, const BoundStep &step) {
        auto *from = valueOf<int32_t *>(step, 0), *to = valueOf<int32_t *>(step, 1);
        for (int64_t i = 0; i < 2 * valueOf<int32_t>(step, 2); ++i) {
          EXPECT(name != "add" || from[i] == keyOf(valueOf<int32_t>(step, 3), i),
                 "keys of the rank that the step says");
          name == "add" ? to[i] += from[i] : to[i] = from[i];
        }
        EXPECT(name != "add" || valueOf<int64_t>(step, 4) == 2, "a stride");
      });
      for (int64_t r = 0; r < count; ++r)
        for (int64_t i = 0; i < 2 * rows; ++i) {
          int32_t expected = 0;
          for (int64_t other = 0; other < count; ++other)
            expected += !causal || other <= r ? keyOf(other, i) : 0;
          int32_t found = ranks[static_cast<size_t>(r)].o[static_cast<size_t>(i)];
          EXPECT(found == expected, "{} of {}, element {}: {}, got {}", r, count, i, expected, found);
        }
      for (size_t r = 0; r < ranks.size(); ++r)
        EXPECT(ranks[r].k == keys[r], "the caller's keys are as they were");
    }

  auto failed = [&](const Status &status) {
    EXPECT(!status);
    fmt::print("{}\n", status.error().str());
  };
  const int64_t numbers[] = {1, 1, 1, 1};
  auto bindAs = [&](int64_t r, int64_t count, std::vector<Table> tables) {
    Rank rank;
    rank.k.resize(2 * rows), rank.tables = std::move(tables);
    return rank.bind(*code, r, count, rows);
  };
  failed(bindAs(0, 4, {{numbers, 3}}));
  failed(bindAs(4, 4, {{numbers, 4}}));
  std::vector<int64_t> many(100000, 1);
  failed(bindAs(0, 100000, {{many.data(), 100000}}));
  Rank strided;
  strided.k.resize(4 * rows), strided.tables = {{numbers, 4}};
  EXPECT(strided.bind(*code, 0, 4, rows).ok());
  const int64_t shape[] = {rows, 2}, strides[] = {4, 1};
  TensorView tensors[] = {{strided.k.data(), Dtype::I32, shape, strides}, {strided.o.data(), Dtype::I32, shape, {}}};
  alignas(16) static char memory[4096];
  failed(code->bind(tensors, memory, strided.values.data(), strided.steps, keepMap, strided.tables.data()));

  std::string json = program.toJson();
  auto refused = [&](const std::string &from, const std::string &to) { refuseProgram(json, from, to); };
  refused("\"exchange\"", "\"send\"");
  refused("\"destination\": 6", "\"destination\": 8");
  refused("\"destination\": 6", "\"destination\": -1");
  refused("\"source\": 5", "\"sources\": 5");
  refused("\"offset\": \"1\"", "\"offset\": \"step + jump\"");
  refused("\"visits[step + 1]\"", "\"visit[step + 1]\"");
  refused("\"visits[step + 1]\"", "\"visits + 1\"");
  refused("\"variable\": \"step\"", "\"variable\": \"rows\"");
  refused("\"value\": 5", "\"value\": 6");
  refused("\"initial\": 3", "\"initial\": 5");
  refused("\"next\": 7", "\"next\": 8");
  refused("\"initial\": 0", "\"initial\": 99999999999");
  refused("\"length\": \"ranks\"", "\"length\": \"visits\"");
  // A carried value of a repeat is not known outside of it; one of other extents is none.
  Program other = program;
  other.steps.insert(other.steps.begin(), {.kind = Program::Step::Kind::Wait, .destination = 5});
  auto inFront = ProgramCode::compile(other);
  EXPECT(!inFront);
  fmt::print("{}\n", inFront.error().str());
  other = program;
  other.buffers[1].extents[0] = 7;
  auto different = ProgramCode::compile(other);
  EXPECT(!different);
  fmt::print("{}\n", different.error().str());
  std::string deep = "{\"kind\": \"when\", \"count\": \"1\", \"steps\": []}";
  for (int i = 0; i < 40; ++i)
    deep = "{\"kind\": \"when\", \"count\": \"1\", \"steps\": [" + deep + "]}";
  refused("\"steps\": [", "\"steps\": [" + deep + ",");
  for (size_t length = 0; length + 2 < json.size(); length += 61)
    EXPECT(!Program::fromJson(std::string_view(json).substr(0, length)), "truncated");
  // Rows that are not there, and operands as destinations, whatever a file says.
  auto badly = [&](auto change) {
    Program bad = program;
    change(bad.steps[1].steps[0]);
    auto made = ProgramCode::compile(bad);
    EXPECT(made.ok(), "{}", made.error().str());
    Rank rank;
    rank.k.resize(2 * rows), rank.tables = {{numbers, 4}};
    failed(rank.bind(*made, 0, 4, rows));
  };
  badly([](Program::Step &exchange) { exchange.sent = 4, exchange.received = 4; });
  badly([](Program::Step &exchange) { exchange.sent = 1, exchange.received = -1; });
  badly([](Program::Step &exchange) { exchange.part = 1, exchange.parts = 2; });
  badly([](Program::Step &exchange) { exchange.part = 3, exchange.parts = 3; });
  badly([](Program::Step &exchange) { exchange.destination = 0, exchange.source = 6; });
  badly([](Program::Step &exchange) { exchange.destination = 5; });
  return 0;
}

static int gather(const std::string &path) {
  Program program = readProgram(path);
  auto code = ProgramCode::compile(program);
  EXPECT(code.ok(), "{}", code.error().str());
  constexpr int64_t most = 5;
  const int64_t shard[] = {5, 0, 2, 1};
  for (int64_t count : {1, 2, 4}) {
    std::vector<Rank> ranks(static_cast<size_t>(count));
    for (int64_t r = 0; r < count; ++r) {
      Rank &rank = ranks[static_cast<size_t>(r)];
      for (int64_t i = 0; i < 2 * most; ++i)
        rank.k.push_back(i < 2 * shard[r] ? keyOf(r, i) : -7);
      rank.tables = {{shard, count}};
      Status bound = rank.bind(*code, r, count, most);
      EXPECT(bound.ok(), "{}", bound.error().str());
    }
    run(ranks, program, [&](const std::string &, const BoundStep &step) {
      auto *own = valueOf<int32_t *>(step, 0), *others = valueOf<int32_t *>(step, 1), *o = valueOf<int32_t *>(step, 2);
      for (int64_t i = 0; i < 2 * most; ++i)
        for (int64_t block = -1; block < count - 1; ++block) {
          int32_t key = block < 0 ? own[i] : others[block * 2 * most + i];
          o[i] += std::max(key, 0); // rows that did not come are -1, as the workspace was
        }
    });
    for (const Rank &rank : ranks)
      for (int64_t i = 0; i < 2 * most; ++i) {
        int32_t expected = 0;
        for (int64_t r = 0; r < count; ++r)
          expected += i < 2 * shard[r] ? keyOf(r, i) : 0;
        EXPECT(rank.o[static_cast<size_t>(i)] == expected, "{} ranks, element {}", count, i);
      }
  }
  return 0;
}

static int chunks(const std::string &path) {
  Program program = readProgram(path);
  auto code = ProgramCode::compile(program);
  EXPECT(code.ok() && !code->hasExchanges(), "{}", code.error().str());
  EXPECT(code->sizes() == (std::vector<std::string>{"multiprocessors", "rank", "ranks", "total", "chunks"}));
  alignas(16) static char workspace[1 << 16];
  for (int64_t total : {0, 3, 10}) {
    std::vector<int32_t> a(static_cast<size_t>(total)), o(a.size(), -1);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<int32_t>(i);
    std::vector<int64_t> values = {132, 0, 1, total, 0};
    code->computeSizes(values.data());
    EXPECT(code->workspaceBytes(values.data()) <= sizeof workspace);
    const int64_t shape[] = {total}, wide[] = {2, total, 4, 64}, strides[] = {1024 * total, 1024, 64, 1};
    alignas(16) static char x[1 << 16];
    TensorView tensors[] = {
        {a.data(), Dtype::I32, shape, {}}, {x, Dtype::BF16, wide, strides}, {o.data(), Dtype::I32, shape, {}}};
    std::vector<BoundStep> steps(40); // of an earlier call
    maps.clear();
    Status bound = code->bind(tensors, workspace, values.data(), steps, keepMap);
    EXPECT(bound.ok(), "{}", bound.error().str());
    EXPECT(static_cast<int64_t>(steps.size()) == 2 * values[4] + 3);
    for (int64_t i = 0; i < 2 * values[4]; ++i) {
      const BoundStep &step = steps[static_cast<size_t>(i)];
      auto *from = valueOf<int32_t *>(step, 0), *to = valueOf<int32_t *>(step, 1);
      int32_t chunk = valueOf<int32_t>(step, 2);
      EXPECT(chunk == i / 2 && step.kernel == i % 2);
      if (step.kernel == 0)
        for (int32_t row = 0; row < 4 && 4 * chunk + row < total; ++row)
          to[row] = 10 * from[4 * chunk + row];
      else
        for (int32_t row = 0; row < valueOf<int32_t>(step, 3); ++row)
          to[4 * chunk + row] = from[row];
    }
    for (size_t i = 0; i < o.size(); ++i)
      EXPECT(o[i] == static_cast<int32_t>(10 * i), "{}: {}", i, o[i]);
    if (total == 0)
      continue;
    // x to y, y to z, and z is last.
    auto *y = valueOf<void *>(steps[steps.size() - 3], 1), *z = valueOf<void *>(steps[steps.size() - 2], 1);
    EXPECT(valueOf<void *>(steps[steps.size() - 3], 0) == x && valueOf<void *>(steps[steps.size() - 2], 0) == y &&
           valueOf<void *>(steps.back(), 0) == z && y != z);
    EXPECT(maps.size() == 3 && maps[0].address == reinterpret_cast<DevicePtr>(x) && maps[0].strides[0] == 1024);
    EXPECT(maps[1].address == reinterpret_cast<DevicePtr>(y) && maps[2].address == reinterpret_cast<DevicePtr>(z));
    EXPECT(maps[1].extents[0] == 64 && maps[1].extents[1] == total && maps[1].extents[2] == 4 &&
           maps[1].extents[3] == 2 && maps[1].strides[0] == 256 && maps[1].strides[1] == 64 &&
           maps[1].strides[2] == 256 * total);
  }
  return 0;
}

int attn::rt::stepTest(const std::string &test, const std::string &argument) {
  return test == "ring"     ? ring(argument)
         : test == "gather" ? gather(argument)
         : test == "chunks" ? chunks(argument)
                            : -1;
}
