# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnExplain, attnSupported and attnEquiv of libattnc.so (the first argument): their JSON, their options, each error,
and that their texts are what attn-opt prints; from several threads as from one."""
import ctypes as C
import json
import subprocess
import sys
import tempfile
import threading
import xml.dom.minidom

from attnc_host import lib

CAUSAL = "attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)"
PREFIX = ("attn.problem @p mask(#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127>>, #attn.causal>) "
          "layout(bshd) heads(16, 4) dims(64, 128) dtype(bf16)")
PACKED = ("attn.problem @p mask(#attn.and<#attn.causal, #attn.document>) layout(thd padded) heads(4, 2) dims(64) "
          "dtype(bf16)\n"
          "attn.backward @g of(@p)\n"
          "attn.backward @fixed of(@p) "
          "schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 9>)")


def text_of(value):
    return value if value is None or isinstance(value, bytes) else value.encode()


def call(function, *arguments):
    """The JSON of a call, or its error's text."""
    out = C.c_char_p()
    failed = function(*map(text_of, arguments), C.byref(out))
    return lib.attnLastError().decode() if failed else json.loads(out.value)


def explain(text, name=None, target="sm_90a", **options):
    return call(lib.attnExplain, text, name, target, json.dumps(options) if options else None)


def tool(*arguments, text=None):
    return subprocess.run(["attn-opt", *arguments], input=text, capture_output=True, text=True).stdout


def spelled(options):
    """As the tool takes them."""
    for key, value in options.items():
        yield f"--{key.replace('_', '-')}={','.join(map(str, value)) if isinstance(value, list) else value}"


# 1. attnExplain: the tool's text, with every option.
CASES = [(CAUSAL, {}), (CAUSAL, {"batch": 3, "seqlen_q": 384}),
         (CAUSAL, {"seqlen_q": 100, "seqlen_kv": 300, "head": 3, "sequence": 1}),
         (CAUSAL, {"tile": "32x16", "tflops": 100, "gbps": 0.5}),
         (PREFIX, {"tile": "64x64", "seqlen_q": 384, "batch": 3}),
         (PACKED, {}), (PACKED, {"lengths_q": [100, 0, 300]}),
         (PACKED, {"lengths_q": [10, 20], "lengths_kv": [30, 0], "padding": 0}),
         (PACKED, {"seed": 2**64 - 1, "batch": 5}), (PACKED, {"seed": 7, "lengths_kv": [500]}),
         (CAUSAL.replace("dims(64)", "dims(68)") + " {sym_visibility = \"private\"}", {})]
for text, options in CASES:
    for target in "sm_90a", "sm_80", "cpu":
        got = explain(text, None, target, **options)
        printed = tool("--explain", f"--target={target}", *spelled(options), text=text)
        assert printed == (got["text"] if isinstance(got, dict) else ""), (text, options, got, printed)

e = explain(PREFIX, tile="64x64", seqlen_q=384, batch=3, tflops=100, gbps=1000)
assert e["name"] == "p" and e["target"] == "sm_90a" and "svg" not in e
assert e["mask"] == "#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127>>, #attn.causal>"
assert e["canonical_mask"] == "#attn.and<#attn.causal, #attn.or<#attn.prefix<4>, #attn.band<left = 127>>>"
assert e["schedule"] == "warp-specialized tiles; neither max_seqlen nor expected_seqlen says that sequences are short"
assert e["refused"] is None and e["backward"] == [] and e["tile"] == {"rows": 64, "keys": 64, "stride": 1}
assert e["map"] == {"sequence": 0, "head": 0, "rows": 384, "keys": 384}
strided = explain("attn.problem @p mask(#attn.strided<stride = 4>) layout(bshd) heads(2) dims(64) dtype(bf16)", batch=1,
                  seqlen_q=1024)
assert strided["tile"]["stride"] == 4 and strided["counts"]["visible"] == 2 * 1024 * 256
# Tiles by hand: 1 + 2 + 3 + 4 + 4 + 4 tiles for each of 48 sequences and heads; 5 of them are full.
assert e["counts"] == {"tiles": 48 * 36, "visited": 48 * 18, "full": 48 * 5, "partial": 48 * 13, "empty": 0,
                       "pairs": 48 * 384**2,
                       "visible": sum(min(q + 1, 128) + max(min(4, q - 127), 0) for q in range(384)) * 48,
                       "exact": True}
