# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of the Python package have in common: the package of this checkout, in processes that they start
too."""
import os
import pathlib
import sys

package = str(pathlib.Path(__file__).resolve().parents[2] / "python")
sys.path.insert(0, package)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
os.environ.setdefault("ATTN_NUM_THREADS", "1")
