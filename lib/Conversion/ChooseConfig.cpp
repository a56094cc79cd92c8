// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ChooseConfig.h"
#include "attn/Conversion/KeyWalk.h"
#include "attn/Conversion/Schedule.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace attn;

int64_t attn::clusterOf(llvm::StringRef target) { return target == "sm_90a" ? 16 : 1; }

llvm::ArrayRef<int64_t> attn::chipsOf(llvm::StringRef target) {
  static constexpr int64_t ampere[] = {80, 86, 87, 89, 90, 100, 120}, hopper[] = {90}, host[] = {0};
  if (target == "sm_80")
    return ampere;
  return target == "sm_90a" ? llvm::ArrayRef(hopper) : target == "cpu" ? llvm::ArrayRef(host) : llvm::ArrayRef<int64_t>();
}

std::string attn::textOfChips(llvm::StringRef target) {
  llvm::ArrayRef<int64_t> chips = chipsOf(target);
  std::string text;
  for (int64_t chip : chips)
    text += (text.empty() ? "" : chip == chips.back() ? " or " : ", ") + std::to_string(chip);
  return text;
}

std::optional<int64_t> attn::archOf(llvm::StringRef target, int64_t asked) {
  llvm::ArrayRef<int64_t> chips = chipsOf(target);
  if (chips.empty() || (asked && !llvm::is_contained(chips, asked)))
    return std::nullopt;
  return asked ? asked : chips.front();
}

int64_t attn::sharedMemoryLimit(llvm::StringRef target, int64_t arch) {
  if (target == "cpu")
    return int64_t(1) << 30; // a CPU's places are arrays
  if (target == "sm_90a")
    return 227 * 1024;
  // CUDA C++ Programming Guide, technical specifications per compute
  // capability: maximum amount of shared memory per thread block, in KB.
  switch (arch) {
  case 80:
  case 87:
    return 163 * 1024;
  case 86:
  case 89:
  case 120:
    return 99 * 1024;
  default:
    return 227 * 1024; // 90, 100
  }
}

bool attn::hasFewQueries(ProblemOp problem) {
  return problem.getExpectedSeqlenQ() && areFew(*problem.getExpectedSeqlenQ(), *problem.getExpectedSeqlenKv());
}

/// What says how long sequences are, and how many rows share keys: `max_seqlen(1, 16) and heads(16, 4)`.
static std::string lengthsOf(ProblemOp problem) {
  return llvm::formatv("{0}({1}, {2}) and heads({3}, {4})", problem.getMaxSeqlenQ() ? "max_seqlen" : "expected_seqlen",
                       *problem.expectedQueries(), *problem.expectedKeys(), problem.getHeads(), problem.getKvHeads());
}

/// Says why, if somebody asks.
static void note(std::string *why, const llvm::Twine &text) {
  if (why)
    *why = text.str();
}

/// The same, and hands on what was decided.
template <typename Decision> static Decision because(std::string *why, const llvm::Twine &text, Decision decision) {
  note(why, text);
  return decision;
}

/// That lengths are short enough for their sequences to be streamed, or not.
static bool judged(ProblemOp problem, std::string *why, bool isShort) {
  return because(why, lengthsOf(problem) + (isShort ? ": short sequences" : ": long sequences"), isShort);
}

constexpr char nothingSaid[] = "neither max_seqlen nor expected_seqlen says that sequences are short";
constexpr char noTiles[] = "head dims beyond 256 do not fit a tile",
               rowsToSpare[] = "too few query rows share a kv head to fill half a tile",
               rowsEnough[] = "enough query rows for tiles of each sequence";

int64_t attn::headsToPack(ProblemOp problem, int64_t rows) {
  if (dependsOnHead(problem.getMask())) // tests of a tile are of one head
    return 1;
  int64_t queries = *problem.getExpectedSeqlenQ(), group = problem.getHeads() / problem.getKvHeads(), best = 1;
  auto tiles = [&](int64_t heads) { return group / heads * int64_t(llvm::divideCeil(queries, rows / heads)); };
  for (int64_t heads = 2; heads <= std::min(group, rows); ++heads)
    if (group % heads == 0 && tiles(heads) < tiles(best))
      best = heads;
  return best;
}

