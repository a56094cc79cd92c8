// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"
#include "Random.h"
#include <fmt/format.h>

using namespace attn::fuzz;

//===--------------------------------------------------------------------===//
// Masks
//===--------------------------------------------------------------------===//

enum MaskClass {
  Full,
  CausalTopLeft,
  CausalBottomRight,
  Band,
  BandBottomRight,
  BandLeft,
  BandLeftBottomRight,
  BandRight,
  BandRightBottomRight,
  BandNegativeLeft,
  BandNegativeRight,
  BandNegativeBottomRight,
  PrefixConstant,
  PrefixArray,
  Document, // the last leaf
  AndOfTwo,
  OrOfTwo,
  PrefixLm,
  DocumentAnd,
  AnyDepth2,
  AnyDepth3,
  AnyDepth3Again
};
static constexpr int maskClasses = 22, layoutClasses = 9;
static const char *const maskNames[maskClasses] = {
    "full",         "causal",       "causal/br",     "band",        "band/br",      "band left",
    "band left/br", "band right",   "band right/br", "band left<0", "band right<0", "band <0/br",
    "prefix",       "prefix array", "document",      "and",         "or",           "prefix-lm",
    "document and", "depth 2",      "depth 3",       "depth 3"};

/// How far a band reaches: next to the diagonal, about a tile, beyond it all.
static int64_t reach(Random &random) {
  return random.pick<int64_t>(
      {0, 1, random.between(2, 20), random.between(50, 80), 63, 64, random.between(100, 200), 1 << 30});
}

static std::string leaf(Random &random, int maskClass) {
  const char *corner = maskClass == CausalBottomRight || maskClass == BandBottomRight ||
                               maskClass == BandLeftBottomRight || maskClass == BandRightBottomRight ||
                               maskClass == BandNegativeBottomRight
                           ? "bottom_right"
                           : "top_left";
  int64_t a = reach(random), b = reach(random), shift = random.between(1, 90);
  switch (maskClass) {
  case Full:
    return "#attn.full";
  case CausalTopLeft:
  case CausalBottomRight:
    return fmt::format("#attn.causal<{}>", corner);
  case Band:
  case BandBottomRight:
    return fmt::format("#attn.band<left = {}, right = {}, {}>", a, b, corner);
  case BandLeft:
  case BandLeftBottomRight:
    return fmt::format("#attn.band<left = {}, {}>", random.oneIn(3) ? -shift : a, corner);
  case BandRight:
  case BandRightBottomRight:
    return fmt::format("#attn.band<right = {}, {}>", random.oneIn(3) ? -shift : b, corner);
  case BandNegativeLeft:
    return fmt::format("#attn.band<left = {}, right = {}>", -shift, shift + random.between(0, 70));
  case BandNegativeRight:
    return fmt::format("#attn.band<left = {}, right = {}>", shift + random.between(0, 70), -shift);
  case BandNegativeBottomRight:
    return random.oneIn(2)
               ? fmt::format("#attn.band<left = {}, right = {}, bottom_right>", -shift, shift + random.between(0, 70))
               : fmt::format("#attn.band<left = {}, right = {}, bottom_right>", shift + random.between(0, 70), -shift);
  case PrefixConstant:
    return fmt::format("#attn.prefix<{}>", random.oneIn(4) ? 0 : reach(random));
  case PrefixArray:
    return fmt::format("#attn.prefix<\"{}\">", random.pick<const char *>({"prefix_lengths", "sinks"}));
  default:
    return "#attn.document";
  }
}

static std::string expression(Random &random, int depth, bool documents) {
  if (depth == 0)
    return leaf(random, random.between(Full, documents ? Document : PrefixArray));
  std::string text = random.oneIn(2) ? "#attn.and<" : "#attn.or<";
  for (int64_t i = 0, n = random.between(2, 3); i < n; ++i) // the first goes all the way down
    text += (i ? ", " : "") + expression(random, i == 0 ? depth - 1 : random.between(0, depth - 1), documents);
  return text + ">";
}

