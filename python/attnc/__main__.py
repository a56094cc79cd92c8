# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m attnc: explains problems, compiles them ahead, times them, and looks after the cache."""
import argparse
import datetime
import pathlib
import sys

import attnc
from attnc import bench, cache
from attnc._library import ask, check, library


def number(text):
    try:
        return int(text)
    except ValueError:
        return float(text)


def text_of(path):
    return sys.stdin.read() if path == "-" else pathlib.Path(path).read_text()


def explain(arguments):
    options = {}
    for option in arguments.option:
        name, _, value = option.partition("=")
        if name.startswith("lengths"):
            options[name] = [int(v) for v in value.split(",")]
        else:
            options[name] = value if name == "tile" else number(value)
    text = text_of(arguments.file) if arguments.file else attnc.Problem(
        attnc.parse(arguments.mask), heads=8, dims=128).text
    explanation = attnc.Explanation.ask(text, arguments.name, arguments.target, options)
    print(explanation.text, end="")
    if arguments.svg:
        pathlib.Path(arguments.svg).write_text(explanation.svg)


def warm(arguments):
    for path in arguments.files:
        text = text_of(path)
        for answer in ask("attnSupported", text, None, arguments.target):
            label = f"{answer['name']} for {answer['target']}"
            print(f"{label}: ", end="", flush=True)
            before = attnc.compile_count()
            check(library().attnWarm(text.encode(), answer["name"].encode(), answer["target"].encode()))
            print("compiled" if attnc.compile_count() > before else "already there")


def cache_list(arguments):
    for root in cache.list():
        for entry in root["entries"]:
            used = datetime.datetime.fromtimestamp(entry["used"]).isoformat(" ", "seconds")
            print(f"{used}  {entry['bytes']:>9}  {entry['target'] or '?':8}  {entry['kernel']}  "
                  f"{entry['problem'] or entry['resources']}")
        print(f"{len(root['entries'])} entries in {root['path']}" + (" (read-only)" if root["read_only"] else ""))


def cache_verify(arguments):
    bad = cache.verify()
    for entry in bad:
        print(f"bad: {entry['directory']}: {entry['problem']}")
    print(f"{len(bad)} bad entries")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(prog="python -m attnc", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("explain", help="which tiles a kernel visits, what that costs, which schedule it has")
    command.add_argument("file", nargs="?", help="a file with problems; - is standard input")
    command.add_argument("--mask", default="#attn.causal", help="without a file: a mask, of 8 heads of dim 128")
    command.add_argument("--name", help="which problem, if the file has several")
    command.add_argument("--target", help="cpu, sm_80, sm_90a; default: this machine's GPU, or its CPU")
    command.add_argument("--svg", help="a file for the drawing")
    command.add_argument("-o", "--option", action="append", default=[], metavar="NAME=VALUE",
                         help="seqlen_q=4096, batch=2, lengths_q=5,9, tile=128x64, ... (attnExplain in attn-c/Attn.h)")
    command.set_defaults(run=explain)

    command = commands.add_parser("warm", help="compile the problems of files into the cache")
    command.add_argument("files", nargs="+", metavar="file")
    command.add_argument("--target", default="cpu", help="cpu, sm_80, sm_90a, several with commas; needs no GPU")
    command.set_defaults(run=warm)

    bench.add_command(commands)

    command = commands.add_parser("cache", help="list, verify, prune; path")
    actions = command.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="the entries").set_defaults(run=cache_list)
    actions.add_parser("verify", help="read and check every file").set_defaults(run=cache_verify)
    actions.add_parser("path", help="where new entries go").set_defaults(run=lambda a: print(cache.path()))
    action = actions.add_parser("prune", help="remove bad entries, and old ones beyond a size")
    action.add_argument("--bytes", type=int, help="how many to keep; default: $ATTN_CACHE_SIZE, or 1 GB")
    action.set_defaults(run=lambda a: print(f"removed {cache.prune(a.bytes)} entries"))

    arguments = parser.parse_args()
    try:
        return arguments.run(arguments) or 0
    except (attnc.Error, OSError, ValueError) as error:
        print(f"attnc: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