// Sequences of a few rows, by their bounds or as is typical: then reading them is all there is
// to do. Measured on an H200 (docs/Schedules/streaming.md): a sequence's time is 0.03 ns for
// each pair of a row and a key where it is streamed, and 28 ns for each tile of 128 keys where
// it is not, however few of its rows are there; neither is less than reading takes. Behind
// the first tile that is what tiles come close to as well, unless rows are so few that one
// strip has them all. Head dims beyond 256 are streamed in any case.
static bool isStreamed(ProblemOp problem, std::string *why = nullptr) {
  if (problem.getTiles())
    return because(why, "the order of tiles is given", false);
  if (std::max(problem.getDimQk(), problem.getDimV()) > widestOfTiles)
    return because(why, noTiles, true);
  std::optional<int64_t> queries = problem.expectedQueries(), keys = problem.expectedKeys();
  if (!queries)
    return because(why, nothingSaid, false);
  int64_t rows = *queries * (problem.getHeads() / problem.getKvHeads()); // that read the same keys
  if (rows > 64) // five or six warps, whose tile has all keys
    return judged(problem, why, rows <= 96 && *keys <= 96 && std::max(problem.getDimQk(), problem.getDimV()) <= 128);
  return judged(problem, why, *keys <= 128 ? rows <= 64 : *keys < 1024 && rows <= 4);
}

static bool takesSizeClasses(ProblemOp problem) {
  return !problem.getMaxSeqlenQ() && problem.getQLayout().isPacked() && problem.getKLayout().isPacked() &&
         std::max(problem.getDimQk(), problem.getDimV()) <= widestOfTiles;
}

bool attn::hasSizeClasses(ProblemOp problem) { return isStreamed(problem) && takesSizeClasses(problem); }

bool attn::hasSizeClasses(BackwardOp backward, tile::ConfigAttr streamed) {
  return streamed && (streamed.getLook() > 1 || (!backward.getConfigAttr() && takesSizeClasses(backward.getProblemOp())));
}

// As many kv heads of `rows` rows and `keys` keys as fill a tile of a warp: what a block costs beside
// reading is then theirs together.
static int64_t sidesOf(ProblemOp problem, int64_t rows, int64_t keys) {
  int64_t most = dependsOnHead(problem.getMask()) || !problem.getModifiers().empty() ? 1 : 16 / std::max(rows, keys);
  for (; most > 1; --most)
    if (problem.getKvHeads() % most == 0 && llvm::isPowerOf2_64(most))
      return most;
  return 1;
}

// Measured on an H200 (docs/Schedules/streaming.md). From `least` rows on that read the same keys, a block with
// a tile of them is faster than strips are, if that is more than half full.
static bool fillsTiles(ProblemOp problem, int64_t least) {
  int64_t rows = int64_t(problem.expectedQueries().value_or(1)) * (problem.getHeads() / problem.getKvHeads());
  int64_t keys = problem.expectedKeys().value_or(1);
  return rows > 4 || (rows >= least && sidesOf(problem, rows, keys) * std::max(rows, keys) > 8);
}

// Blocks of these warps and places that a multiprocessor has at once. Short sequences are a matter of how many wait at a time.
static int64_t blocksOf(int64_t warps, int64_t registers, int64_t bytes) {
  int64_t allWarps = 65536 / (32 * registers) / 4 * 4, most = bytes ? 228 * 1024 / (bytes + 1024) : 32;
  return std::clamp<int64_t>(allWarps / warps, 1, std::clamp<int64_t>(most, 1, 32));
}

// Into how many parts of so many columns results go, if in whole ones.
static int64_t partsOf(int64_t dim, int64_t width) {
  for (int64_t parts = llvm::divideCeil(dim, width); parts <= dim / 16; ++parts)
    if (dim % (16 * parts) == 0)
      return parts;
  return 1;
}