static std::string mask(Random &random, int maskClass, bool documents) {
  auto any = [&] { return expression(random, 0, documents); };
  switch (maskClass) {
  case AndOfTwo:
    return fmt::format("#attn.and<{}, {}>", any(), any());
  case OrOfTwo:
    return fmt::format("#attn.or<{}, {}>", any(), any());
  case PrefixLm:
    return fmt::format("#attn.or<{}, {}>", leaf(random, random.between(PrefixConstant, PrefixArray)),
                       leaf(random, random.pick<int>({CausalTopLeft, CausalBottomRight, Band, BandLeft})));
  case DocumentAnd:
    return fmt::format("#attn.and<#attn.document, {}>", expression(random, random.between(0, 1), true));
  case AnyDepth2:
    return expression(random, 2, documents);
  case AnyDepth3:
  case AnyDepth3Again:
    return expression(random, 3, documents);
  default:
    return leaf(random, maskClass);
  }
}

//===--------------------------------------------------------------------===//
// Masks that came later
//===--------------------------------------------------------------------===//

// What a seed means stays: seeds below this know the masks above only. From here
// on each kernel combines the one that its seed has always meant with these.
static constexpr uint64_t firstLaterSeed = 1'000'000'000; // attn-fuzz --seed=1000

static constexpr int laterKinds = 8;
static const char *const laterNames[laterKinds] = {"chunk", "strided", "and later", "or later",
                                                   "not",   "diff",    "diff of",   "any later"};

static std::string laterLeaf(Random &random) {
  const char *corner = random.oneIn(2) ? ", bottom_right" : "";
  int64_t size = random.pick<int64_t>(
      {1, 2, 3, 4, random.between(5, 20), random.between(50, 80), 63, 64, 65, 128, random.between(100, 400), 1 << 29});
  if (random.oneIn(2))
    return fmt::format("#attn.chunk<{}{}>", size, corner);
  return fmt::format("#attn.strided<stride = {}, offset = {}{}>", size,
                     random.oneIn(2) ? 0 : random.between(0, std::min<int64_t>(size, 500) - 1), corner);
}

static std::string laterExpression(Random &random, int64_t depth, bool documents) {
  if (depth == 0)
    return random.oneIn(2) ? laterLeaf(random) : leaf(random, random.between(Full, documents ? Document : PrefixArray));
  auto part = [&](bool first) {
    return laterExpression(random, first ? depth - 1 : random.between(0, depth - 1), documents);
  };
  std::string one = part(true);
  if (random.oneIn(4))
    return "#attn.not<" + one + ">";
  const char *connective = random.pick<const char *>({"and", "or", "diff"});
  return fmt::format("#attn.{}<{}, {}>", connective, one, part(false));
}

static std::string laterMask(Random &random, int kind, const std::string &mask, bool documents) {
  switch (kind) {
  case 0:
  case 1: {
    std::string leaf;
    do
      leaf = laterLeaf(random);
    while (leaf.find(laterNames[kind]) == std::string::npos);
    return random.oneIn(3) ? fmt::format("#attn.and<{}, #attn.causal>", leaf) : leaf;
  }
  case 2:
    return fmt::format("#attn.and<{}, {}>", mask, laterLeaf(random));
  case 3:
    return fmt::format("#attn.or<{}, {}>", laterLeaf(random), mask);
  case 4:
    return fmt::format("#attn.not<{}>", mask);
  case 5:
    return fmt::format("#attn.diff<{}, {}>", mask, laterExpression(random, random.between(0, 1), documents));
  case 6:
    return fmt::format("#attn.diff<{}, {}>", laterExpression(random, random.between(0, 1), documents), mask);
  default:
    return laterExpression(random, random.between(2, 3), documents);
  }
}

//===--------------------------------------------------------------------===//
// Masks that came after these: run-time arrays of bounds, masks of heads
//===--------------------------------------------------------------------===//

static constexpr uint64_t firstArraySeed = 2'000'000'000; // attn-fuzz --seed=2000

static constexpr int arrayKinds = 10;
static const char *const arrayNames[arrayKinds] = {"global rows", "row interval", "column interval", "tree",
                                                   "document",    "predicate",    "heads",           "and array",
                                                   "diff array",  "any array"};

