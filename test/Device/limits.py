# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""By how much a result of a record may be off, by the name of the error: a relative one (2-norm), or of that of
rounding once."""
WRONG_BEYOND = {"rel_err_vs_flex": 0.02, "rel_err_vs_peer": 0.02, "rel_err_vs_float64": 0.02,
                "rel_err_vs_whole": 0.02, "error_of_2": 2}