// Rows of a sequence that are enough for matrix units, in tiles that all of its keys fit in: a warp for sixteen rows.
static tile::ConfigAttr chooseBySequence(ProblemOp problem) {
  int64_t queries = problem.expectedQueries().value_or(1), keys = problem.expectedKeys().value_or(16);
  int64_t group = problem.getHeads() / problem.getKvHeads(), pack = 1;
  if (!dependsOnHead(problem.getMask())) // tests of a tile are of one head
    for (int64_t heads = 2; heads <= group; ++heads)
      if (group % heads == 0 && heads * queries <= (group * queries > 64 ? 96 : 64))
        pack = heads;
  int64_t sides = sidesOf(problem, pack == group ? pack * queries : 16, keys);
  pack *= sides;
  int64_t warps = std::clamp<int64_t>(llvm::divideCeil(pack * queries, 16), 1, 6), dim = std::max(problem.getDimQk(), problem.getDimV());
  int64_t own = problem.dropoutInForce() ? 16 : 8; // keys that come together; and with dropout rows
  int64_t qTile = std::min(own == 16 ? 16 * warps : pack * queries, 16 * warps);
  if (int64_t kvTile = llvm::alignTo(keys * sides, std::max(own, sides)); kvTile <= (warps > 4 ? 96 : 64)) {
    bool lean = problem.getModifiers().empty() && own == 8 && isa<FullMaskAttr, CausalMaskAttr>(problem.getMask());
    int64_t parts = partsOf(problem.getDimV(), warps > 5 ? 32 : 64), width = llvm::alignTo(problem.getDimV(), 16) / parts;
    int64_t registers = !lean || width > 64 || pack > 1 ? 128 : kvTile <= 32 ? 80 : 96;
    int64_t bytes = (qTile + 2 * kvTile) * (llvm::alignTo(dim, 16) + 8) * 2, blocks = blocksOf(warps, registers, bytes);
    // What is longer than it fits is then walked once, and not once for each part.
    if (problem.getDimV() <= 128 && warps <= 4 && lean && blocks == blocksOf(warps, 128, bytes))
      parts = 1;
    return tile::ConfigAttr::get(problem.getContext(), 16 * warps, 16, warps, blocks)
        .withBySequence(true)
        .withPackHeads(pack)
        .withKvTile(kvTile)
        .withQTile(qTile)
        .withParts(parts);
  }
  int64_t kvTile = std::clamp<int64_t>(llvm::alignTo(keys, 16), 16, warps > 4 ? 96 : 64);
  int64_t blocks = std::max<int64_t>(1, 16 / warps);
  if (dim > 128)
    kvTile = std::min<int64_t>(kvTile, 32), blocks = std::max<int64_t>(1, blocks / 2);
  return tile::ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, blocks)
      .withPackHeads(pack)
      .withBySequence(true);
}

// Measured on an H200 (docs/Schedules/streaming.md). Four keys under way at once, two of them
// by each lane, are enough with as many warps as registers allow; more lose to less of them.
static tile::ConfigAttr chooseStrips(ProblemOp problem) {
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  bool alone = dependsOnHead(problem.getMask()); // a warp has one head
  int64_t lanes = alone ? 32 : std::min<int64_t>(llvm::PowerOf2Ceil(dim / 8), 32), own = llvm::divideCeil(dim / 8, lanes);
  // Rows of a group of lanes share what they read; each costs 16 registers a chunk.
  int64_t most = own == 1 ? 4 : 2, group = problem.getHeads() / problem.getKvHeads(), pack = 1;
  for (int64_t heads = 2; heads <= most; ++heads)
    if (group % heads == 0 && !alone)
      pack = heads;
  int64_t queries = std::clamp<int64_t>(most / pack, 1, problem.expectedQueries().value_or(1));
  int64_t rows = pack * queries, keys = std::min<int64_t>(4, problem.expectedKeys().value_or(4));
  int64_t blocks = rows * own == 1 ? 10 : rows * own == 2 ? 6 : 4; // of four warps
  return tile::ConfigAttr::ofStrips(problem.getContext(), rows, keys, pack, lanes, /*warps=*/4, blocks);
}

tile::ConfigAttr attn::chooseStreamed(ProblemOp problem, std::string *why) {
  if (std::max(problem.getDimQk(), problem.getDimV()) > widestOfTiles)
    return because(why, "", chooseStrips(problem)); // which is why they are streamed
  if (problem.expectedKeys().value_or(1) > 128)
    return because(why, "too many keys for one CTA per sequence", chooseStrips(problem));
  if (!fillsTiles(problem, 3))
    return because(why, rowsToSpare, chooseStrips(problem));
  return because(why, rowsEnough, chooseBySequence(problem));
}

