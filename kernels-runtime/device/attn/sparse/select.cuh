// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of the most important blocks (attn.select).
//
// A CTA ranks blocks for several tiles of queries of one head of lists: a kv head, with Group query heads, or a query
// head. Keys, compressed or not, are streamed through shared memory in chunks of 32; each warp multiplies them by the
// queries of its own tiles, which stay in registers: keys are rows of the product, and its columns are pairs of a tile
// and a head, dealt so that one lane (or two or four) has all heads of a tile. Sums over heads then need no exchange.
// They go to a ring of windows in shared memory, from which importances of blocks follow, and these to a buffer of
// candidates of the tile. Where the largest score of a block is its importance, the ring has the largest scores of Part
// keys. A full buffer is cut to the blocks that may still be taken; their least importance is the threshold of later
// candidates. Candidates come in ascending order and stay so: the lowest index wins among equal ones, and lists need no
// sorting.
#pragma once
#include "attn/ptx/mma.cuh"
#include "attn/sparse/windows.cuh"

namespace attn {

ATTN_INLINE void copy_unit(unsigned to, const void *from, bool live) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(live ? 16 : 0)
               : "memory");
}
ATTN_INLINE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending> ATTN_INLINE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Rows of a sequence that one list sees; lse of probabilities only.
template <class T> struct SelectRows {
  const T *q, *k;
  const float *lse;
  long long q_row, q_head, k_row, lse_head;
  int windows;
};

// Lists of so many heads. Scores are products, or with IsProbability what they are in a softmax; IsLargest: a block has
// the largest one instead of their sum. Warps warps, each with Tiles tiles; Capacity candidates and Ring entries of
// Part windows of a tile are kept.
template <int Heads, int Lists, int KvHeads, int Dim, int IsProbability, int IsLargest, int Length, int Stride,
          int Block, int Count, int First, int Local, int Rows, unsigned Scale, int Warps, int Tiles, int Capacity,
          int Part, int Ring, class T>
struct Selector {
  static_assert(IsLargest ? Length == 1 : Part == 1);
  static constexpr int Threads = Warps * 32, AllTiles = Warps * Tiles;
  static constexpr int Entries = Count + max(Rows / Block - 1, 0), Kept = Count - First - Local;
  // Entries of the ring.
  static constexpr int InBlock = Block / Stride / Part, InWindow = Length / Stride, InChunk = 32 / Part;

  // A lane has 8 slots, or 16 for large groups, and a tile takes a slot of its lane for each head. With more heads,
  // Side lanes share a tile. With still more there are Passes passes, which read the queries again each time.
  static constexpr int Group = Heads / Lists, Depth = (Dim + 15) / 16, Slots = Depth <= 8 && Group > 32 ? 16 : 8;
  static constexpr int Side = Group <= Slots ? 1 : Group <= 2 * Slots ? 2 : 4;
  static constexpr int Passes = (Group + Side * Slots - 1) / (Side * Slots);
  static constexpr int InSlots = (Group + Side * Passes - 1) / (Side * Passes); // heads of a tile in a lane
  static constexpr int Own = (Tiles * Side + 3) / 4;                            // tiles of a lane
  static constexpr int Pieces = (Own * InSlots + 1) / 2;
  static_assert(Own * InSlots <= Slots && (Own == 1 || Side == 1));

  // Blocks that a chunk of 32 windows may complete, as a power of two of lanes.
  static constexpr int Completed = InChunk % InBlock ? InChunk / InBlock + 1 : InChunk / InBlock;
  static constexpr int Width = Completed > 16  ? 32
                               : Completed > 8 ? 16
                               : Completed > 4 ? 8
                               : Completed > 2 ? 4
                                               : Completed;
  static constexpr int TilesInStep = 32 / Width;

  // Shared memory.
  static constexpr int Pitch = Depth * 16 + 8, Stages = Depth <= 8 ? 4 : 3, StageBytes = 32 * Pitch * 2;
  static constexpr int RingPitch = Ring + max(8 / Own, 1); // the lanes of a quad write to different banks
  static constexpr int InfoAt = Stages * StageBytes, StateAt = InfoAt + AllTiles * 16, KeysAt = StateAt + AllTiles * 16,
                       NumbersAt = KeysAt + AllTiles * Capacity * 4, RingsAt = NumbersAt + AllTiles * Capacity * 4;

