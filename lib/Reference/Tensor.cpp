// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

using namespace attn::reference;

llvm::StringRef attn::reference::toString(Dtype dtype) {
  const char *names[] = {"bf16", "f16", "f32", "f64", "i32"};
  return names[int(dtype)];
}

int64_t attn::reference::sizeOf(Dtype dtype) {
  const int64_t sizes[] = {2, 2, 4, 8, 4};
  return sizes[int(dtype)];
}

std::string attn::reference::shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(shape, os);
  os << "]";
  return text;
}

//===--------------------------------------------------------------------===//
// Rounding
//===--------------------------------------------------------------------===//

uint16_t attn::reference::toBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return bits >> 16 | 0x40; // rounding could carry into the sign
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

uint16_t attn::reference::toF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  uint16_t sign = bits >> 16 & 0x8000;
  if (std::isnan(value))
    return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);
  if (std::fabs(value) >= 0x1p16f)
    return sign | 0x7c00;
  if (std::fabs(value) < 0x1p-14f) // subnormal: a multiple of 2^-24
    return sign | uint16_t(std::nearbyint(std::fabs(value) * 0x1p24f));
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | (rounded - (uint32_t(127 - 15) << 23)) >> 13; // 65520 and above carry into infinity
}

float attn::reference::fromBF16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

float attn::reference::fromF16(uint16_t bits) {
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13, infinite = 0x7c00u << 13;
  uint32_t value = magnitude >= infinite ? 0x7f800000 | (magnitude - infinite)
                                         : std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(value | uint32_t(bits & 0x8000) << 16);
}

float attn::reference::toOddFloat(double value) {
  float nearest = float(value);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::isnan(value) || double(nearest) == value || (bits & 1))
    return nearest;
  return std::bit_cast<float>(std::fabs(double(nearest)) > std::fabs(value) ? bits - 1 : bits + 1);
}

//===--------------------------------------------------------------------===//
// Tensor
//===--------------------------------------------------------------------===//

Tensor::Tensor(Dtype dtype, llvm::ArrayRef<int64_t> shape) : type(dtype), extents(shape), steps(shape.size(), 1) {
  for (size_t i = shape.size(); i-- > 1;)
    steps[i - 1] = steps[i] * shape[i];
  storage.resize(numElements() * sizeOf(dtype));
}

Tensor::Tensor(Dtype dtype, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides)
    : type(dtype), extents(shape), steps(strides) {
  assert(shape.size() == strides.size() && "one stride per axis");
  int64_t last = 0;
  for (auto [extent, step] : llvm::zip(shape, strides))
    last += (extent - 1) * step;
  storage.resize(numElements() ? (last + 1) * sizeOf(dtype) : 0);
}

int64_t Tensor::numElements() const {
  int64_t n = 1;
  for (int64_t extent : extents)
    n *= extent;
  return n;
}

bool Tensor::isContiguous() const {
  if (llvm::is_contained(extents, 0))
    return true; // no stride is ever taken
  int64_t step = 1;
  for (size_t i = extents.size(); i-- > 0; step *= extents[i])
    if (extents[i] > 1 && steps[i] != step)
      return false;
  return true;
}

int64_t Tensor::offset(llvm::ArrayRef<int64_t> index) const {
  int64_t result = 0;
  for (auto [i, step] : llvm::zip(index, steps))
    result += i * step;
  return result;
}

void Tensor::load(int64_t offset, int64_t step, llvm::MutableArrayRef<double> values) const {
  auto loadAll = [&](const auto *elements, auto toDouble) {
    elements += offset;
    if (step == 1) // several at a time
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = toDouble(elements[i]);
    else
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = toDouble(elements[int64_t(i) * step]);
  };
  auto same = [](double value) { return value; };
  switch (type) {
  case Dtype::BF16:
    return loadAll(data<uint16_t>(), [](uint16_t bits) { return fromBF16(bits); });
  case Dtype::F16:
    return loadAll(data<uint16_t>(), [](uint16_t bits) { return fromF16(bits); });
  case Dtype::F32:
    return loadAll(data<float>(), same);
  case Dtype::F64:
    return loadAll(data<double>(), same);
  case Dtype::I32:
    return loadAll(data<int32_t>(), same);
  }
}

void Tensor::store(int64_t offset, double value) {
  switch (type) {
  case Dtype::BF16:
    data<uint16_t>()[offset] = toBF16(toOddFloat(value));
    return;
  case Dtype::F16:
    data<uint16_t>()[offset] = toF16(toOddFloat(value));
    return;
  case Dtype::F32:
    data<float>()[offset] = float(value);
    return;
  case Dtype::F64:
    data<double>()[offset] = value;
    return;
  case Dtype::I32:
    data<int32_t>()[offset] = int32_t(value);
    return;
  }
}

Tensor Tensor::to(Dtype dtype) const {
  Tensor result(dtype, extents);
  if (dtype == type && isContiguous()) {
    std::copy_n(storage.begin() + start, result.storage.size(), result.storage.begin());
    return result;
  }
  int64_t next = 0;
  forEachOffset([&](int64_t offset) { result.store(next++, load(offset)); });
  return result;
}

void Tensor::fill(double value) {
  forEachOffset([&](int64_t offset) { store(offset, value); });
}

/// splitmix64: a bijection of 64 bits that looks random.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

void Tensor::fillNormal(uint64_t seed) {
  const uint64_t key = mix(seed);
  auto uniform = [&](uint64_t counter) { return double((mix(key + counter) >> 11) + 1) * 0x1p-53; }; // (0, 1]
  int64_t next = 0;
  double radius = 0, angle = 0;
  forEachOffset([&](int64_t offset) { // Box-Muller: two uniform numbers make two normal ones
    int64_t i = next++;
    if (i % 2 == 0) {
      radius = std::sqrt(-2 * std::log(uniform(i)));
      angle = 2 * std::numbers::pi * uniform(i + 1);
    }
    store(offset, radius * (i % 2 ? std::sin(angle) : std::cos(angle)));
  });
}
