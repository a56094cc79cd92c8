# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plant.py <entry> <file> <source>: gives a file of a cache entry the bytes of another one, with the right
checksums."""
import hashlib
import json
import os
import shutil
import sys

entry, name, source = sys.argv[1:]
record = os.path.join(entry, "entry.json")
shutil.copyfile(source, os.path.join(entry, name))
with open(source, "rb") as file:
    data = file.read()
with open(record, encoding="utf-8") as file:
    said = json.load(file)
del said["checksum"]
for item in said["files"]:
    if item["name"] == name:
        item["bytes"], item["sha256"] = len(data), hashlib.sha256(data).hexdigest()


def dump():
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


said["checksum"] = hashlib.sha256(dump().encode()).hexdigest()
with open(record, "w", encoding="utf-8") as file:
    file.write(dump())
