// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which shapes go together, what a launch refuses and in which words, and what each
// bit of the status stands for.
//
#include "Programs.h"
#include "llvm/Support/FormatVariadic.h"
#include <fmt/format.h>

using namespace attn;
using namespace attn::segments;
using namespace attn::reference;

static std::string messageOf(const rt::Status &status) { return status.ok() ? "accepted" : status.error().message; }

//===--------------------------------------------------------------------===//
// Leading dimensions
//===--------------------------------------------------------------------===//

/// Tokens of two segments in each row, other lengths in each.
static Tensor makeIds(llvm::ArrayRef<int64_t> shape) {
  Tensor tensor = makeTensor(shape, 0, 0);
  int64_t count = shape.back();
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.data<int32_t>()[i] = int32_t(1 + (i % count > 20 + i / count * 3));
  return tensor;
}
static Tensor makePositions(llvm::ArrayRef<int64_t> shape) {
  Tensor tensor = makeTensor(shape, 0, 0);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.data<int32_t>()[i] = int32_t(i % shape.back());
  return tensor;
}

bool segments::table(Programs &programs) {
  Compiled &program = programs.get({"#attn.causal", 4, true, 16});
  const Shape rows[][4] = {{{2, 128}, {2, 128}, {2, 128}, {2, 128}},
                           {{1, 2, 128}, {2, 128}, {1, 2, 128}, {2, 128}},
                           {{5, 2, 128}, {2, 128}, {5, 2, 256}, {2, 256}},
                           {{3, 5, 2, 128}, {2, 128}, {3, 5, 2, 128}, {5, 2, 128}},
                           {{2, 128}, {128}, {2, 128}, {128}},
                           {{128}, {128}, {64}, {64}},
                           {{0, 128}, {128}, {0, 64}, {0, 64}},
                           {{2, 0}, {2, 0}, {2, 16}, {2, 16}},
                           {{2, 128}, {3, 2, 128}, {2, 128}, {2, 128}},
                           {{5, 2, 128}, {3, 128}, {5, 2, 128}, {2, 128}},
                           {{5, 2, 128}, {2, 64}, {5, 2, 128}, {2, 128}},
                           {{2, 3, 2, 128}, {2, 128}, {3, 2, 2, 128}, {2, 128}},
                           {{5, 2, 128}, {2, 128}, {2, 128}, {2, 128}},
                           {{5, 2, 128}, {1, 128}, {5, 2, 128}, {2, 128}}};
  bool good = true;
  for (const auto &shapes : rows) {
    Tensors inputs, results;
    const char *const names[] = {"ids_q", "positions_q", "ids_kv", "positions_kv"};
    for (auto [name, shape] : llvm::zip(names, shapes)) {
      inputs[name] = llvm::StringRef(name).starts_with("ids") ? makeIds(shape) : makePositions(shape);
      llvm::outs() << name << " " << shapeText(shape) << " ";
    }
    std::string says;
    if (llvm::Expected<Sizes> sizes = sizesOf(program.op, inputs)) {
      std::string failure = check(program, inputs, 1, results);
      good &= failure.empty();
      says = failure.empty() ? "" : "FAILED " + failure;
      for (const char *name : {"seqlens_q", "offsets_kv", "status", "segments_kv", "cu_seqlens_q"})
        says += fmt::format("{}{} {}", says.empty() ? "" : ", ", name, shapeText(results[name].shape()));
    } else { // and the launch says so too, whatever the results are
      std::string expected = llvm::toString(sizes.takeError());
      results = poisonedResults(program.op, sizesOfRows(program.op, {}, 0, 0), 1);
      says = messageOf(runTensors(*program.kernel, inputs, results));
      good &= says != "accepted";
    }
    llvm::outs() << "-> " << says << "\n";
  }
  return good;
}

//===--------------------------------------------------------------------===//
// What a launch refuses
//===--------------------------------------------------------------------===//