assert e["flops"] == {"visible": 2 * 192 * e["counts"]["visible"], "visited": 2 * 192 * 48 * 18 * 64**2}
assert e["bytes"] == 3 * 384 * (2 * (16 * 64 + 4 * 64 + 4 * 128 + 16 * 128) + 4 * 16)
assert abs(e["milliseconds"] - e["flops"]["visited"] / 1e11) < 1e-9
assert all(isinstance(number, int) for number in (*e["counts"].values(), *e["flops"].values(), e["bytes"]))

# Backward passes, what a target refuses, and names.
e = explain(PACKED, "g", lengths_q=[100])
assert [b["name"] for b in e["backward"]] == ["g", "fixed"] and e["name"] == "p"
assert e["backward"][0]["refused"] is None and "unordered dQ accumulation" in e["backward"][0]["schedule"]
assert e["backward"][1]["refused"].startswith("expected #tile.warp_specialized_backward for target `sm_90a`, got:")
assert explain(PACKED, "p", lengths_q=[100]) == e
kernel = C.c_void_p()
assert lib.attnLower(PACKED.encode(), b"p", b"sm_90a", C.byref(kernel)) == 0
assert lib.attnSchedule(kernel).decode() == e["schedule"]
lib.attnDestroy(kernel)
e = explain(CAUSAL + ' {sym_visibility = "private"}\nattn.backward @g of(@p)')
assert e["refused"] is None and "refused" not in e["text"]  # a problem that is only described
e = explain("attn.problem @r mask(#attn.causal) layout(thd) heads(2) dims(64) dtype(bf16) tiles(64)")
assert e["refused"].startswith("expected tiles(") and e["refused"] in e["text"]

# Made-up arrays follow from the seed; a bias of pairs is not made up at all.
assert explain(PACKED, batch=3) == explain(PACKED, batch=3, seed=1) != explain(PACKED, batch=3, seed=2)
e = explain(CAUSAL + ' score([#attn.bias<"b", bhqk>])', seqlen_q=65536, batch=8)
assert e["counts"]["visible"] == 8 * 4 * 65536 * 65537 // 2 and e["bytes"] > 4 * 8 * 4 * 65536**2
# Many tiles: how many of them are empty is not looked at. Beyond 2^53 numbers are rounded.
e = explain(CAUSAL, seqlen_q=2**23, batch=2**20)
assert e["counts"]["empty"] is None and e["counts"]["exact"] and e["counts"]["pairs"] == 2.0**68
# A predicate that asks for the sequence.
e = explain(CAUSAL.replace("#attn.causal", '#attn.predicate<"b == 1">'), batch=4, seqlen_q=64)
assert e["counts"]["visible"] == 4 * 64**2, e

# The drawing.
with tempfile.TemporaryDirectory() as folder:
    tool("--explain", "--seqlen-q=300", f"--svg={folder}/a.svg", text=PREFIX)
    svg = explain(PREFIX, seqlen_q=300, svg=True)["svg"]
    assert svg == open(f"{folder}/a.svg").read()
    assert len(xml.dom.minidom.parseString(svg).getElementsByTagName("rect")) > 5
assert "svg" not in explain(PREFIX, svg=False)
assert call(lib.attnExplain, CAUSAL, None, "sm_90a", "{}") == explain(CAUSAL)

for options in ("[]", "{", "", '{"batch": 1', "7", '{"Batch": 1}', '{"seqlen": 4}', '{"batch": "2"}', '{"batch": 2.0}',
                '{"batch": null}', '{"batch": 9223372036854775808}', '{"batch": -1}', '{"seqlen_q": 16777217}',
                '{"seqlen_kv": true}', '{"batch": 0}', '{"lengths_q": 4}', '{"lengths_q": []}',
                '{"lengths_q": [1, 2.5]}', '{"lengths_q": [1]}', '{"padding": 3}', '{"sequence": 2}',
                '{"sequence": -1}', '{"head": 4}', '{"head": "0"}', '{"tile": "128"}', '{"tile": 128}',
                '{"tile": "0x4"}', '{"tile": "16777217x1"}', '{"seed": -1}', '{"seed": 5}', '{"seed": 1.5}',
                '{"tflops": 0}', '{"tflops": "1"}', '{"gbps": -3}', '{"gbps": 1e999}', '{"svg": 1}'):
    print(f"{options}: {call(lib.attnExplain, CAUSAL, None, 'sm_90a', options)}")