static std::string predicateLeaf(Random &random) {
  int64_t n = random.pick<int64_t>({1, 2, 3, 7, 64, 65, random.between(2, 300)}), m = random.between(0, 90);
  return random.pick<std::string>(
      {fmt::format("#attn.predicate<\"(q - k) % {} <= {} && k <= q + {}\">", n, m % n, m),
       fmt::format("#attn.predicate<\"kind_q[q] == kind_k[k] || (k + {0}) % {1} < 1 && (q + {0}) % {1} != 0 || abs(q - "
                   "k) < {0}\">",
                   m, n),
       fmt::format("#attn.predicate<\"h % 2 == 0 ? q / {0} == k / {0} : min(q, {1}) >= k - {1}\">", n, m),
       fmt::format("#attn.predicate<\"q + len_k - len_q >= k && !(k / {} == some[b] % 7)\">", n),
       fmt::format("#attn.predicate<\"(h < 2 ? k : max(k, marks[h, q])) * -1 < {} - q && level[g, k] > -2\">", m)});
}

// Predicates of bits, shifts and entries of heads, likewise.
static constexpr uint64_t firstBitSeed = 10'000'000'000; // attn-fuzz --seed=10000

/// An integer; with `depth` 3 within 60 bits.
static std::string integerOf(Random &random, int depth) {
  int64_t bit = random.between(0, 9),
          number = random.pick<int64_t>({0, 1, 3, 7, 8, 12, 63, -64, -1, 5'000'000'000, random.between(-99, 300)});
  if (depth == 0)
    return random.pick<std::string>({"q", "k", "q - k", "q + len_k - len_q", "h", "b", "kind_q[q]", "kind_k[k]",
                                     "some[b]", "marks[h, q]", "level[g, k]", "of_head[h]", "of_kv_head[g]",
                                     std::to_string(number)});
  std::string a = "(" + integerOf(random, depth - 1) + ")",
              b = "(" + integerOf(random, random.between(0, depth - 1)) + ")";
  return random.pick<std::string>(
      {fmt::format("{} & {}", a, b), fmt::format("{} | {}", a, b), fmt::format("{} ^ {}", a, b),
       fmt::format("{} & {}", a, number), fmt::format("{} | {}", number, b), fmt::format("{} ^ {}", a, number),
       fmt::format("{} >> {}", a, bit), fmt::format("{} << {}", a, bit), "~" + a, fmt::format("{} % {}", a, 1 + bit),
       fmt::format("min({}, {})", a, b), fmt::format("{} - {}", a, b)});
}

static std::string bitPredicate(Random &random) {
  int64_t bit = random.between(0, 7), mask = random.between(1, 127), other = random.between(0, 63);
  auto compare = [&] {
    std::string a = integerOf(random, random.between(1, 3)), b = integerOf(random, random.between(0, 2));
    return fmt::format("({}) {} ({})", a, random.pick<const char *>({"==", "!=", "<", "<=", ">", ">="}), b);
  };
  std::string one = compare(), two = compare();
  return "#attn.predicate<\"" +
         random.pick<std::string>({fmt::format("(q >> {0} & 1) == (k >> {0} & 1)", bit),
                                   fmt::format("(kind_q[q] & kind_k[k]) != 0 || (q ^ k) < {}", mask),
                                   fmt::format("(k & {}) <= (q | {}) && (of_head[h] & k >> {}) == 0", mask, other, bit),
                                   fmt::format("q - of_head[h] < k || (k & -{}) == (q & -{})", 1 << bit, 1 << bit),
                                   fmt::format("((of_kv_head[g] ^ ~q) & {}) != 0", mask), one, one + " && " + two,
                                   one + " || " + two}) +
         "\">";
}

static std::string arrayLeaf(Random &random, int64_t kind) {
  auto interval = [&](const char *axis) {
    const char *ofHeads = random.pick<const char *>({"", "", ", per_head", ", per_kv_head"});
    const char *suffix = ofHeads[0] ? ofHeads + 6 : "shared"; // arrays of one name have one shape
    std::string begin = fmt::format("begin = \"{}_begin_{}\"", axis, suffix);
    std::string end = fmt::format("end = \"{}_end_{}\"", axis, suffix);
    return fmt::format("#attn.{}_interval<{}{}>", axis,
                       random.pick<std::string>({begin, end, begin + ", " + end, begin + ", " + end}), ofHeads);
  };
  switch (kind) {
  case 0:
    return random.oneIn(2) ? "#attn.global_rows<\"globals\">"
                           : fmt::format("#attn.global_rows<{}>", random.pick<int64_t>({0, 1, 64, 70, 1 << 30}));
  case 1:
    return interval("row");
  case 2:
    return interval("column");
  case 3:
    return "#attn.tree<\"node\", \"first\", \"behind\">";
  case 5:
    return predicateLeaf(random);
  default:
    return random.oneIn(2) ? "#attn.document" : "#attn.document<\"own_q\", \"own_kv\">";
  }
}

/// Any mask, of these and of those before.
static std::string arrayExpression(Random &random, int64_t depth, int64_t heads) {
  if (depth == 0)
    return random.oneIn(2) ? arrayLeaf(random, random.between(0, 5)) : laterExpression(random, 0, true);
  auto part = [&](bool first) {
    return arrayExpression(random, first ? depth - 1 : random.between(0, depth - 1), heads);
  };
  std::string one = part(true);
  switch (random.between(0, heads > 1 ? 4 : 3)) {
  case 0:
    return "#attn.not<" + one + ">";
  case 1:
    return fmt::format("#attn.and<{}, {}>", one, part(false));
  case 2:
    return fmt::format("#attn.or<{}, {}>", one, part(false));
  case 3:
    return fmt::format("#attn.diff<{}, {}>", one, part(false));
  default:
    int64_t groups = 2;
    while (heads % groups)
      ++groups;
    std::string text = "#attn.heads<" + one;
    for (int64_t i = 1; i < groups; ++i)
      text += ", " + part(false);
    return text + ">";
  }
}

static std::string arrayMask(Random &random, int kind, const std::string &mask, int64_t heads) {
  if (kind < 6) {
    std::string leaf = arrayLeaf(random, kind);
    return random.oneIn(3) ? fmt::format("#attn.and<{}, #attn.causal>", leaf) : leaf;
  }
  if (kind == 6 && heads % 2 == 0)
    return fmt::format("#attn.heads<{}, {}>", mask, arrayExpression(random, random.between(0, 1), heads));
  if (kind == 7)
    return fmt::format("#attn.and<{}, {}>", arrayLeaf(random, random.between(0, 5)), mask);
  if (kind == 8)
    return fmt::format("#attn.diff<{}, {}>", mask, arrayLeaf(random, random.between(0, 5)));
  return arrayExpression(random, random.between(1, 3), heads);
}

// Dropout, with all of the above but block maps.
static constexpr uint64_t firstDropSeed = 4'000'000'000; // attn-fuzz --seed=4000

// Trees by parents, with those of all the others and dropout.
static constexpr uint64_t firstTreeSeed = 5'000'000'000; // attn-fuzz --seed=5000

// Block maps, likewise: with those of all the others.
static constexpr uint64_t firstMapSeed = 3'000'000'000; // attn-fuzz --seed=3000

static constexpr int mapKinds = 7;
static const char *const mapNames[mapKinds] = {"map",      "map, causal", "and map",  "or map",
                                               "diff map", "not map",     "map heads"};
static const char *const treeNames[mapKinds] = {"ancestors",      "ancestors, causal", "and ancestors",  "or ancestors",
                                                "diff ancestors", "not ancestors",     "ancestors heads"};

static const char *const bitNames[mapKinds] = {"bits",      "bits, causal", "and bits",  "or bits",
                                               "diff bits", "not bits",     "bits heads"};

static std::string treeLeaf(Random &) { return "#attn.ancestors<\"parent\">"; }

static std::string mapLeaf(Random &random) {
  int64_t index = random.between(0, 3);
  const char *lines[] = {"", ", per_sequence", ", per_sequence, per_head", ", per_kv_head"};
  auto size = [&] { return random.pick<int64_t>({16, 32, 64, 64, 128, 128, 256, random.between(1, 300)}); };
  std::string q = std::to_string(size()), kv = std::to_string(size());
  // Arrays of one name are of one map.
  if (random.oneIn(3)) {
    const char *heads[] = {", shared", "", ", per_head", ""};
    return fmt::format("#attn.block_list<\"lists_{0}_{1}_{2}\", rows = {1}, keys = {2}{3}>", index, q, kv,
                       heads[index]);
  }
  return fmt::format("#attn.block_map<\"offsets_{0}_{1}_{2}\", \"columns_{0}_{1}_{2}\", q = {1}, kv = {2}{3}>", index,
                     q, kv, lines[index]);
}

static std::string mapMask(Random &random, int kind, const std::string &mask, int64_t heads,
                           std::string (*leaf)(Random &) = mapLeaf) {
  std::string map = leaf(random);
  switch (kind) {
  case 0:
    return map;
  case 1:
    return fmt::format("#attn.and<#attn.causal, {}>", map);
  case 2:
    return fmt::format("#attn.and<{}, {}>", mask, map);
  case 3:
    return fmt::format("#attn.or<{}, {}>", map, mask);
  case 4:
    return fmt::format("#attn.diff<{}, {}>", mask, map);
  case 5:
    return fmt::format("#attn.not<{}>", map);
  default:
    return heads % 2 ? fmt::format("#attn.or<{}, #attn.and<{}, {}>>", map, leaf(random), mask)
                     : fmt::format("#attn.heads<{}, {}>", map, random.oneIn(2) ? leaf(random) : mask);
  }
}

//===--------------------------------------------------------------------===//
// Everything else
//===--------------------------------------------------------------------===//

static const char *dense(Random &random) { return random.pick<const char *>({"bshd", "sbhd", "bhsd"}); }

/// Of q, k, v, o; the first three classes and `orders` are dense.
static std::pair<std::string, const char *> layout(Random &random, int layoutClass) {
  std::string q = dense(random), k = dense(random), v = dense(random), o = dense(random);
  const char *packed = random.pick<const char *>({"thd", "thd padded"}), *other = packed[3] ? "thd" : "thd padded";
  switch (layoutClass) {
  case 0:
    return {"bshd", "bshd"};
  case 1:
    return {"sbhd", "sbhd"};
  case 2:
    return {"bhsd", "bhsd"};
  case 3:
    return {fmt::format("{}, {}, {}, {}", q, k, v, o), "orders"};
  case 4:
    return {"thd", "thd"};
  case 5:
    return {"thd padded", "padded"};
  case 6:
    return {fmt::format("{0}, {1}, {2}, {0}", packed, k, v), "packed/dense"};
  case 7:
    return {fmt::format("{1}, {0}, {0}, {2}", packed, q, o), "dense/packed"};
  default:
    return {fmt::format("{0}, {1}, {1}, {0}", packed, other), "thd/padded"};
  }
}

KernelCase attn::fuzz::makeKernel(uint64_t seed, bool hasFloat32) {
  Random random(seed);
  int row = seed / maskClasses % 9, maskClass = seed % maskClasses;
  int layoutClass = (row + maskClass) % layoutClasses;
  bool needsDense = maskClass == Document || maskClass == DocumentAnd;
  if (needsDense)
    layoutClass %= 4;
  auto [layouts, layoutName] = layout(random, layoutClass);

  int headClass = (row + maskClass / 3) % 3; // MHA, GQA, MQA
  int64_t kvHeads = headClass == 2 ? 1 : random.between(headClass == 1 ? 2 : 1, 3);
  int64_t heads = kvHeads * (headClass == 0 ? 1 : random.pick<int64_t>({2, 3, 4, 8 / kvHeads}));
  const char *dtype = hasFloat32 && seed % 4 == 1 ? "f32" : (row + maskClass + maskClass / 9) % 2 ? "bf16" : "f16";

  int64_t dimQk = 8 * (1 + seed * 7 % 32), dimV = seed / 2 % 2 ? dimQk : 8 * (1 + (seed * 11 + 5) % 32);
  if (random.oneIn(3)) // what people use
    dimV = dimQk = random.pick<int64_t>({64, 80, 96, 128, 192, 256});

  std::string scale;
  switch (seed / 3 % 8) {
  case 1:
    scale = fmt::format(" scale({:.6e})", random.magnitude(-2, 0.5));
    break;
  case 3:
    scale = fmt::format(" scale({:.6e})", -random.magnitude(-2, 0));
    break;
  case 5:
    scale = " scale(0.0)";
    break;
  }
  // From numbers of their own: the seeds' kernels are otherwise what they were before.
  Random modifiers(seed, 1);
  std::string softcap = fmt::format("#attn.softcap<{:.6e}>", modifiers.magnitude(-1, 3.5));
  std::string alibi = modifiers.pick<const char *>(
      {"#attn.alibi", "#attn.alibi<bottom_right>", "#attn.alibi<\"slopes\">", "#attn.alibi<\"slopes\", bottom_right>"});
  std::string score, scoreName = "no modifier";
  switch ((seed / maskClasses * 3 + seed) % 8) {
  case 0:
    score = softcap, scoreName = "softcap";
    break;
  case 2:
    score = alibi, scoreName = "alibi";
    break;
  case 5:
    score = modifiers.oneIn(2) ? softcap + ", " + alibi : alibi + ", " + softcap, scoreName = "both";
    break;
  }
  if (!score.empty())
    score = " score([" + score + "])";

  // Other tile sizes on targets that look at it.
  std::string outputs = seed / 5 % 4 == 0 ? " outputs(o)" : "";
  // Other tile sizes, on targets that look at it.
  outputs += modifiers.pick<const char *>({"", "", " expected_seqlen(256)", " expected_seqlen(16384)"});
  std::string maskText = mask(random, maskClass, layoutClass < 4);
  const char *maskName = maskNames[maskClass];
  if (seed >= firstArraySeed) {
    Random later(seed, 3);
    int kind = (row + maskClass / 2) % arrayKinds;
    maskText = arrayMask(later, kind, maskText, heads);
    maskName = arrayNames[kind];
    bool bits = seed >= firstBitSeed, trees = seed >= firstTreeSeed && !bits;
    if (bits || trees || (seed >= firstMapSeed && seed < firstDropSeed)) {
      kind = (row + maskClass / 2) % mapKinds;
      maskText = mapMask(later, kind, maskText, heads, bits ? bitPredicate : trees ? treeLeaf : mapLeaf);
      maskName = (bits ? bitNames : trees ? treeNames : mapNames)[kind];
    }
  } else if (seed >= firstLaterSeed) {
    Random later(seed, 2);
    int kind = (row + maskClass / 2) % laterKinds;
    maskText = laterMask(later, kind, maskText, layoutClass < 4);
    maskName = laterNames[kind];
  }
  if (seed >= firstArraySeed && seed % 3 == 0) {
    Random later(seed, 4);
    bool dense = layoutClass < 4;
    int64_t reach = later.pick<int64_t>({1, 5, 64, 300});
    std::string some[] = {
        "#attn.head_scale<\"temperatures\">",
        fmt::format("#attn.relative_bias<\"table\", {}{}>", reach, later.oneIn(2) ? ", bottom_right" : ""),
        fmt::format("#attn.bias<\"bias\", {}>", dense ? later.pick<const char *>({"bhqk", "hqk", "qk", "bk", "q", "b"})
                                                      : later.pick<const char *>({"bh", "h", "b"}))};
    const char *names[] = {"head scale", "relative bias", "bias"};
    int64_t one = seed / 3 % 3, other = later.between(0, 2);
    std::string list = some[one];
    if (Random functions(seed, 6); functions.oneIn(3)) {
      std::string entry = dense
                              ? functions.pick<const char *>({"gates[h]", "gates[q, k]", "gates[b, k]", "gates[h, q]"})
                              : functions.pick<const char *>({"gates[h]", "gates[b, h]"});
      some[other] =
          "#attn.score<\"" +
          functions.pick<std::string>({fmt::format("s + tanh({} * 0.5) - log(1.0 + abs(q - k) / 8.0)", entry),
                                       fmt::format("s < {0} ? s : {0} + 0.25 * (s - {0})", entry),
                                       fmt::format("h % 2 == 0 ? min(s, 30.0) : s * (1.5 + tanh({})) / 2.0", entry)}) +
          "\">";
    }
    if (other != one)
      list += ", " + some[other];
    score = fmt::format(" score([{}])", later.oneIn(3) ? list + ", " + softcap : list), scoreName = names[one];
  }
  std::string sink;
  if (Random later(seed, 5); seed >= firstArraySeed && later.oneIn(3))
    sink = later.oneIn(3) ? fmt::format(" sink({:.6e})", later.pick<double>({0, -3, 20, later.magnitude(-2, 2)}))
                          : " sink(\"sinks_of_heads\")";
  std::string dropout;
  if (Random later(seed, 7); seed >= firstDropSeed)
    dropout = fmt::format(" dropout({:.6e}, \"drop_words\")",
                          later.pick<double>({0.1, 0.1, 0.3, 0.5, 0.9, 0x1p-15, 0.97, 0.999}));
  const char *headNames[] = {"mha", "gqa", "mqa"};
  std::string text =
      fmt::format("attn.problem @fuzz mask({}) layout({}) heads({}, {}) dims({}, {}) dtype({}){}{}{}{}{}", maskText,
                  layouts, heads, kvHeads, dimQk, dimV, dtype, scale, score, sink, dropout, outputs);
  return {text, maskName, layoutName, headNames[headClass], scoreName};
}
