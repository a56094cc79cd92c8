# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""edit_ledger.py OLD NEW <case>|all <field>=<value>...: a ledger with a row, or all rows, changed."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import ledger  # noqa: E402

old, new, wanted = sys.argv[1:4]
fields = dict(argument.split("=", 1) for argument in sys.argv[4:])
rows = [row._replace(**fields) if wanted in (case, "all") else row for case, row in ledger.read(old).items()]
ledger.write(new, {row.case: row for row in rows})
