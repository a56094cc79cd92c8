// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Programs.h"
#include <atomic>
#include <fmt/format.h>
#include <thread>

using namespace attn;
using namespace attn::segments;
using namespace attn::reference;

std::string Choice::text() const {
  return fmt::format("attn.segments @rows mask({}) segments({}){}{}", mask, segments, maps ? " maps" : "",
                     tiles ? fmt::format(" tiles({})", tiles) : "");
}

void Programs::compile(llvm::ArrayRef<Choice> choices) {
  for (const Choice &choice : choices) {
    Compiled &program = programs[choice.text()];
    if (!program.text.empty())
      continue;
    program.text = choice.text();
    auto module = compilation.parse(program.text, "segments");
    if (!module) {
      llvm::errs() << module.error().str() << "\n";
      std::exit(1);
    }
    program.module = std::move(*module);
    program.op = *(*program.module).getOps<SegmentsOp>().begin();
  }
  std::vector<Compiled *> missing;
  for (auto &entry : programs)
    if (!entry.second.kernel)
      missing.push_back(&entry.second);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < missing.size(); i = next++) {
      auto kernel = Kernel::create(missing[i]->text, "", target);
      if (!kernel) {
        llvm::errs() << missing[i]->text << ": " << kernel.error().str() << "\n";
        std::exit(1);
      }
      missing[i]->kernel = *kernel;
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), missing.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
}

Compiled &Programs::get(const Choice &choice) {
  compile(choice);
  return programs[choice.text()];
}

Tensor segments::makeTensor(llvm::ArrayRef<int64_t> shape, int64_t before, int64_t behind) {
  Tensor tensor(reference::Dtype::I32, shape);
  tensor.addSlack(behind, before);
  auto *words = reinterpret_cast<int32_t *>(tensor.bytes().data());
  std::fill_n(words, tensor.bytes().size() / 4, poison);
  return tensor;
}

Sizes segments::sizesOfRows(SegmentsOp op, llvm::ArrayRef<int64_t> lead, int64_t tokensQ, int64_t tokensKv) {
  Sizes sizes{-1, -1, -1};
  for (const ProblemTensor &spec : tensorsOf(op))
    if (spec.name == "ids_q" || spec.name == "ids_kv") {
      Shape shape(lead);
      shape.push_back(spec.name == "ids_q" ? tokensQ : tokensKv);
      spec.inferSizes(shape, FixedSizes::of(op), sizes);
    }
  return sizes;
}

Tensors segments::poisonedResults(SegmentsOp op, const Sizes &sizes, uint64_t seed) {
  Tensors results;
  for (const ProblemTensor &spec : tensorsOf(op))
    if (spec.role == ProblemTensor::Result)
      results[spec.name] = makeTensor(spec.shape(FixedSizes::of(op), sizes), (seed = seed * 5 + 1) / 4 % 4, 4);
  return results;
}

std::string segments::differenceOf(const Tensors &expected, const Tensors &actual) {
  for (const auto &entry : expected) {
    const Tensor &want = entry.second, &got = actual.find(entry.first())->second;
    for (int64_t i = 0; i < want.numElements(); ++i)
      if (int32_t w = want.data<int32_t>()[i], g = got.data<int32_t>()[i]; w != g)
        return fmt::format("{}{}: expected {} at {}, got: {}", entry.first().str(), shapeText(want.shape()), w, i,
                           g == poison ? "nothing written" : std::to_string(g));
    int64_t first = got.firstByte() / 4, all = int64_t(got.bytes().size()) / 4;
    for (int64_t i = 0; i < all; ++i)
      if (int64_t at = i - first; (at < 0 || at >= got.numElements()) && got.data<int32_t>()[at] != poison)
        return fmt::format("{}{}: element {} is beyond it and was written", entry.first().str(),
                           shapeText(want.shape()), at);
  }
  return "";
}

std::string segments::check(Compiled &program, const Tensors &inputs, uint64_t seed, Tensors &results) {
  llvm::Expected<Sizes> sizes = sizesOf(program.op, inputs);
  if (!sizes)
    return llvm::toString(sizes.takeError());
  Tensors expected = llvm::cantFail(interpret(program.op, inputs, sizes->batch ? poison : 0));
  results = poisonedResults(program.op, *sizes, seed);
  Tensors given = inputs; // with the same arrays on both sides, they may lie in the same memory
  auto same = [&](const char *a, const char *b) {
    auto x = inputs.find(a), y = inputs.find(b);
    return x == inputs.end() ||
           (x->second.shape() == y->second.shape() &&
            std::equal(x->second.data<int32_t>(), x->second.data<int32_t>() + x->second.numElements(),
                       y->second.data<int32_t>()));
  };
  if (seed % 2 && same("ids_q", "ids_kv") && same("positions_q", "positions_kv"))
    given.erase("ids_kv"), given.erase("positions_kv");
  if (rt::Status ran = runTensors(*program.kernel, given, results); !ran)
    return ran.error().str();
  return differenceOf(expected, results);
}
