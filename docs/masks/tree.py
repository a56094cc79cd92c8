"""The arrays of #attn.tree, from parents.

    node, first, end = tree(parents)

`parents[i]` is the number of the row that row i follows, -1 where it follows all that lies before the tree. Rows may
stand in any order. `first` and `end` are of the rows as keys; put `before` keys that all rows see in front of them with
first 0 and end 2^31 - 1.
"""
import numpy as np


def tree(parents):
    children = {}
    for row, parent in enumerate(parents):
        if not -1 <= parent < len(parents):
            raise ValueError(f"row {row}: expected a parent from -1 to {len(parents) - 1}, got: {parent}")
        children.setdefault(int(parent), []).append(row)
    node, end = np.full(len(parents), -1, np.int32), np.zeros(len(parents), np.int32)
    numbered = 0
    walk = [(row, False) for row in reversed(children.get(-1, []))]
    while walk:
        row, done = walk.pop()
        if done:
            end[row] = numbered
            continue
        node[row] = numbered
        numbered += 1
        walk.append((row, True))
        walk += [(child, False) for child in reversed(children.get(row, []))]
    if numbered < len(parents):
        raise ValueError(f"rows that descend from themselves: {np.flatnonzero(node < 0).tolist()}")
    return node, node.copy(), end
