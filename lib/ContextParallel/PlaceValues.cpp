// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the values of a rank.
//
#include "RankSteps.h"
#include <map>
#include <numeric>

using namespace attn;

namespace {
/// The actions in which a value has memory of its own. What a message receives is written from its post on, and what it
/// sends does not change until its wait.
struct Lifetime {
  size_t first = SIZE_MAX, last = 0;

  void use(size_t action) { first = std::min(first, action), last = std::max(last, action); }
  bool meets(const Lifetime &other) const { return first <= other.last && other.first <= last; }
};
} // namespace

static std::vector<Lifetime> lifetimesOf(const RankSteps::Steps &steps) {
  std::vector<Lifetime> lifetimes(steps.sizes.size());
  std::map<int64_t, std::vector<int64_t>> moved; // values of an exchange
  for (auto [number, action] : llvm::enumerate(steps.actions)) {
    auto use = [&, number = number](int64_t value) {
      if (value >= 0)
        lifetimes[value].use(number);
    };
    if (const auto *launch = std::get_if<RankSteps::Steps::Launch>(&action)) {
      for (const PlacedTensor &tensor : launch->tensors)
        use(tensor.value);
    } else if (const auto *post = std::get_if<RankSteps::Steps::Post>(&action)) {
      for (const auto &parts : {post->sent, post->received})
        for (const PlacedTensor &part : parts)
          use(part.value), moved[post->number].push_back(part.value);
    } else if (const auto *wait = std::get_if<RankSteps::Steps::Wait>(&action)) {
      llvm::for_each(moved[wait->number], use);
    } else {
      use(std::get<RankSteps::Steps::Clear>(action).tensor.value);
    }
  }
  return lifetimes;
}

void RankSteps::Steps::placeValues() {
  std::vector<Lifetime> lifetimes = lifetimesOf(*this);
  std::vector<size_t> order(sizes.size()), offsets(sizes.size()), placed;
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  values = 0;
  for (size_t value : order) { // the largest first, each as low as it fits
    std::vector<std::pair<size_t, size_t>> taken;
    for (size_t other : placed)
      if (lifetimes[value].meets(lifetimes[other]))
        taken.emplace_back(offsets[other], offsets[other] + sizes[other]);
    llvm::sort(taken);
    size_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + sizes[value] <= begin)
        break;
      offset = std::max(offset, end);
    }
    offsets[value] = offset;
    placed.push_back(value);
    values = std::max(values, offset + sizes[value]);
  }
  auto place = [&](std::vector<PlacedTensor> &tensors) {
    for (PlacedTensor &tensor : tensors)
      if (tensor.value >= 0)
        tensor.offset = offsets[tensor.value];
  };
  for (auto &action : actions) {
    if (auto *launch = std::get_if<Launch>(&action))
      place(launch->tensors);
    else if (auto *post = std::get_if<Post>(&action))
      place(post->sent), place(post->received);
  }
}