  // A tile has a sequence (-1: none), a first query and a last block, and its blocks are ranked or not.
  struct Info {
    int sequence, query, last, ranked;
  };
  // A tile's state is the least key that is not taken any more, the number of candidates in its buffer, the last block
  // that is ranked, and the number of windows that its query sees.
  struct State {
    unsigned threshold;
    int size, last, windows;
  };
  static ATTN_INLINE Info &info(int tile) { return ((Info *)(shared_memory + InfoAt))[tile]; }
  static ATTN_INLINE State &state(int tile) { return ((State *)(shared_memory + StateAt))[tile]; }
  static ATTN_INLINE unsigned *keys(int tile) { return (unsigned *)(shared_memory + KeysAt) + tile * Capacity; }
  static ATTN_INLINE int *numbers(int tile) { return (int *)(shared_memory + NumbersAt) + tile * Capacity; }
  static ATTN_INLINE float *ring(int tile) { return (float *)(shared_memory + RingsAt) + tile * RingPitch; }

  static ATTN_INLINE Info info_of(int sequence, int tile, int tokens) {
    if (sequence < 0 || tile * (long long)Rows >= tokens)
      return {-1, 0, -1, 0};
    const int query = tile * Rows;
    return {sequence, query, (query + min(tokens - query, Rows) - 1) / Block, Kept > 0 && query / Block >= Count};
  }

  // Entry e of a list; `found` are the blocks taken by importance.
  static ATTN_INLINE int entry_of(int e, const Info &of, const int *found) {
    const int current = of.query / Block;
    if (of.sequence < 0)
      return -1;
    if (current < Count) // no choice
      return e <= of.last ? e : -1;
    if (e < First)
      return e;
    if (e < First + Kept)
      return found[e - First];
    const int block = current + 1 + e - Count; // the local ones, then those that begin behind the first query
    return block <= of.last ? block : -1;
  }

  // The tile and the head that a slot of a lane belongs to.
  struct Column {
    int tile, head;
    bool ranked, live; // is the tile ranked, and has it such a head?
  };
  static ATTN_INLINE Column column(int quad_lane, int slot, int pass, int sequence) {
    const int own = Side == 1 ? quad_lane * Own + slot / InSlots : quad_lane / Side;
    const int head = Side == 1 ? slot % InSlots : (pass * Side + quad_lane % Side) * InSlots + slot;
    const int tile = warp_index() * Tiles + own;
    const bool has = own < Tiles && slot < Own * InSlots;
    const Info of = info(has ? tile : 0);
    const bool ranked = has && of.sequence == sequence && of.ranked;
    return {tile, head, ranked, ranked && head < Group};
  }

  // What has no part in a sum, or in a largest one. A NaN has in both.
  static ATTN_INLINE float nothing() { return IsLargest ? -infinity() : 0; }
  static ATTN_INLINE float join(float a, float b) {
    if constexpr (!IsLargest)
      return a + b;
    float largest;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
    return largest;
  }

