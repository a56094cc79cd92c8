// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/Explain.h"
#include "llvm/Support/Format.h"

using namespace attn;

/// `12.3 GB`
static std::string scaled(double number, const char *unit) {
  const char *prefixes[] = {"", "K", "M", "G", "T", "P"};
  int i = 0;
  for (; number >= 1000 && i < 5; ++i)
    number /= 1000;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(number < 10 && i ? "%.2f " : "%.0f ", number) << prefixes[i] << unit;
  return text;
}

static double percent(double part, double of) { return of > 0 ? 100 * part / of : 0; }

static double computeSeconds(const Explanation &e) { return e.visitedFlops / (e.tflops * 1e12); }
static double memorySeconds(const Explanation &e) { return e.bytes / (e.gbps * 1e9); }

double Explanation::milliseconds() const { return 1e3 * std::max(computeSeconds(*this), memorySeconds(*this)); }

static void printRefusal(llvm::raw_ostream &os, const Explanation &e, const Explanation::Pass &pass) {
  if (pass.refusal)
    os << "refused   by " << e.target << ": " << *pass.refusal
       << "\n          (--supported names the nearest problem with a kernel); with one it would be\n";
}

static void printCounts(llvm::raw_ostream &os, const Explanation &e) {
  const TileCounts &counts = e.counts;
  os << llvm::format("tiles     %.0f of %.0f visited: %.0f full, %.0f partial", counts.visited, counts.tiles,
                     counts.full, counts.visited - counts.full);
  if (counts.empty >= 0)
    os << llvm::format("; %.0f of these are empty", counts.empty);
  os << llvm::format("\npairs     %s%.0f of %.0f visible (%.1f %%), %.1f %% of those in visited tiles\n",
                     counts.exact ? "" : "about ", counts.visible, counts.pairs, percent(counts.visible, counts.pairs),
                     percent(e.visibleFlops, e.visitedFlops));
  os << "work      " << scaled(e.visibleFlops, "FLOP") << " for visible pairs, " << scaled(e.visitedFlops, "FLOP")
     << " for visited tiles; " << scaled(e.bytes, "B") << " to read and write at least\n";
  os << llvm::format("time      at least %.4g ms, for %s (at %g TFLOP/s and %g GB/s)\n", e.milliseconds(),
                     computeSeconds(e) >= memorySeconds(e) ? "visited tiles" : "bytes", e.tflops, e.gbps);
}

std::string Explanation::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "mask      " << mask << "\n";
  if (canonicalMask != mask)
    os << "that is   " << canonicalMask << "\n";
  os << "sizes     " << sequences << " sequences; " << heads << " query heads, " << kvHeads << " kv heads; head dims "
     << dimQk << " and " << dimV << "\n";
  printRefusal(os, *this, forward);
  os << "forward   " << forward.schedule << "\n";
  for (const Pass &pass : backward) {
    printRefusal(os, *this, pass);
    os << "backward  @" << pass.name << ": " << pass.schedule << "\n";
  }
  os << "kernel    " << (backward.empty() ? "" : "of the forward pass, as all below: ") << "tiles of " << qTile
     << " rows x " << kvTile << " keys";
  if (rowStride != 1)
    os << ", " << rowStride << " positions apart";
  if (!config.empty())
    os << ": " << config;
  if (describesLongSequences)
    os << ";\n          short sequences have a kernel of their own, which map and counts leave out";
  if (!lists.empty())
    os << "\nlists     " << lists;
  os << "\nmap       of sequence " << sequence << " as head " << head << " sees it: " << seqlenQ << " queries down, "
     << seqlenKv << " keys across";
  if (!clause.empty())
    os << ", as `" << clause << "` says";
  os << ";\n          " << map;
  printCounts(os, *this);
  return text;
}
