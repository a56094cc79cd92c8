# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of functions that are made up at random, against the functions on positions."""
import random

import attnc
import pytest
from attnc.trace import trace_mask
from trace_reader import SIZES, np, positions, shown
from trace_tables import ARRAYS, PLACES, PLAIN, TABLES


class Functions:
    """Sources of functions, made up at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.one_of = self.random.choice

    def table(self, *words):
        word = self.one_of(words)
        return f"{word}[{PLACES[word]}]"

    def constant(self):
        return str(self.random.randint(-3, 14))

    def integer(self, leaf, depth=2):
        """Of what `leaf` gives, and constants."""
        inner = lambda: self.integer(leaf, depth - 1)  # noqa: E731
        if depth == 0 or self.random.random() < 0.25:
            return leaf() if self.random.random() < 0.8 else self.constant()
        return self.one_of([
            lambda: f"({inner()} {self.one_of('+-')} {inner()})", lambda: f"({inner()} * {self.constant()})",
            lambda: f"({inner()} {self.one_of(['//', '%'])} {self.random.randint(1, 6)})", lambda: f"np.abs({inner()})",
            lambda: f"({inner()} {self.one_of('&|^')} {inner()})", lambda: f"(~{inner()})",
            lambda: f"({inner()} {self.one_of(['<<', '>>'])} {self.random.randint(0, 3)})",
            lambda: f"np.{self.one_of(['minimum', 'maximum'])}({inner()}, {inner()})",
            lambda: f"np.where({inner()} < {inner()}, {inner()}, {inner()})",
            lambda: f"np.where(({inner()} < {inner()}) {self.one_of('&|')} ({leaf()} == {leaf()}), {leaf()}, 3)"])()

    def one_side(self, axis):
        words = [word for word in PLACES if word.startswith("of") and (axis in PLACES[word] or "q" not in PLACES[word]
                                                                       and "k" not in PLACES[word])]
        return self.integer(lambda: self.one_of([lambda: axis, lambda: axis, lambda: self.table(*words), lambda: (
            f"({self.table(*words)} {self.one_of('^&|*')} {axis})")])())

    def atom(self):
        sign = self.one_of(["<", "<=", ">", ">=", "==", "!="])
        axis = self.one_of("qk")
        if self.random.random() < 0.4:
            left = self.one_of(["q", "k", "q - k", "k - q", "abs(q - k)", "q // 4 - k // 4", "(q - k) % 3",
                                "q % 5 - k % 5", "q + k", "2 * q - 2 * k", "k // 3"])
            return f"({left} {sign} {self.constant()})"
        return self.one_of([
            lambda: f"({self.one_side('q')} {sign} {self.one_side('k')})",
            lambda: f"({self.integer(lambda: self.one_of('qkhb'))} {sign} {self.constant()})",
            lambda: f"({self.one_side(axis)} {sign} {self.constant()})", lambda: self.table("flags_q", "flags_k"),
            lambda: f"((({self.one_of(['q + k', 'q - k', 'k % 8 - q'])}) {self.one_of('&|^')} "
                    f"{self.table('of_b', 'of_h', 'of_bh', 'of_q', 'of_bk')}) {sign} {self.constant()})",
            lambda: f"({axis} {sign} {self.one_side('k')})", lambda: f"({axis} {sign} {self.one_side('q')})",
            lambda: f"({axis} {sign} {self.table('of_b', 'of_h', 'of_bh', 'reals_b', 'reals_q', 'reals_k')})",
            lambda: f"({self.table('reals_q')} {sign} {self.table('reals_k')})",
            lambda: "(of_bq[b, q] == of_bk[b, k])", lambda: "(q // 4 == k // 4)"])()

    def condition(self, depth=3):
        inner = lambda: self.condition(depth - 1)  # noqa: E731
        if depth == 0 or self.random.random() < 0.3:
            return self.atom()
        return self.one_of([lambda: f"({inner()} & {inner()})"] * 3 + [lambda: f"({inner()} | {inner()})"] * 2 + [
            lambda: f"(~{inner()})", lambda: f"({inner()} ^ {inner()})", lambda: f"({inner()} == {inner()})",
            lambda: f"np.where({inner()}, {inner()}, {inner()})"])()


def evaluated(source, tables):
    return eval(f"lambda b, h, q, k: {source}", {"np": np, **tables})


@pytest.mark.parametrize("library, seeds", [("numpy", range(500)), ("torch", range(500, 600))])
def test_made_up_masks(library, seeds):
    arrays = ARRAYS
    if library == "torch":
        torch = pytest.importorskip("torch")
        arrays = {name: torch.tensor(values, dtype=torch.float32 if name.startswith("reals") else None)
                  for name, values in TABLES.items()}
    for seed in seeds:
        source = Functions(seed).condition()
        with np.errstate(all="ignore"):
            expected = np.broadcast_to(evaluated(source, PLAIN)(*positions()), SIZES)
        mask = trace_mask(evaluated(source, arrays))
        np.testing.assert_array_equal(shown(mask), expected, err_msg=f"{seed}: {source}\n{mask}")
        assert trace_mask(evaluated(source, arrays)) == mask
        attnc.Problem(mask, heads=3, dims=16).describe()  # its verifier has no complaint
