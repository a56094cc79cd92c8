// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a launch that work together. The team is who has begun when the first of them stops waiting: later ones
// have nothing to do, so nobody waits for a block that may not run yet, and it does not matter how many fit the
// machine.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

// A counter of the launch (`attn_queue`) that is 0 before and after it has all that a team shares: how many blocks have
// come and left, how many it is of (not 0: closed), votes, how many wait, and whose turn it is. Grids have at most 127
// blocks.
class Team {
  static constexpr unsigned Come = 1, Left = 1 << 7, Size = 1 << 14, Yes = 1 << 21, Wait = 1 << 24, Turn = 1u << 31,
                            Most = 127;
  static constexpr int Patience = 20000; // cycles
  unsigned *word;                        // null: a block on its own

  ATTN_INLINE static unsigned field(unsigned x, unsigned unit) { return x / unit & Most; }
  ATTN_INLINE unsigned look() const { return *(volatile unsigned *)word; }
  ATTN_INLINE static int &turns() {
    __shared__ int past; // thread 0's
    return past;
  }

public:
  int index = 0, size = 1; // less than 0: it came too late

  ATTN_INLINE explicit Team(unsigned *word = nullptr) : word(word) {
    if (!word)
      return;
    __shared__ int own[2];
    if (threadIdx.x == 0) {
      turns() = 0;
      unsigned now = atomicAdd(word, Come);
      own[0] = field(now, Size) ? -1 : int(field(now, Come));
      if (own[0] == 0) {
        const long long begin = clock64();
        do
          now = look();
        while (field(now, Come) < gridDim.x & clock64() - begin < Patience);
        for (unsigned before; (before = atomicCAS(word, now, now + field(now, Come) * Size)) != now; now = before) {
        }
      }
      do
        now = look();
      while (!field(now, Size));
      own[1] = field(now, Size);
    }
    __syncthreads();
    index = own[0], size = own[1];
  }

  // What was written before it by any of them is there behind it for all. Is it so for some thread?
  ATTN_INLINE bool any(bool yes) const {
    yes = __syncthreads_or(yes);
    if (!word)
      return yes;
    bool answer = false;
    if (threadIdx.x == 0) {
      const int turn = turns()++;
      const auto vote = [](int turn) { return Yes << turn % 3; }; // the one before may still be read
      if (yes)
        atomicOr(word, vote(turn));
      if (index == 0)
        atomicAnd(word, ~vote(turn + 1));
      __threadfence();
      atomicAdd(word, index == 0 ? Turn - (size - 1) * Wait : Wait); // that of all is Turn
      unsigned now;
      do
        now = look();
      while (now / Turn == (turn & 1));
      answer = now & vote(turn);
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

  // All blocks of the launch do, as the last thing.
  ATTN_INLINE void leave() const {
    if (word && threadIdx.x == 0 && field(atomicAdd(word, Left), Left) == gridDim.x - 1)
      *word = 0;
  }

  // This block's part of so many things, which follow each other: at least so many, if there are.
  struct Part {
    int begin, end, each;
  };
  ATTN_INLINE Part part(int count, int least = 1) const {
    const int each = max((count + size - 1) / size, least), begin = min((long long)index * each, (long long)count);
    return {begin, min(count - begin, each) + begin, each};
  }
};

// Of sequences from `b` on, the next with more than so many; `batch`: there is none.
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

// Each of these sequences is the whole team's; one block's, if the launch got no counter.
template <class Lengths, class Body>
ATTN_INLINE void together(unsigned *counter, Lengths lengths, int batch, int than, Body body) {
  int b = next_longer(lengths, 0, batch, than);
  if (b >= batch || (!counter && block_index() > 0))
    return;
  const Team team(counter);
  if (team.index >= 0)
    for (; b < batch; b = next_longer(lengths, b + 1, batch, than))
      body(team, b);
  team.leave();
}

} // namespace attn
