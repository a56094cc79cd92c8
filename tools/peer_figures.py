# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc beside other libraries, from one recorded run of test/Device/bench_peers.py: for the performance page and for
the README. Text in, text out; performance-page.py reads and writes files."""
import math

from tflops import CELLS, DIMS, LENGTHS, MASKS, cell_name, plot

PASSES = ("forward", "backward")
PEERS = {"fa3": "FlashAttention-3", "fa4": "FlashAttention-4", "cudnn": "cuDNN", "cudnn flex": "cudnn.flex_attention"}
DETERMINISTIC = "attnc deterministic"
HOST_MARK = " (host)"
GROUPS = {"dense": "Full and causal masks", "masks": "Documents and other masks", "scores": "Score modifiers",
          "models": "Shapes of models", "scale": "Long sequences whose rows see few keys"}

# What the project set out to reach: the pass, the case, TFLOP/s at least, or a share of another case.
CAUSAL = "d128 b1 h16 s16384 causal"
GOALS = [("forward", f"{CAUSAL} window1024", 530), ("forward", "d128 h16 docs uneven10 causal", 560),
         ("forward", "d128 h16 T32768 docs128 causal", 350), ("forward", "d128 b16 h16 s1024 causal", 480),
         ("forward", f"{CAUSAL} softcap", (0.9, CAUSAL)), ("forward", f"{CAUSAL} alibi", (0.9, CAUSAL)),
         ("backward", f"{CAUSAL} window1024", 460), ("backward", "d128 h16 docs uneven10 causal", 500),
         ("backward", "d128 h16 T32768 docs128 causal", 300),
         ("backward", f"{CAUSAL} softcap", (0.85, CAUSAL)), ("backward", f"{CAUSAL} alibi", (0.85, CAUSAL))]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Run:
    """`found`: the line of a pass, case and peer. `groups`: the cases of a group, in the order of the run."""

    def __init__(self, lines):
        self.env = next(line for line in lines if line["peer"] == "env")
        self.matmul = next((line["tf"] for line in lines if line["peer"] == "cublas"), None)
        self.found, self.groups = {}, {group: [] for group in GROUPS}
        self.faults = [line for line in lines if "error" in line]
        for line in lines:
            if "pass" not in line or line["peer"] == "any":
                continue
            self.found.setdefault((line["pass"], line["case"], line["peer"]), line)
            if "group" in line and line["case"] not in self.groups[line["group"]]:
                self.groups[line["group"]].append(line["case"])
        self.groups["dense"].sort(key=lambda case: CELLS.index(case) if case in CELLS else len(CELLS))

    def timed(self, which, case, peer):
        line = self.found.get((which, case, peer), {})
        return line if "ms" in line and "error" not in line else None

    def with_host(self, which, case, peer):
        """Does the time have the host's in it? A call that took longer to enqueue than to run was not captured."""
        return "host_bound" in (self.timed(which, case, peer) or {})

    def best(self, which, case):
        """The fastest peer; None without one, and where one's kernels may be faster than its time says."""
        timed = [peer for peer in PEERS if self.timed(which, case, peer)]
        if any(self.with_host(which, case, peer) for peer in timed):
            return None
        return min(timed, key=lambda peer: self.timed(which, case, peer)["ms"], default=None)

    def ratio(self, which, case, peer=None):
        """How many times faster attnc is than a peer, or than the best one; None if the kernels of either were not
        timed."""
        peer = peer or self.best(which, case)
        ours, theirs = self.timed(which, case, "attnc"), self.timed(which, case, peer)
        return theirs["ms"] / ours["ms"] if ours and theirs and not self.with_host(which, case, peer) else None

    def ratios(self, which, group, peer=None):
        return {case: ratio for case in self.groups[group] if (ratio := self.ratio(which, case, peer))}

    def has(self, which, peer, cases):
        return any(self.timed(which, case, peer) for case in cases)

    def rates(self, which):
        return {(case, peer): line["tf"] for (of, case, peer), line in self.found.items()
                if of == which and self.timed(of, case, peer)}


def behind(ratio):
    """Whether a peer is ahead, in three digits."""
    return round(ratio, 3) < 1