for options in ('{"seqlen_q": 4}', '{"lengths_q": [1], "lengths_kv": [1, 2]}', '{"lengths_q": [-1]}',
                '{"batch": 3, "lengths_q": [1, 2]}'):
    print(f"packed {options}: {call(lib.attnExplain, PACKED, None, 'sm_90a', options)}")
print("text:", explain("attn.problem @p").split("\n")[0])
print("name:", explain(CAUSAL, "q"))
print("none:", explain("module {}"))
print("target:", explain(CAUSAL, None, "sm_70")[-6:])
print("segments:", explain(CAUSAL.replace("bshd", "thd padded") + " segments(5)"))
print("ids:", explain("attn.segments @s mask(#attn.causal) segments(5)"))
print("schedule:", explain(CAUSAL + " schedule(5 : i64)"))
print("null:", call(lib.attnExplain, None, None, None, None), lib.attnExplain(CAUSAL.encode(), None, None, None, None))

# 2. attnSupported: the tool's answers.
BAD = ("attn.problem @wide mask(#attn.causal) layout(bshd) heads(16, 4) dims(300) dtype(bf16)\n"
       "attn.problem @large mask(#attn.causal) layout(thd) heads(16) dims(512) dtype(bf16) sink(\"sinks\") "
       "max_seqlen(1, 16)\n"
       "attn.backward @grads of(@large) requires_grad([\"sinks\"])\n"
       "attn.segments @segs mask(#attn.causal) segments(9000)\n"
       "attn.backward @none of(@nothing)\n")


def as_printed(answers):
    """As the tool prints them."""
    lines, name, before = [], None, ""
    for answer in answers:
        if answer["name"] != name:
            lines.append(f"@{answer['name']}")
            name, before = answer["name"], ""
        lines.append(f"  {answer['target'] + ' ':8}" + ("yes" if answer["supported"] else "no: " + answer["reason"]))
        near = answer["nearest"] or "no single change, nor two, of what is given"
        if not answer["supported"] and near != before:
            lines += [" " * 10 + ("nearest: " if i == 0 else " " * 9) + line for i, line in enumerate(near.split("\n"))]
        before = before if answer["supported"] else near
    return "\n".join(lines) + "\n"


for text in CAUSAL, PACKED, BAD:
    assert as_printed(call(lib.attnSupported, text, None, None)) == tool("--supported", text=text), text
all_of_them = call(lib.attnSupported, BAD, None, None)
assert [(a["name"], a["target"]) for a in all_of_them] == [
    (name, target) for name in ("wide", "large", "grads", "segs", "none") for target in ("cpu", "sm_80", "sm_90a")]
assert call(lib.attnSupported, BAD, "grads", None) == all_of_them[6:9]
assert all_of_them[3] == {"name": "large", "target": "cpu", "supported": True, "reason": None, "nearest": None}
nearest = all_of_them[6]["nearest"]
assert nearest.startswith("attn.problem @large ") and "\nattn.backward @grads" in nearest
for answer in all_of_them:  # what is near is supported
    if answer["nearest"] and answer["name"] in ("wide", "segs"):
        assert all(a["supported"] for a in call(lib.attnSupported, answer["nearest"], None, answer["target"])), answer
assert [a["target"] for a in call(lib.attnSupported, CAUSAL, "p", "sm_80:86,cpu")] == ["sm_80:86", "cpu"]
# Ops whose attributes are missing.
assert call(lib.attnSupported, '"attn.problem"() {sym_name = "p"} : () -> ()', None, "cpu") == [
    {"name": "p", "target": "cpu", "supported": False, "reason": "requires attribute 'dim_qk'", "nearest": None}]