// A warp for sixteen rows, and for so many keys that it has their sums. It has two fragments of sixteen rows and all keys, and then
// sums: 168 registers have room for 96 keys, 255 for 128. Null where shared memory has none for the tile.
static tile::ConfigAttr chooseTileBackward(ProblemOp problem, llvm::StringRef target, int64_t arch) {
  int64_t queries = *problem.expectedQueries(), keys = *problem.expectedKeys();
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV()), group = problem.getHeads() / problem.getKvHeads();
  int64_t own = dim <= 128 ? 32 : 16, rows = queries * group, sides = sidesOf(problem, rows, keys);
  int64_t warps = std::max(llvm::divideCeil(rows, 16), llvm::divideCeil(keys, own));
  int64_t together = problem.dropoutInForce() ? 16 : 8;
  int64_t qTile = llvm::alignTo(rows * sides, together), kvTile = llvm::alignTo(keys * sides, std::max(together, sides));
  bool lean = problem.getModifiers().empty() && together == 8 && isa<FullMaskAttr, CausalMaskAttr>(problem.getMask());
  int64_t bytes = 4 * (qTile + kvTile) * (llvm::alignTo(dim, 16) + 8) + 8 * 16 * warps + 256;
  if (bytes > sharedMemoryLimit(target, arch))
    return {};
  int64_t blocks = dim > 128                           ? 4 / warps
                   : kvTile > 96                       ? 8 / warps
                   : kvTile > 88                       ? (warps > 4 ? 12 : 9) / warps
                   : lean && kvTile <= 64 && warps < 5 ? blocksOf(warps, 128, bytes)
                                                       : 12 / warps;
  bool whole = kvTile > 88 && warps > 5; // sums have registers where scores had more
  // Heads in turn pay where a tile has rows to spare, or a block few others beside it. Of these, and of results in two parts, some spill (found by compiling all).
  bool crowded = group > 1 && dim > 64 && kvTile > 56;
  int64_t tiles = problem.getKvHeads() / sides, turns = (warps == 2 && !crowded) || (warps == 1 && rows * sides < 16) ? 2 : 1;
  bool quarters = dim > 96 && problem.getDimQk() % 64 == 0 && problem.getDimV() % 64 == 0 && qTile > 40 && qTile < 64 && kvTile > 112 && !isa<FullMaskAttr>(problem.getMask());
  return tile::ConfigAttr::get(problem.getContext(), 16 * warps, 16, warps, std::max<int64_t>(1, blocks))
      .withPackHeads(group * sides)
      .withBySequence(true)
      .withKvTile(kvTile)
      .withQTile(qTile)
      .withParts(whole || (warps <= 4 && kvTile <= 64) ? 0 : quarters ? 4 : 2)
      .withHeadsInTurn(std::gcd(turns, tiles));
}

// Measured on an H200 (docs/Schedules/streaming.md): where bounds are so many rows and keys, kernels on tiles are faster than a block of seven or eight warps, if
// they write dQ of one tile of keys without a sum. (If they turn out not to fit beside a reducer, the problem stays theirs.)
static bool leavesToTiles(BackwardOp backward, llvm::StringRef target, int64_t arch) {
  ProblemOp problem = backward.getProblemOp();
  bool packed = problem.getQLayout().isPacked() && problem.getKLayout().isPacked(), narrow = std::max(problem.getDimQk(), problem.getDimV()) <= 64;
  bool plain = problem.getModifiers().empty() && !problem.dropoutInForce() && problem.getHeads() == problem.getKvHeads();
  int64_t least = narrow || backward.getDeterministic() ? 112 : 96;
  if (!packed || !plain || !problem.getMaxSeqlenQ() ||
      int64_t(std::min(*problem.getMaxSeqlenQ(), *problem.getMaxSeqlenKv())) <= least)
    return false;
  return writesAlone(problem, chooseBackwardConfigs(backward, target, arch, /*fallback=*/0));
}

