# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of a score that are read at the distance q - k, as relative biases."""
from . import algebra as n
from .linear import linear
from .nodes import is_const, make, num, variable, walk
from .values import NumPyValues

Q, K, D = variable("q"), variable("k"), variable("d")
_LONGEST = 2**20
_PROBED = 8192  # how far a table reaches whose positions are not known to settle
FAR = 2**30


def is_of_distance(node):
    """Does it depend on q and k through q - k alone, and not on b?"""
    if "b" in node.deps:
        return False
    if not node.deps & {"q", "k"}:
        return True
    if node.kind == "int":
        total = linear(node)
        if total.terms.get(Q, 0) + total.terms.get(K, 0):
            return False
        if node not in total.terms:
            return all(is_of_distance(atom) for atom in total.terms if atom not in (Q, K))
    return node not in (Q, K) and all(map(is_of_distance, node.args))


def table_of(node):
    """(expression of h and d, reach, None), or (the fault's expression, None, why not). Reach: see Hoisted."""
    node = n.replaced(node, {Q: D, K: n.ZERO}.get)
    least, largest, reach, places = -FAR, FAR, 1, set()
    for part in walk(node):
        for extent, place in zip(part.args[0].shape, part.args[1:]) if part.op == "load" else ():
            if "d" not in place.deps:
                continue
            if place.deps != {"d"} or any(inner.op in ("load", "foreign", "tensor") for inner in walk(place)):
                return part, None, "a table that is read at what another table has for q - k cannot be a relative bias"
            low, high, settled = _range(place, extent)
            if low > high:
                return part, None, "the table has no entry for q - k = 0"
            least, largest, reach = max(least, low), min(largest, high), max(reach, settled)
            places.add(part)
    if "d" in n.replaced(node, lambda part: n.ZERO if part in places else None).deps:  # that does not settle
        least, largest = max(least, -_PROBED), min(largest, _PROBED)
    reach = max([reach, *(abs(end) for end in (least, largest) if abs(end) < FAR)])
    if reach > _LONGEST:
        return node, None, f"the table reaches further than {_LONGEST} keys"

    def inside(part):
        if part not in places:
            return None
        tensor, *positions = part.args
        positions = [n.minimum(n.maximum(place, n.ZERO), num(extent - 1)) if "d" in place.deps else place
                     for place, extent in zip(positions, tensor.shape)]
        return make("load", (tensor, *positions), kind=part.kind, shape=part.shape)

    return n.replaced(node, inside), (reach, least, largest), None


def _settles(place):
    """From which distance on a position is constant at the latest, if it is a bounded d + const; else None."""
    if place.op in ("min", "max"):
        a, b = place.args if is_const(place.args[1]) else place.args[::-1]
        inner = _settles(a) if is_const(b) else None
        return inner and inner + abs(b.value)
    if place.op == "abs":
        return _settles(place.args[0])
    total = linear(place)
    (atom, factor), *more = total.terms.items()
    inner = None if more or abs(factor) != 1 else 1 if atom is D else None if atom is place else _settles(atom)
    return inner and inner + abs(total.const)


def _range(place, extent):
    """The distances around 0 for which a position is in a dimension, FAR where it stays there, and from which distance
    on it is constant on sides where it is FAR."""
    import numpy
    settles = _settles(place)
    limit = settles + extent + 8 if settles else _PROBED
    values = numpy.broadcast_to(NumPyValues().value(place, {"d": numpy.arange(-limit, limit + 1)}), 2 * limit + 1)
    inside = (values >= 0) & (values < extent)
    if not inside[limit]:
        return 1, 0, 0
    above, below = (~inside[limit:]).nonzero()[0], (~inside[limit::-1]).nonzero()[0]
    ends = [side[0] - 1 if len(side) else FAR if settles else limit for side in (below, above)]
    settled = [int((half != half[-1]).nonzero()[0].max(initial=-1)) + 1
               for half, end in zip((values[limit::-1], values[limit:]), ends) if end == FAR]
    return -int(ends[0]), int(ends[1]), max(settled, default=0)
