// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NaiveLoop.h"
#include "Timing.h"
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

using namespace attn::bench;

static void attend(const float *q, const float *k, const float *v, float *o, int64_t seqlen, int64_t dim, bool causal) {
  std::vector<float> p(seqlen);
  float scale = 1 / std::sqrt(float(dim));
  for (int64_t i = 0; i < seqlen; ++i) {
    int64_t keys = causal ? i + 1 : seqlen;
    float top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      float s = 0;
      for (int64_t c = 0; c < dim; ++c)
        s += q[i * dim + c] * k[j * dim + c];
      p[j] = s * scale;
      top = std::max(top, p[j]);
    }
    for (int64_t j = 0; j < keys; ++j)
      sum += p[j] = std::exp(p[j] - top);
    for (int64_t c = 0; c < dim; ++c)
      o[i * dim + c] = 0;
    for (int64_t j = 0; j < keys; ++j) {
      float weight = p[j] / sum;
      for (int64_t c = 0; c < dim; ++c)
        o[i * dim + c] += weight * v[j * dim + c];
    }
  }
}

double attn::bench::timeNaiveLoop(int64_t heads, int64_t seqlen, int64_t dim, bool causal) {
  int64_t size = seqlen * dim;
  std::vector<float> q(heads * size), k(q), v(q), o(q);
  for (size_t i = 0; i < q.size(); ++i)
    q[i] = std::sin(i * 0.7f), k[i] = std::sin(i * 1.3f), v[i] = std::sin(i * 2.1f);
  double best = INFINITY;
  for (int run = 0; run < 3; ++run) {
    Clock clock;
    std::vector<std::thread> threads;
    int64_t count = std::max(1u, std::thread::hardware_concurrency());
    for (int64_t t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        for (int64_t h = t; h < heads; h += count)
          attend(&q[h * size], &k[h * size], &v[h * size], &o[h * size], seqlen, dim, causal);
      });
    for (std::thread &thread : threads)
      thread.join();
    best = std::min(best, clock.ms());
  }
  return best;
}
