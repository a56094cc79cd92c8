// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/ProgramInputs.h"
#include "attn/Reference/Computations.h"
#include <numeric>

using namespace attn;
using namespace attn::reference;
using llvm::StringRef, llvm::Twine;

static llvm::Error inputError(const Twine &what) { return llvm::createStringError(what); }

Dtype reference::dtypeOf(rt::Dtype dtype) {
  switch (dtype) {
  case rt::Dtype::BF16:
    return Dtype::BF16;
  case rt::Dtype::F16:
    return Dtype::F16;
  case rt::Dtype::F32:
    return Dtype::F32;
  case rt::Dtype::I32:
    return Dtype::I32;
  }
  llvm_unreachable("covered");
}

namespace {
/// Fills in what a request leaves open.
class ProgramFiller {
public:
  ProgramFiller(const rt::ProgramCode &code, InputRequest request, std::optional<Windows> windows)
      : code(code), request(std::move(request)), windows(windows), values(code.makeSizes()), known(values.size()) {}

  llvm::Expected<ProgramTensors> run() {
    if (llvm::Error bad = readLengths())
      return bad;
    if (llvm::Error bad = readShapes())
      return bad;
    if (llvm::Error bad = decideSizes())
      return bad;
    code.computeSizes(values.data());
    // Offsets of compressed sequences are made of offsets of sequences.
    for (bool ofCompressed : {false, true})
      for (auto [i, spec] : llvm::enumerate(code.program().tensors))
        if (isCompressed(spec.name) == ofCompressed)
          if (llvm::Error bad = add(spec, i))
            return bad;
    if (llvm::Error bad = checkOptions())
      return bad;
    return std::move(tensors);
  }

private:
  using Spec = rt::Program::Tensor;
  static bool isCompressed(StringRef name) { return name.starts_with("cu_seqlens_compressed"); }
  static bool isOffsets(const Spec &spec) {
    return spec.dtype == rt::Dtype::I32 && spec.extents.size() == 1 && StringRef(spec.name).starts_with("cu_seqlens");
  }
  llvm::Error refuse(StringRef key, const Twine &expected) const {
    return inputError("expected " + expected + ", got: " + request.spell(key));
  }

  /// Lengths of sequences: from a given array, or of the request, or usual ones.
  llvm::Error readLengths() {
    isPacked = llvm::any_of(code.program().tensors, isOffsets) ||
               llvm::any_of(code.sizes(), [](StringRef size) { return size.starts_with("total_"); });
    if (!isPacked)
      return llvm::Error::success();
    for (const Spec &spec : code.program().tensors) {
      auto given = request.tensors.find(spec.name);
      if (!isOffsets(spec) || isCompressed(spec.name) || given == request.tensors.end())
        continue;
      if (!request.lengthsQ.empty())
        return refuse("lengths_q", "lengths of sequences from `" + Twine(spec.name) + "` alone");
      for (int64_t b = 0; b + 1 < given->second.numElements(); ++b)
        lengths.push_back(int64_t(given->second.load(b + 1) - given->second.load(b)));
      return llvm::Error::success();
    }
    lengths = request.lengthsQ;
    usesLengths = !lengths.empty();
    constexpr int64_t usual[] = {100, 0, 37, 219}; // an empty one, too
    for (int64_t b = 0, count = request.batch.value_or(4); !usesLengths && b < count; ++b)
      lengths.push_back(usual[b % 4]);
    if (usesLengths && request.batch && *request.batch != int64_t(lengths.size()))
      return refuse("batch", request.spell("batch", std::to_string(lengths.size())) + ", as many as " +
                                 request.spell("lengths_q"));
    usesBatch = request.batch.has_value();
    return llvm::Error::success();
  }

  /// Sizes that shapes of given tensors make known.
  llvm::Error readShapes() {
    for (const Spec &spec : code.program().tensors) {
      auto given = request.tensors.find(spec.name);
      if (spec.isResult() || given == request.tensors.end())
        continue;
      llvm::ArrayRef<int64_t> shape = given->second.shape();
      if (shape.size() != spec.extents.size())
        return inputError("expected " + Twine(spec.extents.size()) + " axes for `" + spec.name +
                          "`, got: " + shapeText(shape));
      for (auto [extent, size] : llvm::zip_equal(spec.extents, shape))
        if (std::optional<size_t> place = placeOf(extent.definedSize()); place && !known[*place])
          set(*place, extent.op() == rt::Extent::Op::Add ? size - 1 : size);
    }
    return llvm::Error::success();
  }

  /// The place of a size that callers give.
  std::optional<size_t> placeOf(const std::string &name) const {
    auto found = llvm::find(code.sizes(), name);
    size_t place = found - code.sizes().begin();
    return place < rt::ProgramCode::machineSizes || place >= code.given() ? std::nullopt : std::optional(place);
  }
  void set(size_t place, int64_t value) { values[place] = value, known[place] = true; }