/// The program's sizes for tensors, as a launch finds them.
static rt::Result<std::vector<int64_t>> checkTensors(const Kernel &kernel, llvm::ArrayRef<TensorView> views) {
  std::vector<int64_t> sizes(kernel.code().sizes().size());
  rt::Status read = kernel.code().readSizes(views, Given::Memory, sizes.data());
  return read ? rt::Result(sizes) : read.error();
}

namespace {
/// Views of a causal program's tensors for two rows of 16 and 32 tokens; each test spoils one.
struct Views {
  explicit Views(Compiled &program) : kernel(*program.kernel), op(program.op) {
    Sizes sizes = sizesOfRows(program.op, {2}, 16, 32);
    for (const ProblemTensor &spec : tensorsOf(op)) {
      shapes.push_back(spec.shape(FixedSizes::of(op), sizes, 1));
      strides.emplace_back();
      views.push_back({memory, attn::Dtype::I32, {}, {}});
    }
  }
  size_t index(llvm::StringRef name) { return kernel.indexOf(name); }
  TensorView &view(llvm::StringRef name) { return views[index(name)]; }
  Shape &shape(llvm::StringRef name) { return shapes[index(name)]; }
  Shape &stridesOf(llvm::StringRef name) { return strides[index(name)]; }
  std::string check() {
    for (size_t i = 0; i < views.size(); ++i)
      views[i].shape = shapes[i], views[i].strides = strides[i];
    rt::Status status = checkTensors(kernel, views).status();
    return status ? "accepted" : status.error().message;
  }

  const Kernel &kernel;
  SegmentsOp op;
  std::vector<Shape> shapes, strides;
  std::vector<TensorView> views;
  alignas(16) static inline int32_t memory[4096];
};
} // namespace

static void refusals(Compiled &program) {
  auto spoil = [&](llvm::StringRef what, llvm::function_ref<void(Views &)> change) {
    Views views(program);
    change(views);
    llvm::outs() << what << ": " << views.check() << "\n";
  };
  spoil("as they are", [](Views &) {});
  spoil("off by four bytes", [](Views &v) { v.view("ids_q").data = Views::memory + 1; });
  spoil("strides of extents of 1", [](Views &v) {
    for (Shape &shape : v.shapes)
      if (shape.size() > 1)
        shape.insert(shape.begin(), 1);
    v.shape("status") = {1, 2};
    v.stridesOf("ids_q") = {77, 16, 1};
  });
  spoil("none", [](Views &v) { v.views.clear(), v.shapes.clear(), v.strides.clear(); });
  spoil("dtype", [](Views &v) { v.view("ids_kv").dtype = attn::Dtype::F32; });
  spoil("dtype of a result", [](Views &v) { v.view("status").dtype = attn::Dtype::BF16; });
  spoil("null", [](Views &v) { v.view("positions_q").data = nullptr; });
  spoil("odd address", [](Views &v) { v.view("ids_q").data = reinterpret_cast<char *>(Views::memory) + 2; });
  spoil("rows apart", [](Views &v) { v.stridesOf("ids_q") = {32, 1}; });
  spoil("tokens apart", [](Views &v) { v.stridesOf("positions_kv") = {64, 2}; });
  spoil("one position for all", [](Views &v) { v.stridesOf("positions_kv") = {0, 1}; });
  spoil("results apart", [](Views &v) { v.stridesOf("seqlens_q") = {8, 1}; });
  spoil("strides of another rank", [](Views &v) { v.stridesOf("ids_q") = {1}; });
  spoil("no axis", [](Views &v) { v.shape("ids_q") = {}; });
  spoil("negative", [](Views &v) { v.shape("ids_q") = {2, -16}; });
  spoil("negative rows", [](Views &v) { v.shape("ids_q") = {-2, 16}; });
  spoil("positions of another length", [](Views &v) { v.shape("positions_q") = {2, 17}; });
  spoil("positions of more rows", [](Views &v) { v.shape("positions_q") = {1, 2, 16}; });
  spoil("positions of other rows", [](Views &v) { v.shape("positions_q") = {3, 16}; });
  spoil("other rows", [](Views &v) { v.shape("ids_kv") = {3, 32}; });
  spoil("rows of kv in two dimensions", [](Views &v) { v.shape("ids_kv") = {1, 2, 32}; });
  spoil("lengths", [](Views &v) { v.shape("seqlens_q") = {2, 5}; });
  spoil("offsets", [](Views &v) { v.shape("offsets_kv") = {2, 4}; });
  spoil("status", [](Views &v) { v.shape("status") = {2, 1}; });
  spoil("map", [](Views &v) { v.shape("segments_kv") = {2, 16}; });
  spoil("cu_seqlens", [](Views &v) { v.shape("cu_seqlens_q") = {8}; });
  spoil("padded_offsets", [](Views &v) { v.shape("padded_offsets_kv") = {10}; });
  spoil("tiles", [](Views &v) { v.shape("tiles_q") = {11}; });
  spoil("count", [](Views &v) { v.shape("tile_count") = {2}; });
  auto sized = [&](llvm::StringRef what, llvm::ArrayRef<int64_t> lead, int64_t countQ, int64_t countKv) {
    spoil(what, [&](Views &v) {
      Sizes sizes = sizesOfRows(program.op, lead, countQ, countKv);
      for (size_t i = 0; i < v.shapes.size(); ++i)
        v.shapes[i] = tensorsOf(v.op)[i].shape(FixedSizes::of(v.op), sizes, 0);
    });
  };
  sized("as many tokens as there may be", {32768}, 65535, 32);
  sized("too many queries", {32768}, 65536, 32);
  sized("too many keys", {2, 16384}, 32, 65536);
  sized("too many segments", {int64_t(1) << 29}, 0, 0);
  sized("too many rows", {int64_t(1) << 20, int64_t(1) << 20, int64_t(1) << 20, int64_t(1) << 20}, 0, 0);
  sized("too long", {}, (int64_t(1) << 30) + 1, 32);
}

