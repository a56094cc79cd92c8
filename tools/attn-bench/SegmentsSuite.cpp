// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SegmentsSuite.h"
#include "Timing.h"
#include <fmt/format.h>
#include <random>

using namespace attn;
using namespace attn::bench;
using Json = nlohmann::ordered_json;
using reference::Tensor;

namespace {

struct Side {
  std::vector<int32_t> ids, positions;
};

/// A row of `tokens`, and the same row's part of a rank where a ring stripes it.
Side makeRow(std::mt19937 &random, int64_t tokens, int segments) {
  std::uniform_int_distribution<int64_t> cut(0, tokens * 97 / 100);
  std::vector<int64_t> ends;
  for (int i = 1; i < segments; ++i)
    ends.push_back(cut(random));
  ends.push_back(tokens * 97 / 100);
  llvm::sort(ends);
  Side row{std::vector<int32_t>(tokens), std::vector<int32_t>(tokens)};
  int64_t begin = 0;
  for (auto [s, end] : llvm::enumerate(ends)) {
    int64_t length = end - begin;
    int64_t padding = length ? std::uniform_int_distribution<int64_t>(0, length / 4)(random) : 0;
    for (int64_t i = 0; i < length; ++i) {
      row.ids[begin + i] = i < length - padding ? s + 1 : 0;
      row.positions[begin + i] = i;
    }
    begin = end;
  }
  return row;
}

Side stripeOf(const Side &row, int64_t rank, int64_t ranks) {
  Side part;
  for (size_t i = rank; i < row.ids.size(); i += ranks) {
    part.ids.push_back(row.ids[i]);
    part.positions.push_back(row.positions[i]);
  }
  return part;
}

Tensor tensorOf(llvm::ArrayRef<int64_t> lead, int64_t tokens, llvm::ArrayRef<int32_t> values) {
  llvm::SmallVector<int64_t> shape(lead);
  shape.push_back(tokens);
  Tensor tensor(reference::Dtype::I32, shape);
  std::memcpy(tensor.bytes().data(), values.data(), values.size() * 4);
  return tensor;
}

struct SegmentsCase {
  std::string name, mask;
  int64_t segments;
  llvm::SmallVector<int64_t> lead, positionLead;
  std::vector<Side> q, kv; ///< rows; no kv: the same
};

/// Ids and positions of a launch.
llvm::StringMap<Tensor> inputsOf(const SegmentsCase &c) {
  llvm::StringMap<Tensor> inputs;
  for (auto [name, rows] : {std::pair("q", &c.q), std::pair("kv", &c.kv)}) {
    if (rows->empty()) // self-attention: in the same memory as those of q
      continue;
    std::vector<int32_t> ids, positions;
    int64_t positionRows = 1;
    for (int64_t extent : c.positionLead)
      positionRows *= extent;
    for (auto [i, row] : llvm::enumerate(*rows)) {
      llvm::append_range(ids, row.ids);
      if (int64_t(i) < positionRows)
        llvm::append_range(positions, row.positions);
    }
    int64_t tokens = rows->front().ids.size();
    inputs[(llvm::Twine("ids_") + name).str()] = tensorOf(c.lead, tokens, ids);
    inputs[(llvm::Twine("positions_") + name).str()] = tensorOf(c.positionLead, tokens, positions);
  }
  return inputs;
}

std::vector<SegmentsCase> allSegmentsCases() {
  std::vector<SegmentsCase> cases;
  for (const char *mask : {"#attn.full", "#attn.causal", "#attn.causal<bottom_right>"})
    for (int64_t batch : {1, 2, 8})
      for (int64_t tokens : {2048, 8192, 16384, 65536, 131072, 1048576})
        for (int64_t segments : {16, 64, 256}) {
          if (tokens == 1048576 && batch > 1)
            continue;
          std::mt19937 random(7);
          auto add = [&](const char *kind, std::vector<Side> q, std::vector<Side> kv) {
            cases.push_back({fmt::format("{} {} B{} T{} S{}", kind, mask + 6, batch, tokens, segments),
                             mask,
                             segments,
                             {batch},
                             {batch},
                             std::move(q),
                             std::move(kv)});
          };
          std::vector<Side> rows, keys, rank1, rank3;
          for (int64_t b = 0; b < batch; ++b) {
            rows.push_back(makeRow(random, tokens, segments));
            keys.push_back(makeRow(random, 2 * tokens, segments));
            rank1.push_back(stripeOf(rows.back(), 1, 4)), rank3.push_back(stripeOf(rows.back(), 3, 4));
          }
          add("self", rows, {});
          add("cross", rows, keys);
          if (llvm::StringRef(mask) == "#attn.causal") {
            add("ring 1-3 of 4", rank1, rank3);
            add("ring 3-1 of 4", rank3, rank1);
          }
        }
  // Leading dimensions that only ids have.
  for (llvm::SmallVector<int64_t> lead : {llvm::SmallVector<int64_t>{8}, llvm::SmallVector<int64_t>{4, 2}})
    for (bool common : {true, false}) {
      std::mt19937 random(7);
      Side row = makeRow(random, 8192, 16);
      std::vector<Side> rows(8, row);
      std::string shape = lead.size() == 1 ? "8" : "4x2";
      cases.push_back({fmt::format("lead {} {} causal T8192 S16", shape, common ? "common positions" : "own positions"),
                       "#attn.causal",
                       16,
                       lead,
                       common ? llvm::SmallVector<int64_t>{} : lead,
                       rows,
                       {}});
    }
  return cases;
}

double percentile(std::vector<double> values, double p) {
  llvm::sort(values);
  return values[size_t(p * (values.size() - 1))];
}

rt::Result<Json> runCase(const SegmentsCase &c, const Target &target) {
  std::string text = fmt::format("attn.segments @rows mask({}) segments({})", c.mask, c.segments);
  Clock compiling;
  auto kernel = Kernel::create(text, "", target);
  if (!kernel)
    return kernel.error();
  double compileMs = compiling.ms();
  auto work = Workload::create(**kernel, inputsOf(c));
  if (!work)
    return work.error();
  auto turns = Turns::create(**work);
  if (!turns)
    return turns.error();
  auto workspace = (*kernel)->workspaceBytes((*work)->getViews());
  if (!workspace)
    return workspace.error();
  std::vector<double> us, wall;
  for (int i = 0; i < 25; ++i) {
    auto ms = turns->msInGraph(**kernel, 20);
    auto call = turns->msOfCall(**kernel);
    if (!ms || !call)
      return !ms ? ms.error() : call.error();
    if (i < 5)
      continue;
    us.push_back(*ms * 1e3), wall.push_back(*call * 1e3);
  }
  return Json{{"peer", "attnc"},
              {"case", c.name},
              {"us", rounded(median(us), 100)},
              {"us_p10", rounded(percentile(us, 0.1), 100)},
              {"us_p90", rounded(percentile(us, 0.9), 100)},
              {"call_us", rounded(median(wall), 100)},
              {"kernels", 1},
              {"workspace_bytes", *workspace},
              {"compile_ms", rounded(compileMs, 100)}};
}

} // namespace

void bench::runSegments(const Target &target, llvm::StringRef filter, llvm::function_ref<void(const Json &)> report) {
  for (const SegmentsCase &c : allSegmentsCases()) {
    if (!llvm::StringRef(c.name).contains(filter))
      continue;
    rt::Result<Json> line = runCase(c, target);
    report(line ? *line : Json{{"peer", "attnc"}, {"case", c.name}, {"error", line.error().str()}});
  }
}