  /// Sizes that are still open, by their names; Link.cpp appends `_of_` and a tensor to a name that is there already.
  llvm::Error decideSizes() {
    for (size_t place = rt::ProgramCode::machineSizes; place < code.given(); ++place) {
      StringRef kind = StringRef(code.sizes()[place]).split("_of_").first;
      if (known[place])
        continue;
      if (kind == "batch" && isPacked)
        set(place, lengths.size());
      else if (kind == "batch")
        set(place, request.batch.value_or(2)), usesBatch = true;
      else if (kind == "total_q" || kind == "total_kv")
        set(place, std::accumulate(lengths.begin(), lengths.end(), int64_t(0)));
      else if (kind == "seqlen_q")
        set(place, request.seqlenQ.value_or(256)), usesSeqlenQ = true;
      else if (kind == "seqlen_kv")
        set(place, request.seqlenKv.value_or(request.seqlenQ.value_or(256))), usesSeqlenKv = usesSeqlenQ = true;
      else
        return needed(code.sizes()[place]);
    }
    return llvm::Error::success();
  }

  /// Nothing but a tensor's file says how large a size is.
  llvm::Error needed(const std::string &size) const {
    for (const Spec &spec : code.program().tensors)
      for (const rt::Extent &extent : spec.extents)
        if (!spec.isResult() && extent.definedSize() == size)
          return needed(spec);
    return inputError("expected inputs that say how large `" + size + "` is, got: none");
  }
  llvm::Error needed(const Spec &spec) const {
    return inputError("expected " + request.spell("arg", spec.name + "=FILE") + ", which cannot be made up, got: none");
  }

  llvm::Error add(const Spec &spec, size_t number) {
    std::vector<int64_t> shape = code.shapeOf(int(number), values.data());
    int64_t elements = 1;
    for (int64_t extent : shape)
      if (extent < 0 || (extent && elements > (int64_t(1) << 31) / extent))
        return inputError("expected at most 2^31 values for `" + spec.name + "`, got shape: " + shapeText(shape));
      else
        elements *= extent;
    if (spec.isResult()) {
      Tensor result(dtypeOf(spec.dtype), shape);
      llvm::fill(result.bytes(), char(0xff));
      tensors.results[spec.name] = std::move(result);
      return llvm::Error::success();
    }
    if (auto given = request.tensors.find(spec.name); given != request.tensors.end()) {
      if (given->second.shape() != llvm::ArrayRef(shape))
        return inputError("expected shape " + shapeText(shape) + " for `" + spec.name +
                          "`, got: " + shapeText(given->second.shape()));
      tensors.inputs[spec.name] = std::move(given->second);
      return llvm::Error::success();
    }
    madeSome = true;
    Tensor tensor(dtypeOf(spec.dtype), shape);
    if (spec.dtype != rt::Dtype::I32) {
      tensor.fillNormal(request.seed.value_or(1) * 1000003 + number);
    } else if (isCompressed(spec.name)) {
      auto whole = tensors.inputs.find("cu_seqlens");
      if (!windows || whole == tensors.inputs.end())
        return needed(spec);
      tensor = compressedOffsets(whole->second, windows->length, windows->stride);
    } else if (isOffsets(spec) && tensor.numElements() == int64_t(lengths.size()) + 1) {
      for (auto [b, length] : llvm::enumerate(lengths))
        tensor.store(int64_t(b) + 1, tensor.load(int64_t(b)) + double(length));
    } else {
      return needed(spec);
    }
    tensors.inputs[spec.name] = std::move(tensor);
    return llvm::Error::success();
  }

  /// An option that decides nothing is a mistake.
  llvm::Error checkOptions() const {
    for (auto [key, given, used] : {std::tuple("batch", request.batch.has_value(), usesBatch),
                                    {"seqlen_q", request.seqlenQ.has_value(), usesSeqlenQ},
                                    {"seqlen_kv", request.seqlenKv.has_value(), usesSeqlenKv},
                                    {"lengths_q", !request.lengthsQ.empty(), usesLengths},
                                    {"lengths_kv", !request.lengthsKv.empty(), false},
                                    {"padding", request.padding.has_value(), false},
                                    {"seed", request.seed.has_value(), madeSome}})
      if (given && !used)
        return refuse(key, "options that decide something about tensors without files");
    return llvm::Error::success();
  }

  const rt::ProgramCode &code;
  InputRequest request;
  std::optional<Windows> windows;
  std::vector<int64_t> values; ///< of sizes
  std::vector<bool> known;
  std::vector<int64_t> lengths;
  bool isPacked = false, madeSome = false;
  bool usesBatch = false, usesLengths = false, usesSeqlenQ = false, usesSeqlenKv = false;
  ProgramTensors tensors;
};
} // namespace

llvm::Expected<ProgramTensors> reference::tensorsOf(const rt::Program &signature, InputRequest request,
                                                    std::optional<Windows> windows) {
  rt::Result<rt::ProgramCode> code = rt::ProgramCode::compile(signature);
  if (!code)
    return inputError(code.error().message);
  return ProgramFiller(*code, std::move(request), windows).run();
}
