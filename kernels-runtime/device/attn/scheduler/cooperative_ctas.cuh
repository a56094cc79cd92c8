// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CTAs of a launch that process one sequence cooperatively. The group consists of the CTAs that have started when the
// first CTA stops waiting. CTAs that start later exit, so no CTA waits for one that may not be scheduled yet, and the
// group works for any number of resident CTAs.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// The shared state is one counter of the launch (`attn_queue`), 0 before and after it. Its fields: how many CTAs have
// started and left, the size of the group (0 until it is closed), three votes, how many CTAs wait at the barrier, and
// the parity of the barrier. Grids have at most 127 CTAs.
class CooperativeCtas {
  static constexpr unsigned Started = 1, Left = 1 << 7, Size = 1 << 14, Votes = 1 << 21, Waiting = 1 << 24,
                            Parity = 1u << 31, FieldMask = 127;
  static constexpr int WaitCycles = 20000; // for CTAs to start
  unsigned *word;                          // null: a group of this CTA alone

  ATTN_INLINE static unsigned field(unsigned x, unsigned unit) { return x / unit & FieldMask; }
  ATTN_INLINE unsigned load_word() const { return *(volatile unsigned *)word; }
  ATTN_INLINE static int &rounds() {
    __shared__ int count; // used by thread 0 only
    return count;
  }

public:
  int index = 0, size = 1; // an index below 0: the CTA started after the group was closed

  ATTN_INLINE explicit CooperativeCtas(unsigned *word = nullptr) : word(word) {
    if (!word)
      return;
    __shared__ int own[2];
    if (threadIdx.x == 0) {
      rounds() = 0;
      unsigned now = atomicAdd(word, Started);
      own[0] = field(now, Size) ? -1 : int(field(now, Started));
      if (own[0] == 0) {
        const long long begin = clock64();
        do
          now = load_word();
        while (field(now, Started) < gridDim.x & clock64() - begin < WaitCycles);
        for (unsigned before; (before = atomicCAS(word, now, now + field(now, Started) * Size)) != now; now = before) {
        }
      }
      do
        now = load_word();
      while (!field(now, Size));
      own[1] = field(now, Size);
    }
    __syncthreads();
    index = own[0], size = own[1];
  }

  // A barrier of the group: earlier writes of all CTAs are visible to all of them afterwards. Returns whether `yes` is
  // true in some thread.
  ATTN_INLINE bool any(bool yes) const {
    yes = __syncthreads_or(yes);
    if (!word)
      return yes;
    bool answer = false;
    if (threadIdx.x == 0) {
      const int round = rounds()++;
      const auto vote = [](int round) { return Votes << round % 3; }; // the previous round's bit may still be read
      if (yes)
        atomicOr(word, vote(round));
      if (index == 0)
        atomicAnd(word, ~vote(round + 1));
      __threadfence();
      // All arrivals together add Parity alone.
      atomicAdd(word, index == 0 ? Parity - (size - 1) * Waiting : Waiting);
      unsigned now;
      do
        now = load_word();
      while (now / Parity == (round & 1));
      answer = now & vote(round);
      __threadfence();
    }
    return __syncthreads_or(answer);
  }
  ATTN_INLINE void sync() const {
    if (word)
      any(false);
    else
      __syncthreads();
  }

  // Every CTA of the launch calls this last.
  ATTN_INLINE void leave() const {
    if (word && threadIdx.x == 0 && field(atomicAdd(word, Left), Left) == gridDim.x - 1)
      *word = 0;
  }

  // This CTA's contiguous range of `count` items, of at least `least` items each while there are enough.
  struct Part {
    int begin, end, each;
  };
  ATTN_INLINE Part part(int count, int least = 1) const {
    const int each = max((count + size - 1) / size, least), begin = min((long long)index * each, (long long)count);
    return {begin, min(count - begin, each) + begin, each};
  }
};

// The next sequence from `b` on that is longer than `than`, or `batch` if there is none.
ATTN_INLINE int next_longer(const int *cu_seqlens, int b, int batch, int than) {
  __shared__ int next;
  if (threadIdx.x == 0)
    next = batch;
  __syncthreads();
#pragma unroll 4
  for (int i = b + threadIdx.x; i < batch; i += blockDim.x)
    if (cu_seqlens[i + 1] - cu_seqlens[i] > than)
      atomicMin(&next, i);
  __syncthreads();
  b = next;
  __syncthreads();
  return b;
}
ATTN_INLINE int next_longer(int length, int b, int batch, int than) { return length > than ? b : batch; }

// Runs the body for each sequence that is longer than `than`, with all CTAs of the group, or with one CTA if the launch
// has no counter.
template <class Lengths, class Body>
ATTN_INLINE void cooperative_loop(unsigned *counter, Lengths lengths, int batch, int than, Body body) {
  int b = next_longer(lengths, 0, batch, than);
  if (b >= batch || (!counter && block_index() > 0))
    return;
  const CooperativeCtas ctas(counter);
  if (ctas.index >= 0)
    for (; b < batch; b = next_longer(lengths, b + 1, batch, than))
      body(ctas, b);
  ctas.leave();
}

} // namespace attn
