# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the texts of long-texts.test into a folder. With --check: what tools printed has no long line, and carets are
where the errors are."""
import sys

PROBLEM = "attn.problem @p mask(%s) layout(bshd) heads(4) dims(64) dtype(bf16)"


def write(name, text):
    with open(f"{sys.argv[1]}/{name}.mlir", "w") as file:
        file.write(text + "\n")


def check(names):
    for name in names:
        with open(name) as file:
            lines = file.read().splitlines()
        assert max(map(len, lines)) <= 1000, (name, max(map(len, lines)))
        for line, caret in zip(lines, lines[1:]):
            if caret.strip() == "^" and "casual" in line:
                assert line[caret.index("^"):].startswith("casual>"), (name, line, caret)


def main():
    if sys.argv[1] == "--check":
        return check(sys.argv[2:])
    many = ", ".join(["#attn.prefix<7>"] * 17645)  # 300,000 characters
    write("long", "// the first line\n" + PROBLEM % f"#attn.or<{many}, #attn.casual>")
    score = " + ".join(["s"] + ["1.5"] * 150)
    text = PROBLEM % "#attn.causal" + " score([%s])" % ", ".join([f'#attn.score<"{score}">'] * 6)
    write("verifier", text.replace("dims(64)", "dims(36)"))
    write("pass", text.replace("dims(64)", "dims(64) tiles(64)").replace("layout(bshd)", "layout(thd)"))
    write("short", PROBLEM % "#attn.casual")
    write("expected", "// expected-error @below {{unknown attribute `casual` in dialect `attn`}}\n" +
          PROBLEM % f"#attn.or<{', '.join(['#attn.prefix<7>'] * 100)}, #attn.casual>")
    deep = 3_000_000
    write("nots", PROBLEM % ("#attn.not<" * deep + "#attn.causal" + ">" * deep))
    write("arrays", PROBLEM % "#attn.causal" + " score(" + "[" * deep + "]" * deep + ")")
    write("modules", "module { " * deep + "}" * deep)
    write("nested", PROBLEM % ("#attn.not<" * 254 + "#attn.causal" + ">" * 254))
    brackets = "(" * 300
    note = f' {{attn.note = "{brackets} \\"{brackets}"}}'
    write("quoted", f"// {brackets}\n" + PROBLEM % '#attn.predicate<"q < k">' + note)


main()
