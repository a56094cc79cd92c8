// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The online softmax of GPU kernels, as the device headers have it, on scores small and large: a lane's rows against
// float64. Tiles are of hidden keys, of small scores, of one large score, or of its neighbours in float32.
//
#include "attn/softmax/overlapped_softmax.cuh"
#include "attn/softmax/softmax.cuh"
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <random>
#include <vector>

using namespace attn;

namespace {
constexpr int keys = 16; // of a tile: each row has half of the fragment's numbers
constexpr double largest = kLargest, ln2 = 0.6931471805599453;
using Scores = Frag<16, keys, 1>;
using Sums = Frag<16, 8, 1>; // column 0 holds the sum of probabilities, as a product with ones makes it

std::mt19937 generator(1);
double pick(std::initializer_list<double> from) { return from.begin()[generator() % from.size()]; }

enum class Way { Step, Softmax, SoftmaxConvert, SoftmaxRecomputesRows, SoftmaxConvertRecomputesRows, Count };
bool recomputesRows(Way way) { return way == Way::SoftmaxRecomputesRows || way == Way::SoftmaxConvertRecomputesRows; }

void rescaleSums(Sums &acc, const SoftmaxState<16, 1> &row) {
  for (int r = 0; r < 2 && row.needs_rescale; ++r)
    acc.v[0][0][2 * r] *= row.rescale_factor[r];
}

void addTile(Way way, bool first, Scores s, SoftmaxState<16, 1> &row, Sums &acc, float scale) {
  if (way == Way::Step) {
    online_softmax(s, row, acc, scale);
  } else if (way == Way::Softmax || way == Way::SoftmaxRecomputesRows || first) {
    recomputesRows(way) ? softmax<true>(s, row, scale) : softmax(s, row, scale);
    rescaleSums(acc, row);
  } else {
    RegisterOperand<int, 16, keys, 1> operand;
    const float before[2] = {row.sum[0], row.sum[1]};
    recomputesRows(way) ? softmax_convert<true>(operand, s, row, scale)
                        : softmax_convert(operand, s, row, scale, 0, 0, Unmodified());
    rescaleSums(acc, row);
    for (int r = 0; r < 2; ++r)
      acc.v[0][0][2 * r] += row.sum[r] - (row.needs_rescale ? before[r] * row.rescale_factor[r] : before[r]);
    return;
  }
  for (auto &piece : s.v[0])
    for (int i = 0; i < 4; ++i)
      acc.v[0][0][i / 2 * 2] += piece[i];
}

float scoreOf(int kind, double large) {
  if (kind == 0 || generator() % 8 == 0)
    return -INFINITY;
  if (kind == 1)
    return int(generator() % 41) - 20;
  double step = std::fabs(large) < 1e9 ? std::nextafter(float(large), 0.f) - large : 0;
  return float(large + (kind == 2 ? 0 : step * int(generator() % 4)));
}

bool isNear(double got, double want, double tolerance) {
  return got == want || std::fabs(got - want) <= tolerance * std::fmax(1, std::fabs(want));
}

/// Is the row's state that of its scores?
bool isRight(const std::vector<float> &scores, const SoftmaxState<16, 1> &row, int r, float sumOfProduct, float scale) {
  double top = -INFINITY, sum = 0;
  for (float score : scores)
    top = std::fmax(top, score);
  if (top == -INFINITY)
    return row.sum[r] == 0 && sumOfProduct == 0;
  for (float score : scores)
    sum += score == -INFINITY ? 0 : std::exp((score - top) * (scale * ln2));
  Reference of = reference_of(row, r);
  double exponent = of.unscaled ? (of.max - top) * scale : of.max - top * scale;
  double lse = std::fmin(largest, std::fmax(-largest, top * (scale * ln2) + std::log(sum)));
  return isNear(row.sum[r] * std::exp2(exponent) / sum, 1, 1e-3) && isNear(sumOfProduct / row.sum[r], 1, 1e-3) &&
         isNear(log_sum_exp(of, row.sum[r], scale), lse, 1e-5);
}

/// Does normalize() leave the row to recompute_rows()?
bool isLeft(Way way, Sums acc, SoftmaxState<16, 1> row, int r) {
  if (!recomputesRows(way))
    return false;
  normalize<true>(acc, row);
  return std::isnan(acc.v[0][0][2 * r]);
}

int testRows() {
  int wrong = 0, left = 0, leftSmall = 0;
  for (int turn = 0; turn < 300000; ++turn) {
    Way way = Way(turn % int(Way::Count));
    float scale = float(pick({1, 1, 0.125, 0.0883883, 3, 0.5}) / ln2);
    if (recomputesRows(way))
      scale = std::fmin(scale, 1); // as lowering asks for it
    double large =
        pick({-1e4, -1e6, -1e7, -3e7, -1e9, -1e13, -1e30, -largest, -3.3895313892515355e38, 3e9, 1e7, 2.5e7});
    SoftmaxState<16, 1> row;
    Sums acc = {};
    clear(row);
    std::vector<float> scores[2];
    for (int tile = 0, count = 1 + generator() % 5; tile < count; ++tile) {
      Scores s;
      int kinds[2] = {int(generator() % 4), int(generator() % 4)};
      for (auto &piece : s.v[0])
        for (int i = 0; i < 4; ++i)
          scores[i / 2].push_back(piece[i] = scoreOf(kinds[i / 2], large));
      addTile(way, tile == 0, s, row, acc, scale);
    }
    for (int r = 0; r < 2; ++r)
      if (isLeft(way, acc, row, r))
        ++left, leftSmall += std::none_of(scores[r].begin(), scores[r].end(), [=](float score) {
                  return std::isfinite(score) && std::fabs(score * scale) >= 0x1p23;
                });
      else if (!isRight(scores[r], row, r, acc.v[0][0][2 * r], scale) && wrong++ < 10)
        printf("wrong: way %d, scale %g, large score %g, row %d: maximum %g, sum %g\n", int(way), scale, large, r,
               row.max[r], row.sum[r]);
  }
  if (leftSmall || !left)
    printf("wrong: of %d rows left to recompute_rows(), %d have only small scores\n", left, leftSmall), ++wrong;
  return wrong;
}

int testSinks() {
  int wrong = 0;
  for (int turn = 0; turn < 100000; ++turn) {
    float scale = float(pick({1, 0.125, 3}) / ln2), room = turn % 2 ? 32 : 0, own;
    float score = float(pick({-1e30, -1e9, -5, 0, 30, 1e9, -largest, -INFINITY, 12}));
    float sink = float(pick({-1e30, -1e9, -4, 0, 40, 1e9, -INFINITY})), sum = score == -INFINITY ? 0 : 1;
    Reference of = reference(score, scale);
    float rescale_factor = join_sink(of, own, sink, scale, room);
    sum = std::fmaf(sum, rescale_factor, own);
    double natural = score * (scale * ln2), top = std::fmax(natural, sink);
    double want = top == -INFINITY ? -INFINITY : top + std::log(std::exp(natural - top) + std::exp(sink - top));
    double got = sum == 0 ? -INFINITY : log_sum_exp(of, sum, scale);
    if (!isNear(got, std::isinf(want) ? want : std::fmax(-largest, want), 1e-5) && wrong++ < 10)
      printf("wrong: score %g, scale %g, sink %g: %g, expected %g\n", score, scale, sink, got, want);
  }
  return wrong;
}
} // namespace

int main() {
  int wrong = testRows() + testSinks();
  printf("%d rows of the online softmax are wrong\n", wrong);
  return wrong != 0;
}