// Measured on an H200 (docs/Schedules/streaming.md). With one row a group of lanes, a key at a time
// leaves registers for 32 warps, and these for what is under way. Where rows have to be read
// again for each key, two of them and two keys; a pair of a row and a key then takes 0.13 ns,
// and the kernels on tiles 60 ns a sequence and head.
tile::ConfigAttr attn::chooseStreamedBackward(BackwardOp backward, llvm::StringRef target, int64_t arch, std::string *why) {
  ProblemOp problem = backward.getProblemOp();
  std::optional<int64_t> queries = problem.expectedQueries(), keys = problem.expectedKeys();
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV()), group = problem.getHeads() / problem.getKvHeads();
  int64_t most = dim <= 128 && problem.getDimQk() % 32 == 0 && problem.getDimV() % 32 == 0 ? 128 : 64; // in parts, or whole
  bool isShort = queries && *queries * group <= most && *keys <= most;
  if (backward.getPartialKv())
    return because(
        why, "with partial_kv, o and lse are of more keys than the problem has, and delta is no sum over its keys",
        tile::ConfigAttr());
  if (tile::ConfigAttr look = chooseLookBackward(problem, target, arch))
    return because(why,
                   lengthsOf(problem) +
                       (passesKeys(look)
                            ? ": all query rows of a sequence stay in one CTA, and K/V tiles are streamed past them"
                            : ": one tile has all pairs of a sequence"),
                   look);
  if (dim <= widestOfTiles && (!isShort || dependsOnHead(problem.getMask()))) // strips have one mask for a kv head's rows
    return because(why,
                   !queries  ? nothingSaid
                   : isShort ? "its mask differs between heads"
                             : lengthsOf(problem) + ": long sequences",
                   tile::ConfigAttr());
  if (isShort && leavesToTiles(backward, target, arch))
    return because(why, lengthsOf(problem) + ": one tile has all keys of a sequence, and dQ needs no accumulation",
                   tile::ConfigAttr());
  if (isShort && dim <= widestOfTiles && (*keys > 40 || fillsTiles(problem, 2))) {
    note(why, lengthsOf(problem) + ": short sequences, and " +
                  (fillsTiles(problem, 2) ? rowsEnough : "too many keys for SIMT rows"));
    tile::ConfigAttr config = chooseTileBackward(problem, target, arch);
    return config ? config : because(why, lengthsOf(problem) + ": too long for shared memory", config);
  }
  note(why, dim > widestOfTiles ? noTiles : lengthsOf(problem) + ": short sequences, and " + rowsToSpare);
  int64_t lanes = std::min<int64_t>(llvm::PowerOf2Ceil(dim / 8), 32), own = llvm::divideCeil(dim / 8, lanes);
  int64_t rows = own == 1 && queries.value_or(1) > 1 ? 2 : 1;
  bool lean = group == 1 && problem.getModifiers().empty() && !problem.getQLayout().getPadded() && !problem.getKLayout().getPadded() &&
              isa<FullMaskAttr>(problem.getMask()); // what more there is takes registers
  // Lanes hold two numbers of each key; strides of dense layouts take registers, too.
  int64_t held = 2 * llvm::divideCeil(keys.value_or(1), lanes), each = llvm::alignTo((problem.getQLayout().isPacked() ? 60 : 72) + held, 8);
  int64_t step = rows, blocksAtMost = rows == 2 || own == 2 ? 4 : lean ? 8 : 6;
  int64_t blocks = std::clamp<int64_t>(65536 / 128 / each, 1, blocksAtMost);
  if (target == "cpu")
    return tile::ConfigAttr::ofStrips(problem.getContext(), rows, 4, 1, /*lanes=*/32, /*warps=*/1, /*blocks=*/1);
  return tile::ConfigAttr::ofStrips(problem.getContext(), rows, step, /*packHeads=*/1, lanes, /*warps=*/4, blocks);
}

// Measured on an H200 (docs/Schedules/streaming.md): of more than 80 rows and as many keys by their bounds, tiles that these fill are faster than a block of six
// warps.
static bool leavesToTiles(ProblemOp problem, std::string *why) {
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV()),
          least = std::min(problem.getMaxSeqlenQ().value_or(0), problem.getMaxSeqlenKv().value_or(0));
  bool wide = dim > (isa<CausalMaskAttr>(problem.getMask()) ? 96 : 64);
  if (!wide || least <= 80 || problem.getHeads() != problem.getKvHeads() || !chooseBounded(problem))
    return false;
  return because(why, lengthsOf(problem) + ": a sequence fills a tile", true);
}