//===--------------------------------------------------------------------===//
// Status
//===--------------------------------------------------------------------===//

static bool statusOf(Compiled &program, const char *what, std::vector<int32_t> ids, std::vector<int32_t> positions,
                     std::vector<int32_t> idsKv, std::vector<int32_t> positionsKv) {
  Tensors inputs, results;
  auto add = [&](const char *name, llvm::ArrayRef<int32_t> values) {
    inputs[name] = makeTensor({int64_t(values.size())}, 0, 0);
    llvm::copy(values, inputs[name].data<int32_t>());
  };
  add("ids_q", ids), add("ids_kv", idsKv);
  add("positions_q", positions), add("positions_kv", positionsKv);
  std::string failure = check(program, inputs, 1, results);
  llvm::outs() << what << ": " << failure;
  for (const char *name : {"status", "seqlens_q", "seqlens_kv", "cu_seqlens_q", "padded_offsets_q"}) {
    llvm::outs() << " " << name;
    for (int64_t i = 0; i < results[name].numElements(); ++i)
      llvm::outs() << " " << results[name].data<int32_t>()[i];
  }
  llvm::outs() << "\n";
  return failure.empty();
}

/// A problem that is given ids: which tensors a launch refuses.
static void refusalsByIds(const Target &target) {
  const char *text = "attn.problem @by_ids mask(#attn.causal) layout(thd padded) heads(2, 1) dims(16) dtype(bf16) "
                     "outputs(o) segments(4)";
  auto kernel = Kernel::create(text, "", target);
  if (!kernel) {
    llvm::outs() << kernel.error().str() << "\n";
    return;
  }
  Compilation compilation;
  auto module = compilation.parse(text, "problem");
  Computation problem = *findComputation(**module, "");
  auto spoil = [&](llvm::StringRef what, std::initializer_list<std::pair<llvm::StringRef, Shape>> changes) {
    Sizes sizes{-1, -1, -1};
    std::vector<ProblemTensor> specs = tensorsOf(problem);
    for (auto [name, rows] : {std::pair("ids_q", 16), std::pair("ids_kv", 32)})
      llvm::find_if(specs, [name = name](auto &spec) {
        return spec.name == name;
      })->inferSizes({2, rows}, FixedSizes::of(problem), sizes);
    llvm::SmallVector<Shape> shapes(specs.size());
    llvm::SmallVector<TensorView> views;
    for (auto [i, spec] : llvm::enumerate(specs)) {
      shapes[i] = spec.shape(FixedSizes::of(problem), sizes, 1);
      for (auto &[name, shape] : changes)
        shapes[i] = spec.name == name ? shape : shapes[i];
      views.push_back({Views::memory, (*kernel)->getTensors()[i].dtype, shapes[i], {}});
    }
    auto checked = checkTensors(**kernel, views);
    int64_t batch = checked ? (*kernel)->code().valueOf("batch", checked->data()) : 0;
    llvm::outs() << "by ids, " << what << ": "
                 << (checked ? llvm::formatv("accepted, {0} sequences", batch).str() : checked.error().message) << "\n";
  };
  spoil("as they are", {});
  spoil("queries", {{"q", {31, 2, 16}}, {"o", {31, 2, 16}}});
  spoil("keys", {{"k", {65, 1, 16}}, {"v", {65, 1, 16}}});
  spoil("values", {{"v", {32, 1, 16}}});
  spoil("ids of other rows", {{"ids_kv", {3, 32}}});
  spoil("positions", {{"positions_kv", {2, 2, 32}}});
  spoil("status", {{"status", {3}}});
}

