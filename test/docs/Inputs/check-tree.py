# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check-tree.py FOLDER: tree.py there, on random trees, against walks up from each row."""
import random
import sys

sys.path.insert(0, sys.argv[1])
from tree import tree  # noqa: E402


def refused(parents):
    try:
        tree(parents)
    except ValueError:
        return True
    return False


r = random.Random(1)
for number in range(200):
    count = r.randint(0, 12)
    parents = [r.randint(-1, i - 1) for i in range(count)]
    order = r.sample(range(count), count)  # rows in any order
    parents = [-1 if parents[i] < 0 else order.index(parents[i]) for i in order]
    node, first, end = tree(parents)
    for q in range(count):
        ancestors, row = set(), q
        while row >= 0:
            ancestors.add(row)
            row = parents[row]
        assert ancestors == {k for k in range(count) if first[k] <= node[q] < end[k]}, (parents, q)
assert refused([1, 0]) and refused([-1, 5]) and refused([0])
print("200 trees are right")