// Measured on an H200 (docs/results). A thread has 255 registers, and the output
// accumulator takes q_tile * dim_v / (32 * warps) of them, so wide heads get
// shorter query tiles. (At 256, 128 x 128 with eight warps is up to a tenth faster
// on long sequences and slower on short ones, and takes 1.4 s to compile.) Two
// blocks of four warps hide each other's barriers.
//
// Under a window a query tile has few key tiles: twice as many blocks of half the
// rows hide each other's beginning and end, and visit fewer invisible pairs.
//
// A loop per segment is the faster code where it fits: 5 % over one loop that asks,
// for most. Not at wide heads with three segments, whose bodies take 1.5 s to
// compile, nor around 128 under a full mask, where ptxas runs out of registers.
tile::ConfigAttr attn::chooseConfig(ProblemOp problem, llvm::StringRef target, int64_t arch, std::string *why) {
  if (isStreamed(problem, why) && !hasSizeClasses(problem) && !(target == "sm_90a" && leavesToTiles(problem, why))) {
    std::string how;
    tile::ConfigAttr config = chooseStreamed(problem, &how);
    if (why && !how.empty())
      *why += ", and " + how;
    return config;
  }
  if (hasFewQueries(problem))
    note(why,
         lengthsOf(problem) + ": with few queries and many keys, query tiles alone leave most multiprocessors idle");
  if (target == "sm_90a")
    return chooseHopper(problem);
  auto config = [&](int64_t qTile, int64_t kvTile, int64_t warps, int64_t blocks, bool holdQ, bool oneBody) {
    auto usual =
        tile::ConfigAttr::get(problem.getContext(), qTile, kvTile, warps, blocks).withHoldQ(holdQ).withOneBody(oneBody);
    return hasFewQueries(problem) ? usual.withSplits(0).withPackHeads(headsToPack(problem, qTile)) : usual;
  };
  if (target == "cpu")
    return config(64, 64, 1, 1, false, false);
  int64_t dimQk = problem.getDimQk(), dimV = problem.getDimV(), limit = sharedMemoryLimit(target, arch);
  KeyWalk walk(problem.getMask(), MaskScope());
  bool local = walk.isLocal(), small = dimQk <= 64 && dimV <= 64;
  if (small || (local && dimQk <= 128 && dimV <= 128)) // four small blocks, or two of the usual size
    return config(local ? 64 : 128, 64, local ? 2 : 4, local ? 4 : 2, /*holdQ=*/small, /*oneBody=*/local && dimV > 64);
  if (dimV <= 128)
    return config(128, dimQk > 192 && limit < 128 * 1024 ? 32 : 64, 4, 2, false,
                  /*oneBody=*/dimV > 96 && (walk.hasLowerTest() || !walk.growsWithRows()));
  return config(64, 64, 4, 2, false, /*oneBody=*/walk.hasLowerTest());
}

tile::ConfigAttr attn::fallbackOf(tile::ConfigAttr config, int64_t columns) {
  if (config.hasStrips()) {
    if (config.getKvTile() == 1) // registers for more of each block
      return config.getBlocks() == 1 ? tile::ConfigAttr() : config.withBlocks(config.getBlocks() * 3 / 4);
    return config.withKvTile(config.getKvTile() / 2);
  }
  if (int64_t keys = config.getKvTile() * config.getLook(); config.getLook() > 1) { // walks of smaller tiles leave a look more registers
    for (int64_t tile : {32, 16})
      if (tile < config.getKvTile() && keys % tile == 0)
        return config.withKvTile(tile).withLook(keys / tile);
    return config.withLook(1).withKvTile(64).withStages(2, 1);
  }
  if (config.getHeadsInTurn() > 1) // a loop less around all that a block keeps
    return config.withHeadsInTurn(1);
  int64_t parts = 2 * std::max<int64_t>(config.getParts(), 1), warps = config.getWarps();
  bool ofAll = config.getBySequence() && config.getKvTile() > 88 && columns; // gradients of many keys
  if (ofAll && parts <= (warps > 4 ? 2 : 4) && columns % (16 * parts) == 0) // sums of fewer columns at a time
    return config.withParts(parts);
  if (ofAll && config.getBlocks() == 1 && warps > 4 && warps < 8)
    return config.withWarps(8).withParts(columns % 64 == 0 ? 4 : 0);
  if (config.getBySequence()) // registers for more of each block
    return config.getBlocks() == 1 ? tile::ConfigAttr() : config.withBlocks(config.getBlocks() * 3 / 4);
  if (config.getOneBody() && config.getKvTile() <= 16)
    return {};
  if (config.getOneBody() && config.getBlocks() == 3) // two have 216 registers a thread in place of 128
    return config.withBlocks(2);
  int64_t less = !config.getOneBody() ? 0 : config.getKvTile() >= 64 && config.getKvTile() % 32 == 0 ? 32 : 16;
  return config.withKvTile(config.getKvTile() - less).withOneBody(true);
}

bool attn::mayFallBackward(tile::ConfigAttr streamed) { return streamed.getBySequence() || fallbackOf(streamed); }