def shown(run, which, case, peer, decoding):
    line = run.found.get((which, case, peer), {})
    if run.timed(which, case, peer):
        mark = HOST_MARK if run.with_host(which, case, peer) else ""
        return (f"{line['ms'] * 1e3:.1f}" if decoding else f"{line['tf']:.0f}") + mark
    return "**error**" if "error" in line else "none" if "none" in line else ""


def compared(run, which, case):
    """The ratio to the best peer, which is named where it is ahead."""
    ratio = run.ratio(which, case)
    if not ratio:
        return ""
    return f"**{ratio:.3f}: {PEERS[run.best(which, case)]} is ahead**" if behind(ratio) else f"{ratio:.3f}"


def cases_table(run, which, cases, table, decoding=False):
    peers = [peer for peer in ("attnc", DETERMINISTIC, *PEERS) if run.has(which, peer, cases)]
    names = {"attnc": "attnc", DETERMINISTIC: "deterministic", **PEERS}
    rows = [[case, *(shown(run, which, case, peer, decoding) for peer in peers), compared(run, which, case)]
            for case in cases if any((which, case, peer) in run.found for peer in ("attnc", *PEERS))]
    return [*table(["case", *(names[peer] for peer in peers), "attnc / best peer"], rows), ""] if rows else []


def summary_rows(run):
    for which in PASSES:
        for group, name in GROUPS.items():
            ratios = run.ratios(which, group)
            if ratios:
                least = min(ratios, key=ratios.get)
                lost = sum(map(behind, ratios.values()))
                yield [f"{which}: {name[0].lower()}{name[1:]}", len(ratios), f"{mean(ratios.values()):.3f}",
                       f"{ratios[least]:.3f} ({least})", f"{max(ratios.values()):.3f}", lost or "none"]


SUMMARY = ["attnc / best peer", "cases", "geometric mean", "least", "most", "cases in which a peer is ahead"]


def peer_rows(run):
    for which in PASSES:
        for peer, name in PEERS.items():
            ratios = {case: ratio for group in GROUPS for case, ratio in run.ratios(which, group, peer).items()}
            if ratios:
                yield [f"{which}: {name}", len(ratios), f"{mean(ratios.values()):.3f}", f"{min(ratios.values()):.3f}",
                       f"{max(ratios.values()):.3f}"]


def goal_rows(run):
    for which, case, goal in GOALS:
        share, other = goal if isinstance(goal, tuple) else (None, None)
        line, of = run.timed(which, case, "attnc"), run.timed(which, other, "attnc") if share else {"tf": 1}
        if not line or not of:
            continue
        reached = line["tf"] / of["tf"]
        yield [f"{which}: {case}", f"{share} of plain causal" if share else goal,
               f"{reached:.3f}" if share else f"{reached:.0f}", "yes" if reached >= (share or goal) else "**no**"]


def versions(env):
    names = {**PEERS, "cutlass dsl": "CUTLASS DSL"}
    more = [f"{names.get(name, name)} {version}" for name, version in env.get("versions", {}).items()]
    return ", ".join([f"torch {env['torch']}", f"cuDNN {env['cudnn']}", f"CUDA {env['cuda']}", *more])


def pass_section(run, which, table):
    if not any(run.timed(which, case, "attnc") for cases in run.groups.values() for case in cases):
        return []
    counted = ", at 2.5 times the operations of the forward pass" if which == "backward" else ""
    page = [f"## Hopper, {which}", "",
            f"TFLOP/s on visible pairs{counted}, in the run above. `none`: the library has no kernel for the case.", "",
            f"![TFLOP/s over sequence length](plots/hopper-{which}.svg)", ""]
    for group, name in GROUPS.items():
        decoding = [case for case in run.groups[group] if case.startswith("decode")]
        rows = cases_table(run, which, [case for case in run.groups[group] if case not in decoding], table)
        page += [f"{name}:", "", *rows] if rows else []
        rows = cases_table(run, which, decoding, table, decoding=True)
        page += ["Decoding, in microseconds:", "", *rows] if rows else []
    return page