  struct Queries {
    unsigned b[Depth][Pieces][2];
    float shift[Pieces * 2]; // -lse, of probabilities
    unsigned dead;           // slots without a row, or with LSE -inf
    bool any_dead;           // in any lane of the warp
  };
  static ATTN_INLINE void load_queries(Queries &to, const SelectRows<T> &rows, int sequence, int pass) {
    const int g = lane_index() / 4, t = lane_index() % 4;
#pragma unroll
    for (int n = 0; n < Pieces; ++n) {
      const Column from = column(g / 2, n * 2 + g % 2, pass, sequence);
      const T *row = from.live ? rows.q + info(from.tile).query * rows.q_row + from.head * rows.q_head : rows.q;
#pragma unroll
      for (int k = 0; k < Depth; ++k)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = k * 16 + half * 8 + t * 2;
          to.b[k][n][half] = from.live && (k * 16 + half * 8 < Dim) ? *(const unsigned *)(row + at) : 0;
        }
    }
    to.dead = 0;
#pragma unroll
    for (int s = 0; s < Pieces * 2; ++s) {
      const Column at = column(t, s, pass, sequence);
      if constexpr (!IsProbability) {
        if (at.ranked && !at.live)
          to.dead |= 1u << s;
        continue;
      }
      const float lse = at.live ? rows.lse[at.head * rows.lse_head + info(at.tile).query] : -infinity();
      to.shift[s] = -lse * 1.44269504f;
      if (lse == -infinity()) {
        to.shift[s] = -infinity();
        if (at.ranked) // what other tiles have is never read
          to.dead |= 1u << s;
      }
    }
    to.any_dead = __any_sync(~0u, to.dead);
  }

  // Sums over a group's heads, or the largest score, of the windows of a chunk, to the rings of the warp's tiles, from
  // entry `first` on.
  static ATTN_INLINE void scores(unsigned stage, Queries &queries, const SelectRows<T> &rows, int sequence, int first) {
    const float factor = float_of(Scale);
    const int g = lane_index() / 4, t = lane_index() % 4;
    float p[Own][2];
#pragma unroll 1
    for (int m = 0; m < 2; ++m) {
      if (Part < 32 || m == 0)
#pragma unroll
        for (int own = 0; own < Own; ++own)
          p[own][0] = p[own][1] = nothing();
#pragma unroll 1
      for (int pass = 0; pass < Passes; ++pass) {
        if constexpr (Passes > 1)
          load_queries(queries, rows, sequence, pass);
        float s[Pieces][4] = {};
#pragma unroll
        for (int k = 0; k < Depth; ++k) {
          unsigned a[4];
          load_matrices(a, stage + ((m * 16 + lane_index() % 16) * Pitch + k * 16 + lane_index() / 16 * 8) * 2);
#pragma unroll
          for (int n = 0; n < Pieces; ++n)
            mma<T>(s[n], a, queries.b[k][n][0], queries.b[k][n][1]);
        }
        // A score times 0 may be NaN, so that these need a test of their own.
        if (queries.any_dead)
#pragma unroll
          for (int i = 0; i < Pieces * 4; ++i)
            if (queries.dead >> (i / 4 * 2 + i % 2) & 1)
              s[i / 4][i % 4] = IsProbability ? 0 : nothing();
#pragma unroll
        for (int i = 0; i < Own * InSlots; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float x = s[i / 2][half * 2 + i % 2];
            p[i / InSlots][half] =
                join(p[i / InSlots][half], IsProbability ? exp2(fmaf(x, factor, queries.shift[i])) : x);
          }
      }
      if (Part == 32 && m == 0)
        continue;
#pragma unroll
      for (int own = 0; own < Own; ++own)
#pragma unroll
        for (int half = 0; half < (Part < 16 ? 2 : 1); ++half) {
          float x = Part < 16 ? p[own][half] : join(p[own][0], p[own][1]);
          if (Side > 1)
            x = join(x, __shfl_xor_sync(~0u, x, 1));
          if (Side > 2)
            x = join(x, __shfl_xor_sync(~0u, x, 2));
          if (Part > 1)
#pragma unroll
            for (int lanes = 4; lanes < 32; lanes *= 2)
              x = join(x, __shfl_xor_sync(~0u, x, lanes));
          const int tile = Side == 1 ? t * Own + own : t / Side;
          if ((Tiles * Side == Own * 4 || tile < Tiles) && t % Side == 0 && (Part == 1 || g == 0))
            ring(warp_index() * Tiles + tile)[(first + (m * 16 + half * 8 + (Part == 1 ? g : 0)) / Part) & (Ring - 1)] =
                x;
        }
    }
  }

  // How many of block j's parts window j * InBlock + d has.
  static ATTN_INLINE constexpr int cover(int d) { return min(InBlock, InWindow + d) - max(0, d); }

  static ATTN_INLINE float importance(const float *windows, int block, int visible) {
    float sum = nothing();
#pragma unroll(InBlock + InWindow <= 17 ? InBlock + InWindow - 1 : 1)
    for (int d = 1 - InWindow; d < InBlock; ++d) {
      const int i = block * InBlock + d;
      const float p = windows[i & (Ring - 1)];
      if (unsigned(i * Part) < unsigned(visible))
        sum = IsLargest ? join(sum, p) : fmaf(p, float(cover(d)), sum);
    }
    return sum;
  }

  // Orders as numbers do, with -0 as 0 and NaN as -infinity. It is never 0.
  static ATTN_INLINE unsigned key_of(float x) {
    const unsigned bits = __float_as_uint(x == x ? x + 0.f : -infinity());
    return bits ^ (bits >> 31 ? ~0u : 1u << 31);
  }

  // Candidates among the blocks that a chunk completes, whose entries begin with `first`.
  static ATTN_INLINE void append(int first) {
    constexpr int steps = (Tiles + TilesInStep - 1) / TilesInStep, batch = min(steps, 4);
    const int group = lane_index() / Width, at = lane_index() % Width;
    const int before = first / InBlock, block = before + at, completed = (first + InChunk) / InBlock - before;
    const bool complete = at < completed && block >= First;
    if (InChunk < InBlock && completed == 0)
      return;
    const auto tile_of = [&](int step) { return min(step * TilesInStep + group, Tiles - 1) + warp_index() * Tiles; };
    // Most have no candidate, so that several steps take one test, and their loads do not wait for one another.
#pragma unroll 1
    for (int step = 0; step < steps; step += batch) {
      unsigned key[batch];
      bool any = false;
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const State now = state(tile_of(step + i));
        const float x = importance(ring(tile_of(step + i)), block, now.windows);
        key[i] = key_of(x);
        if (!complete || block > now.last || (step + i) * TilesInStep + group >= Tiles || key[i] <= now.threshold)
          key[i] = 0;
        any |= key[i] != 0;
      }
      if (!__any_sync(~0u, any))
        continue;
#pragma unroll
      for (int i = 0; i < batch; ++i)
        push(tile_of(step + i), warp_index() * Tiles + (step + i) * TilesInStep, block, key[i]);
    }
  }
  // Appends the blocks that have keys, of the warp's tiles from `first_tile` on, Width lanes each.
  static ATTN_INLINE void push(int tile, int first_tile, int block, unsigned key) {
    const int group = lane_index() / Width, at = lane_index() % Width;
    const unsigned all = __ballot_sync(~0u, key != 0);
    if (!all)
      return;
    const unsigned own = Width == 32 ? all : all >> group * (Width % 32) & ((1u << Width % 32) - 1);
    const int size = state(tile).size, added = __popc(own);
    if (key) {
      const int to = size + __popc(own & ((1u << at) - 1));
      keys(tile)[to] = key;
      numbers(tile)[to] = block;
    }
    __syncwarp();
    if (at == 0 && own)
      state(tile).size = size + added;
    const unsigned full = __ballot_sync(~0u, at == 0 && own && size + added > Capacity - Width);
    __syncwarp();
#pragma unroll 1
    for (unsigned left = full; left; left &= left - 1)
      cut(first_tile + (__ffs(left) - 1) / Width);
  }

  // The key of number Kept of a buffer of more than Kept.
  static ATTN_INLINE unsigned least_kept(unsigned *keys, int size) {
    if constexpr (Capacity == 64) {
#pragma unroll
      for (int i = 0; i < 64; i += 32)
        if (i + lane_index() >= size)
          keys[i + lane_index()] = 0;
      __syncwarp();
      const unsigned a = keys[lane_index()], b = keys[lane_index() + 32];
      int above_a = 0, above_b = 0;
#pragma unroll 4
      for (int i = 0; i < 16; ++i) {
        const uint4 x = ((const uint4 *)keys)[i];
        above_a += (x.x > a) + (x.y > a) + (x.z > a) + (x.w > a);
        above_b += (x.x > b) + (x.y > b) + (x.z > b) + (x.w > b);
      }
      return __reduce_min_sync(~0u, min(above_a < Kept ? a : ~0u, above_b < Kept ? b : ~0u));
    }
    unsigned key = 0;
#pragma unroll 1
    for (unsigned bit = 1u << 31; bit; bit >>= 1) {
      int above = 0;
#pragma unroll 4
      for (int i = lane_index(); i < size; i += 32)
        above += keys[i] >= (key | bit);
      if (int(__reduce_add_sync(~0u, above)) >= Kept)
        key |= bit;
    }
    return key;
  }

  // Cuts a tile's buffer to the Kept best, of equal ones the first.
  static __noinline__ __device__ void cut(int tile) {
    const int size = state(tile).size;
    if (size <= Kept)
      return;
    unsigned *const keys = Selector::keys(tile);
    int *const numbers = Selector::numbers(tile);
    const unsigned least = least_kept(keys, size), lower = (1u << lane_index()) - 1;
    int above = 0;
#pragma unroll 2
    for (int i = lane_index(); i < size; i += 32)
      above += keys[i] > least;
    int equal = Kept - int(__reduce_add_sync(~0u, above)), to = 0; // how many equal ones are kept
#pragma unroll 1
    for (int i = lane_index(); i - lane_index() < size; i += 32) {
      const unsigned key = i < size ? keys[i] : 0;
      const int number = i < size ? numbers[i] : 0;
      const unsigned same = __ballot_sync(~0u, i < size && key == least);
      const bool kept = i < size && (key > least || (key == least && __popc(same & lower) < equal));
      const unsigned all = __ballot_sync(~0u, kept);
      equal -= __popc(same);
      if (kept) {
        keys[to + __popc(all & lower)] = key;
        numbers[to + __popc(all & lower)] = number;
      }
      to += __popc(all);
      __syncwarp();
    }
    if (lane_index() == 0) {
      state(tile).threshold = least;
      state(tile).size = Kept;
    }
    __syncwarp();
  }

  // Copies of chunks, in ascending order. Where they divide evenly, a thread has the same column of each.
  struct Copies {
    static constexpr int units = Depth * 2, step = Threads / units;
    static constexpr bool even = Threads % units == 0 && 32 % step == 0;
    const T *from;
    int left, chunk = 0;
    ATTN_INLINE explicit Copies(const SelectRows<T> &rows) {
      const int row = even ? threadIdx.x / units : 0, unit = even ? threadIdx.x % units : 0;
      from = rows.k + row * rows.k_row + unit * 8;
      left = unit < Dim / 8 ? rows.windows - row : 0;
    }
    ATTN_INLINE void next(const SelectRows<T> &rows) {
      const unsigned to = unsigned(__cvta_generic_to_shared(shared_memory)) + chunk % Stages * StageBytes;
      if constexpr (even) {
        const unsigned own = to + (threadIdx.x / units * Pitch + threadIdx.x % units * 8) * 2;
#pragma unroll
        for (int r = 0; r < 32; r += step) {
          copy_unit(own + r * Pitch * 2, r < left ? from : rows.k, r < left);
          from += step * rows.k_row;
        }
      } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < 32 * units; i += Threads) {
          const int r = i / units, unit = i % units;
          const bool live = r < left && unit < Dim / 8;
          copy_unit(to + (r * Pitch + unit * 8) * 2, live ? from + r * rows.k_row + unit * 8 : rows.k, live);
        }
        from += 32 * rows.k_row;
      }
      left -= 32;
      ++chunk;
    }
  };

  // Chunks until the last block that tile `last` ranks is complete.
  static ATTN_INLINE int chunks_of(int last) {
    return last < 0 ? 0 : ((state(last).last + 1) * InBlock + InChunk - 1) / InChunk;
  }

  // Ranks the blocks of the tiles from `first` to `last`, all of one sequence.
  static ATTN_INLINE void rank(const SelectRows<T> &rows, int sequence, int first, int last) {
    for (int tile = first + threadIdx.x; tile <= last; tile += Threads) {
      const int query = info(tile).query;
      state(tile) = {0, 0, query / Block - Local, min(rows.windows, windows_of<Length, Stride>(query + 1))};
    }
    __syncthreads();
    const int own_first = max(first, warp_index() * Tiles), own_last = min(last, warp_index() * Tiles + Tiles - 1);
    const int chunks = chunks_of(last), own_chunks = chunks_of(own_last >= own_first ? own_last : -1);
    Copies copies(rows);
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) {
      if (i < chunks)
        copies.next(rows);
      commit_copies();
    }
    Queries queries;
    if (Passes == 1 && own_chunks)
      load_queries(queries, rows, sequence, 0);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      wait_copies<Stages - 2>();
      __syncthreads();
      if (chunk + Stages - 1 < chunks)
        copies.next(rows);
      commit_copies();
      if (chunk < own_chunks) {
        scores(unsigned(__cvta_generic_to_shared(shared_memory)) + chunk % Stages * StageBytes, queries, rows, sequence,
               chunk * InChunk);
        __syncwarp();
        append(chunk * InChunk);
        __syncwarp();
      }
    }
