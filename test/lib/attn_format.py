# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The format of our tests; a module, so that lit can hand it to its workers."""
import os
import shutil

import lit.formats


class Test(lit.formats.ShTest):
    """A shell test with a kernel cache of its own, empty at first and never the user's.

    `source` and `output` are the roots as RUN lines see them (%s, %t): paths without a space.
    """

    def __init__(self, source, output):
        super().__init__(execute_external=False)
        self.source, self.output = source, output

    def execute(self, test, litConfig):
        test.suite.source_root = os.path.join(self.source, "test")
        test.suite.exec_root = self.output
        cache = os.path.join(self.output, "caches", *test.path_in_suite)
        shutil.rmtree(cache, ignore_errors=True)
        test.config.environment["ATTN_CACHE_DIR"] = cache
        result = super().execute(test, litConfig)
        if not result.code.isFailure:  # else it may hold a reproducer
            shutil.rmtree(cache, ignore_errors=True)
        return result