def ahead(run):
    """The cases in which a peer is faster."""
    found = [f"{which}, {case} ({ratio:.3f}, {PEERS[run.best(which, case)]})" for which in PASSES for group in GROUPS
             for case, ratio in run.ratios(which, group).items() if behind(ratio)]
    return "A peer is ahead in: " + "; ".join(found) + "." if found else "No peer is ahead in any case."


def fault(line):
    where = ", ".join(part for part in (line.get("case"), line.get("pass")) if part)
    return f"- {PEERS.get(line['peer'], line['peer'])}, {where}: {line['error']}"


def how(run, file):
    env = run.env
    bound = sum(run.with_host(*key) for key in run.found)
    errors = [line["rel_err_vs_float64"] for line in run.found.values() if "rel_err_vs_float64" in line]
    matmul = f" (a bf16 8192^3 matmul ran at {run.matmul} TFLOP/s in it)" if run.matmul else ""
    return " ".join([
        f"{env['gpu']}, {versions(env)}, {env['date']}, commit `{env['commit']}`; raw lines: [{file}](results/{file}); "
        "`test/Device/bench_peers.py`.",
        f"All libraries ran in this one run, bf16, and took turns; a figure is the median of {env['rounds']} "
        f"rounds{matmul}.",
        "Calls that the host could not enqueue fast enough were replayed from CUDA graphs.",
        *([f"{bound} of them could not be captured: these times, marked `{HOST_MARK.strip()}`, have the host's in "
           "them, and their cases have no best peer."] if bound else []),
        *([f"Each result was compared with float64 before it was timed: errors are at most {max(errors):.4f} "
           "(relative, 2-norm)."] if errors else []),
        "cuDNN runs through torch's `scaled_dot_product_attention`.",
        "The wheel of FlashAttention-3 has no backward pass and no windows.",
        "cudnn.flex_attention makes a plan of the mask ahead of its kernels, which is not in its time."])


def page(run, file, table):
    goals = list(goal_rows(run))
    return [
        "## Hopper, beside other libraries", "", how(run, file), "",
        *table(SUMMARY, summary_rows(run)), "",
        *table(["attnc / peer", "cases", "geometric mean", "least", "most"], peer_rows(run)), "",
        ahead(run), "",
        *(["Errors:", "", *map(fault, run.faults), ""] if run.faults else []),
        *([*table(["figure to reach", "goal (TFLOP/s)", "measured", "reached"], goals), ""] if goals else []),
        *(line for which in PASSES for line in pass_section(run, which, table))]


def plots(run):
    """By the pass."""
    names = {"attnc": "attnc", DETERMINISTIC: "attnc, deterministic",
             **{p: n for p, n in PEERS.items() if p != "cudnn flex"}}
    for which in PASSES:
        rates = run.rates(which)
        drawn = {peer: name for peer, name in names.items() if any(of == peer for _, of in rates)}
        measured = f"{run.env['gpu']}, {run.env['date']}, commit {run.env['commit']}"
        yield which, plot(rates, drawn, measured) if drawn else None


def readme(run, table):
    """Few enough rows to be read."""
    def cell(which, name):
        ours, ratio = run.timed(which, name, "attnc"), run.ratio(which, name)
        if not ours:
            return ""
        return f"{ours['tf']:.0f}" + (f" ({f'**{ratio:.2f}**' if behind(ratio) else f'{ratio:.2f}'})" if ratio else "")
    rows = [[f"d {d}, {m}", *(cell(which, cell_name(d, s, m)) for which in PASSES for s in LENGTHS)]
            for d in DIMS for m in MASKS]
    gpu = run.env["gpu"].removeprefix("NVIDIA ")
    return ["",
            f"On an {gpu}, bf16: TFLOP/s, and in brackets how many times as fast as the best of FlashAttention-3 "
            "(forward), FlashAttention-4 and cuDNN in the same run; bold where one of them is ahead.", "",
            *table(["", *(f"{which}, s {s}" for which in PASSES for s in LENGTHS)], rows), "",
            "All cases by groups; cudnn.flex_attention runs beside the others for masks:", "",
            *table(SUMMARY, summary_rows(run)), "",
            f"Measured {run.env['date']} at `{run.env['commit']}`, written by `tools/performance-page.py`; every case, "
            "and how: [docs/Performance.md](docs/Performance.md).", ""]