#pragma unroll 1
    for (int tile = own_first; tile <= own_last; ++tile)
      cut(tile);
    __syncthreads();
    for (int tile = first + threadIdx.x; tile <= last; tile += Threads)
      state(tile).last = -1; // nothing more for it
  }

  static ATTN_INLINE void prepare(int tile, Info of) {
    info(tile) = of;
    state(tile) = {0, 0, -1, 0};
  }

  // Lines from `first_line` on, of `lines`. All tiles have been prepared, and ranked where they are.
  static ATTN_INLINE void store(int *lists, int first_line, int lines) {
    const int here = min(lines - first_line, AllTiles);
    for (int i = threadIdx.x; i < here * Entries; i += Threads) {
      const int tile = i / Entries;
      lists[(long long)first_line * Entries + i] = entry_of(i % Entries, info(tile), numbers(tile));
    }
  }
};

#define ATTN_SELECT_NUMBERS                                                                                            \
  int Heads, int Lists, int KvHeads, int Dim, int IsProbability, int IsLargest, int Length, int Stride, int Block,     \
      int Count, int First, int Local, int Rows, unsigned Scale, int Warps, int Tiles, int Capacity, int Part,         \
      int Ring
#define ATTN_SELECTOR                                                                                                  \
  Selector<Heads, Lists, KvHeads, Dim, IsProbability, IsLargest, Length, Stride, Block, Count, First, Local, Rows,     \
           Scale, Warps, Tiles, Capacity, Part, Ring, T>