nameless = '"attn.backward"() : () -> ()\n"attn.segments"() {} : () -> ()'
assert [a["name"] for a in call(lib.attnSupported, nameless, None, "cpu")] == ["", ""]
print("supported text:", call(lib.attnSupported, "attn.problem @p", None, None).split("\n")[0])
print("supported mask:",
      call(lib.attnSupported, CAUSAL.replace("causal", "band<left = 1, right = -2>"), None, None).split("\n")[1])
print("supported name:", call(lib.attnSupported, CAUSAL, "q", None))
print("supported none:", call(lib.attnSupported, "module {}", None, None))
print("supported target:", call(lib.attnSupported, CAUSAL, None, "cpu,sm_70")[-6:])
print("supported targets:", call(lib.attnSupported, CAUSAL, None, "cpu,,sm_80"), "|",
      call(lib.attnSupported, CAUSAL, None, ""))
print("supported null:", call(lib.attnSupported, None, None, None),
      lib.attnSupported(CAUSAL.encode(), None, None, None))

# 3. attnEquiv: the tool's text, and a pair that tells masks apart.
MASKS = [("#attn.causal", "#attn.and<#attn.band<right = 0>, #attn.full>"),
         ("#attn.causal", "#attn.causal<bottom_right>"),
         ("#attn.or<#attn.and<#attn.prefix<4>, #attn.causal>, #attn.and<#attn.not<#attn.prefix<4>>, #attn.causal>>",
          "#attn.or<#attn.causal, #attn.and<#attn.causal, #attn.chunk<3>>>"),
         ("#attn.and<#attn.document, #attn.causal>", "#attn.document"),
         ("#attn.heads<#attn.causal, #attn.full>", "#attn.causal"),
         ('#attn.row_interval<begin = "a", end = "b">',
          '#attn.and<#attn.row_interval<begin = "a">, #attn.row_interval<end = "b">>')]
answers = [call(lib.attnEquiv, a, b) for a, b in MASKS]
for (a, b), answer in zip(MASKS, answers):
    assert answer["text"] == tool("--equiv", a, b), answer
assert [answer["verdict"] for answer in answers] == ["equal", "different", "equal", "different", "different", "unknown"]
assert answers[0] == {"verdict": "equal", "forms": ["#attn.causal", "#attn.causal"],
                      "text": "equal: both are #attn.causal\n"}
assert answers[1]["where"] == {"seqlen_q": 1, "seqlen_kv": 2, "row": 0, "key": 1, "head": 0, "heads": 1,
                               "entries": [], "seen_by": "second"}
entries = answers[3]["where"]["entries"]
assert [(entry["array"], entry["position"]) for entry in entries] == [("segment_ids_q", 0), ("segment_ids_kv", 1)]
assert entries[0]["value"] == entries[1]["value"] and answers[3]["where"]["seen_by"] == "second"
where = answers[4]["where"]
assert where["head"] == 1 and where["heads"] == 2 and where["seen_by"] == "first"
for a, b in (("#attn.causal", "#attn.layout<bshd>"), ("#attn.causal", "#attn.band<left = 1, right = -2>"),
             ("", "#attn.causal"), ("#attn.and<#attn.causal, oops>", "#attn.causal"),
             ("#attn.causal #attn.full", "#attn.causal"), ("#attn.not<" * 300, "#attn.causal")):
    print(f"equiv {a[:40]!r}, {b!r}: {call(lib.attnEquiv, a, b)}")
print("equiv null:", call(lib.attnEquiv, None, "#attn.causal"), lib.attnEquiv(b"#attn.full", b"#attn.full", None))

# 4. Several threads at once, each with other calls at each time.
jobs = [lambda t=t, o=o: explain(t, svg=True, **o) for t, o in CASES]
jobs += [lambda: call(lib.attnSupported, BAD, None, "sm_90a")]
jobs += [lambda m=m: call(lib.attnEquiv, *m) for m in MASKS] + [lambda: explain(CAUSAL, batch=-1)]
expected, wrong = [job() for job in jobs], []


def run(thread):
    for i in range(len(jobs)):
        number = (i * 5 + thread) % len(jobs)
        if jobs[number]() != expected[number]:
            wrong.append(number)


threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
assert lib.attnCompileCount() == 0
print("done")