bool segments::badInputs(Programs &programs, const Target &target) {
  refusalsByIds(target);
  Compiled &causal = programs.get({"#attn.causal", 4, true, 16});
  Compiled &bottomRight = programs.get({"#attn.causal<bottom_right>", 4, true});
  refusals(causal);
  constexpr int32_t far = 1 << 29;
  bool good = true;
  auto self = [&](Compiled &program, const char *what, std::vector<int32_t> ids, std::vector<int32_t> positions) {
    good &= statusOf(program, what, ids, positions, ids, positions);
  };
  self(causal, "well", {1, 1, 2, 2, 2, 0}, {0, 1, 0, 1, 2, 0});
  self(causal, "id above", {1, 1, 5, 2, 2, 0}, {0, 1, 0, 1, 2, 0});
  self(causal, "id below", {1, 1, -1, 2, 2, 0}, {0, 1, 0, 1, 2, 0});
  self(causal, "split", {1, 1, 0, 1, 2, 2}, {0, 1, 2, 3, 0, 1});
  self(causal, "more runs than segments", {1, 3, 1, 3, 1, 3, 1, 3, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3, 0, 1});
  self(causal, "order", {1, 1, 1, 2, 2, 2}, {0, 2, 1, 0, 1, 2});
  self(causal, "far", {1, 1, 1, 2, 2, 2}, {0, 1, far + 1, 0, 1, 2});
  self(causal, "far below", {1, 1, 1, 2, 2, 2}, {-far - 1, -1, 0, 0, 1, 2});
  self(causal, "as far as can be", {1, 1, 2, 2}, {-far, 1 - far, far - 1, far});
  self(causal, "padding is far", {1, 1, 0, 2, 2, 0}, {0, 1, far + 1, 0, 1, INT32_MIN});
  self(causal, "all at once", {1, 2, 1, 9, 3, 3, 4}, {0, 0, 1, 0, 1, 0, INT32_MAX});
  self(bottomRight, "two runs, aligned at their ends", {1, 1, 0, 1, 2, 2}, {0, 1, 2, 3, 0, 1});
  good &= statusOf(causal, "dual chunk", {1, 1, 1, 1}, {0, 1, 6, 7}, {1, 1, 1, 1}, {2, 3, 4, 5});
  good &= statusOf(bottomRight, "two runs of keys only", {1, 1, 2}, {0, 1, 0}, {1, 2, 1}, {0, 0, 1});
  good &= statusOf(bottomRight, "two runs, and no keys", {1, 2, 1}, {0, 0, 1}, {2, 2, 0}, {0, 1, 0});
  return good;
}
