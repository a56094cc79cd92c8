# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables that the functions of these tests capture: as lists, as attnc's arrays, as NumPy's."""
import math

import numpy as np
from attnc.trace import array

TABLES = {
    "of_q": [3, -2, 0, 7, 7, 1, 0, -5, 12, 2, 2, 0, 4], "of_k": [1, 0, 0, -2, 5, 7, 7, 3, 11, -1, 2],
    "of_b": [4, 9], "of_h": [1, 5, 8], "of_bq": [[0, 0, 1, 1, 1, 2, 2, 2, 2, -1, 3, 3, 3], [5] * 7 + [0] * 6],
    "of_bk": [[0, 1, 1, 1, 2, 2, -1, 3, 3, 3, 3], [5] * 6 + [0] * 5], "of_bh": [[2, 0, 6], [-3, 4, 1]],
    "flags_q": [True, False, False] * 4 + [True], "flags_k": [False, True, True, False] * 2 + [True] * 3,
    "reals_b": [2.5, 7.0], "reals_q": [0.5, 3.0, -1.25, math.nan, 4.0, 7.5, 2.0, 0.0, -0.0, math.inf, 1.0, 6.0, 9.5],
    "reals_k": [0.5, -0.0, 4.0, math.nan, 1.0, 2.0, 8.0, 6.5, -math.inf, 3.0, 7.5],
}
PLACES = {"of_q": "q", "of_k": "k", "of_b": "b", "of_h": "h", "of_bq": "b, q", "of_bk": "b, k", "of_bh": "b, h",
          "flags_q": "q", "flags_k": "k", "reals_b": "b", "reals_q": "q", "reals_k": "k"}
ARRAYS = {name: array(values) for name, values in TABLES.items()}
PLAIN = {name: np.array(values) for name, values in TABLES.items()}
