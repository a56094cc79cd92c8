// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cases with known answers: rows, packed batches, one row of positions for several.
//
#include "Programs.h"
#include "llvm/Support/MemoryBuffer.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace attn;
using namespace attn::segments;
using namespace attn::reference;
using Json = nlohmann::json;

static void shapeOf(const Json &json, Shape &shape) {
  if (!json.is_array())
    return;
  shape.push_back(int64_t(json.size()));
  if (!json.empty())
    shapeOf(json[0], shape);
}

static void copy(const Json &json, int32_t *&to) {
  if (!json.is_array())
    *to++ = json.get<int32_t>();
  else
    for (const Json &part : json)
      copy(part, to);
}

static Tensor tensorOf(const Json &json) {
  Shape shape;
  shapeOf(json, shape);
  Tensor tensor(reference::Dtype::I32, shape);
  int32_t *to = tensor.data<int32_t>();
  copy(json, to);
  return tensor;
}

namespace {
struct Case {
  const Json &json;
  Compiled &program;
  std::string failure;

  void expect(const std::string &what, const Json &expected, const Json &got) {
    if (failure.empty() && expected != got)
      failure = fmt::format("{}: expected {}, got: {}", what, expected.dump(), got.dump());
  }

  /// The first entries of each row are as expected; the others, of segments that the
  /// case does not have, are `rest`. (Kernels are for more segments than the cases.)
  void expectRows(const std::string &name, const Json &rows, const Tensor &got, int32_t rest) {
    Tensor expected = tensorOf(rows);
    int64_t columns = expected.shape().back(), all = got.shape().back();
    for (int64_t i = 0; i < got.numElements(); ++i) {
      int64_t row = i / all, column = i % all;
      expect(fmt::format("{} at {}", name, i),
             column < columns ? expected.data<int32_t>()[row * columns + column] : rest, got.data<int32_t>()[i]);
    }
  }

  std::string run() {
    Tensors inputs, results;
    for (const char *name : {"ids_q", "ids_kv", "positions_q", "positions_kv"}) {
      std::string source = json.contains(name) ? name : llvm::StringRef(name).split('_').first.str(); // of both sides
      if (llvm::StringRef(name).starts_with("ids") || program.op.getRule().hasPositions())
        inputs[name] = tensorOf(json.at(source));
    }
    failure = check(program, inputs, 1, results);
    if (!failure.empty())
      return failure;
    for (const char *side : {"_q", "_kv"}) {
      auto rows = [&](const std::string &name, int32_t rest) {
        if (json.contains(name + side) || json.contains(name))
          expectRows(name + side, json.contains(name + side) ? json.at(name + side) : json.at(name),
                     results[name + side], rest);
      };
      rows("seqlens", 0);
      rows("offsets", -1);
      if (json.contains("cu_seqlens"))
        for (const char *name : {"cu_seqlens", "padded_offsets"})
          for (int64_t i = 0; i < results[std::string(name) + side].numElements(); ++i)
            expect(name, json.at(name)[i], results[std::string(name) + side].data<int32_t>()[i]);
    }
    if (json.contains("status"))
      expect("status", json.at("status"), results["status"].data<int32_t>()[0]);
    if (json.contains("pairs")) {
      int64_t visible = 0, visited = 0;
      visiblePairs(program.op, inputs, llvm::cantFail(sizesOf(program.op, inputs)), [&](auto...) { ++visible; });
      sequencePairs(program.op, results, [&](auto...) { ++visited; });
      expect("visible pairs", json.at("pairs"), visible);
      if (json.at("status") == 0)
        expect("pairs of sequences", json.at("pairs"), visited);
    }
    return failure;
  }
};
} // namespace

bool segments::golden(Programs &programs, const std::string &file) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  Json cases = buffer ? Json::parse((*buffer)->getBuffer().str(), nullptr, false) : Json();
  if (!cases.is_array()) {
    llvm::errs() << "error: cannot read cases from `" << file << "`\n";
    return false;
  }
  static const Choice choices[] = {{"#attn.full", 4, true},
                                   {"#attn.causal", 4, true, 16},
                                   {"#attn.causal", 5},
                                   {"#attn.causal<bottom_right>", 4, true},
                                   {"#attn.band<left = 1, right = 0>", 4, false, 16},
                                   {"#attn.band<left = 1, right = 1>", 4, false, 16},
                                   {"#attn.band<left = 2, right = 0>", 4, false, 16},
                                   {"#attn.band<left = 2, right = 0, bottom_right>", 4, true, 16}};
  programs.compile(choices);
  int64_t failures = 0;
  for (const Json &json : cases) {
    std::string mask = json.at("mask"), failure = "no program for its mask";
    int segments = json.at("segments");
    for (const Choice &choice : choices)
      if (mask == choice.mask && choice.segments >= segments && (segments < 5) == (choice.segments < 5)) {
        failure = Case{json, programs.get(choice), {}}.run();
        break;
      }
    failures += !failure.empty();
    llvm::outs() << json.at("name").get<std::string>() << ": " << (failure.empty() ? "ok" : failure) << "\n";
  }
  llvm::outs() << cases.size() << " golden cases, " << failures << " failures\n";
  return failures == 0 && !cases.empty();
}