// The first line of a packed sequence.
template <int Rows> ATTN_INLINE int line_of(const int *cu, int sequence) { return cu[sequence] / Rows + sequence; }

// A CTA's lines of packed sequences; the last ones, which see most, come first.
template <ATTN_SELECT_NUMBERS, class T>
ATTN_INLINE void select_blocks(int *blocks, const T *q, const T *k, const int *cu, const int *cu_c,
                               long long blocks_head, long long q_row, long long q_head, long long k_row,
                               long long k_head, int batch, int total_q, int block, const float *lse = nullptr,
                               long long lse_head = 0) {
  using S = ATTN_SELECTOR;
  const int lines = total_q / Rows + batch, parts = (lines + S::AllTiles - 1) / S::AllTiles;
  const int head = block % Lists, line0 = (parts - 1 - block / Lists) * S::AllTiles;
  for (int tile = threadIdx.x; tile < S::AllTiles; tile += S::Threads) {
    const int line = line0 + tile;
    int low = 0, high = batch; // line_of(low) <= line < line_of(high), which may not be a sequence
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (line_of<Rows>(cu, middle) <= line ? low : high) = middle;
    }
    const bool has = line < lines && batch > 0 && line_of<Rows>(cu, low) <= line;
    S::prepare(tile,
               S::info_of(has ? low : -1, has ? line - line_of<Rows>(cu, low) : 0, has ? cu[low + 1] - cu[low] : 0));
  }
  __syncthreads();
  if constexpr (S::Kept > 0)
    for (int first = 0; first < S::AllTiles; ++first) {
      if (!S::info(first).ranked)
        continue;
      const int sequence = S::info(first).sequence;
      int last = first;
      while (last + 1 < S::AllTiles && S::info(last + 1).ranked && S::info(last + 1).sequence == sequence)
        ++last;
      const int begin = cu_c[sequence];
      const SelectRows<T> rows = {q + cu[sequence] * q_row + head * S::Group * q_head,
                                  k + begin * k_row + head / (Lists / KvHeads) * k_head,
                                  lse + head * S::Group * lse_head + cu[sequence],
                                  q_row,
                                  q_head,
                                  k_row,
                                  lse_head,
                                  cu_c[sequence + 1] - begin};
      S::rank(rows, sequence, first, last);
      first = last;
    }
  S::store(blocks + head * blocks_head, line0, lines);
}

