// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers the nodes of trees that are given by parents, in preorder.
#pragma once

#include "attn/prelude.h"

namespace attn {

ATTN_HELPER void number_tree(int *node, int *first, int *end, int *work, const int *parents, long long queries,
                             int len_q, long long keys, int len_kv) {
  parents += keys, first += keys, end += keys, node += queries;
  int *const next = work + 5 * keys; // the number of each key's next child
  const auto parent_of = [&](int k) { return (unsigned)parents[k] < (unsigned)k ? parents[k] : -1; };
  for (int k = 0; k < len_kv; ++k)
    end[k] = 1;
  for (int k = len_kv - 1; k >= 0; --k) // subtree sizes
    if (const int parent = parent_of(k); parent >= 0)
      end[parent] += end[k];
  int roots = 0;
  for (int k = 0; k < len_kv; ++k) {
    const int parent = parent_of(k);
    int &number = parent < 0 ? roots : next[parent];
    first[k] = number, next[k] = number + 1;
    number += end[k];
    end[k] = number;
  }
  for (int q = 0; q < len_q; ++q)
    node[q] = q + len_kv < len_q ? -1 : first[q + len_kv - len_q];
}

} // namespace attn