// The same of dense sequences.
template <ATTN_SELECT_NUMBERS, class T>
ATTN_INLINE void select_dense_blocks(int *blocks, const T *q, const T *k, long long blocks_batch, long long blocks_head,
                                     long long q_batch, long long q_row, long long q_head, long long k_batch,
                                     long long k_row, long long k_head, int batch, int seqlen_q, int windows, int block,
                                     const float *lse = nullptr, long long lse_batch = 0, long long lse_head = 0) {
  using S = ATTN_SELECTOR;
  const int lines = (seqlen_q + Rows - 1) / Rows, parts = (lines + S::AllTiles - 1) / S::AllTiles;
  const int head = block % Lists, sequence = block / Lists % batch,
            line0 = (parts - 1 - block / Lists / batch) * S::AllTiles;
  for (int tile = threadIdx.x; tile < S::AllTiles; tile += S::Threads)
    S::prepare(tile, S::info_of(sequence, line0 + tile, seqlen_q));
  __syncthreads();
  if constexpr (S::Kept > 0) {
    int first = 0, last = min(lines - line0, S::AllTiles) - 1;
    while (first <= last && !S::info(first).ranked)
      ++first;
    const SelectRows<T> rows = {q + sequence * q_batch + head * S::Group * q_head,
                                k + sequence * k_batch + head / (Lists / KvHeads) * k_head,
                                lse + sequence * lse_batch + head * S::Group * lse_head,
                                q_row,
                                q_head,
                                k_row,
                                lse_head,
                                windows};
    if (first <= last)
      S::rank(rows, sequence, first, last);
  }
  S::store(blocks + sequence * blocks_batch + head * blocks_head, line0, lines);
}

} // namespace attn
