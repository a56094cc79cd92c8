// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Workspace.h"
#include "attn/Schedules/KeyWalk.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace attn;
using rt::Extent;
using T = ProblemTensor;
using Extents = ProblemExtents;
using Shape = std::vector<Extent>;

std::string attn::bitsOf(const MaskOperand &lists) { return lists.name + "_bits"; }
std::string attn::numberingOf(llvm::StringRef parents) { return (parents + "_numbering").str(); }
std::string attn::partialGradientOf(const ScoreOperand &array) { return "partial_d" + array.name; }

//===--------------------------------------------------------------------===//
// Lists of tiles
//===--------------------------------------------------------------------===//

const TileLists &attn::tileLists(bool ownedByKvTiles) {
  static const TileLists lists[] = {{"key_ranges", "kv_tile_list", "kv_tile_list_headers", "kv_tile_list_counter"},
                                    {"query_ranges", "q_tile_list", "q_tile_list_headers", "q_tile_list_counter"}};
  return lists[ownedByKvTiles];
}

int64_t attn::headsOfTileLists(ProblemOp problem) {
  return dependsOnQueryHead(problem.getMask()) ? problem.getHeads()
         : dependsOnHead(problem.getMask())    ? problem.getKvHeads()
                                               : 1;
}

llvm::ArrayRef<WorkTileList> attn::workTileLists(bool backward) {
  static const WorkTileList lists[] = {
      {"tiles_q", "tile_count", false}, {"tiles_kv", "tile_count_kv", true}, {"tiles_dq", "tile_count_dq", false}};
  return llvm::ArrayRef(lists).take_front(backward ? 3 : 1);
}

const LoopSplits &attn::querySplits(bool ofDv) {
  static const LoopSplits splits[] = {{"q_splits", "q_split_counts", "split_tiles"},
                                      {"q_splits_dv", "q_split_counts_dv", "split_tiles_dv"}};
  return splits[ofDv];
}

const LoopSplits &attn::kvSplits() {
  static const LoopSplits splits = {"kv_splits", "kv_split_counts", "split_tiles"};
  return splits;
}

Extent attn::splitSlots() { return Extent(8) * sizeNamed("multiprocessors"); }

int64_t attn::valuesOfRanges(llvm::ArrayRef<MaskOperand> arrays) {
  int64_t hiding = llvm::count_if(arrays, [](const MaskOperand &array) { return array.hidden.has_value(); });
  return llvm::alignTo(2 * arrays.size() + hiding, 2); // values are read in pairs
}

int64_t attn::linesOfRanges(llvm::ArrayRef<MaskOperand> arrays) {
  return valuesOfRanges(arrays) + llvm::divideCeil(2 * arrays.size(), 32);
}

/// The most tiles of `tile` positions that a block of `extent` positions overlaps.
static int64_t tilesOfBlock(int64_t extent, int64_t tile) {
  return llvm::divideCeil(extent - std::gcd(extent, tile), tile) + 1;
}

namespace {
/// Bounds on the entries of all lists.
struct ListBounds {
  bool ofKeys;
  int64_t heads;                     ///< heads with lists of their own
  std::vector<MaskOperand> blocks;   ///< block maps that bound the lists (`boundingLists`)
  std::optional<int64_t> keysOfARow; ///< from the problem
};
} // namespace

/// Entries of a list on average where nothing bounds them, and entries of all lists that there is room for in any case:
/// 64 MB, all tiles of a head of 500,000 tokens in tiles of 128.
static constexpr int64_t entriesOfEachList = 10, entriesInAll = 1 << 24;

TransposedLists attn::transposedOf(const MaskOperand &map) {
  std::string name = map.lists->columns + "_transposed";
  return {name + "_offsets", name, name + "_counts"};
}

int64_t attn::headsOfMap(const MaskOperand &map, const FixedSizes &fixed) {
  return map.heads == OperandHeads::per_head ? fixed.heads : map.heads == OperandHeads::per_kv_head ? fixed.kvHeads : 1;
}

Extent attn::blocksOfMap(const MaskOperand &map, const Extents &extents) {
  Extent blocks = extents.linesOfLists(map.lists->kv, /*keys=*/true);
  return extents.fixed.packedKv ? blocks : sizeNamed("batch") * blocks;
}

/// Sequences and heads that have lists of one width of their own, or, packed, heads.
static Extent setsOfLists(const MaskOperand &map, const Extents &extents) {
  Extent heads = headsOfMap(map, extents.fixed);
  return extents.fixed.packedQ ? heads : heads * sizeNamed("batch");
}

Extent attn::entriesOfMap(const MaskOperand &map, const Extents &extents) {
  Extent entries = sizeNamed(map.lists->columns + "_entries");
  return map.lists->fixedWidth ? entries * extents.linesOfLists(map.lists->q) * setsOfLists(map, extents) : entries;
}

Extent attn::offsetsOfMap(const MaskOperand &map, const Extents &extents) {
  return (extents.linesOfLists(map.lists->q) + 1) * setsOfLists(map, extents);
}

/// A query tile may list all KV tiles (a KV tile all query tiles), which is too much memory for long sequences. Block
/// maps bound the lists by their own lengths: there is room for all of their entries. In any case there is room for
/// what the problem states, or else for all tiles if that is not too much memory, or for a few tiles of each list. If
/// any list finds no room, every tile with entries of its own loops over all tiles from its first to its last.
static Extent entriesOfLists(const ListBounds &bounds, const Extents &extents) {
  constexpr int64_t each = entriesOfEachList, least = entriesInAll;
  const Extents::ListedTiles &tiles = extents.listed[bounds.ofKeys];
  Extent across =
      (bounds.ofKeys ? ceilDiv(extents.rows(false), tiles.queries) : ceilDiv(extents.rows(true), tiles.keys)) +
      1; // packed tiles need one more
  Extent lists = Extent(bounds.heads) * extents.tilesOf(bounds.ofKeys, bounds.ofKeys ? tiles.keys : tiles.queries),
         room = 0;
  for (const MaskOperand &map : bounds.blocks) {
    int64_t heads = headsOfMap(map, extents.fixed);
    int64_t count =
        tilesOfBlock(map.lists->q, tiles.queries) * tilesOfBlock(map.lists->kv, tiles.keys) * bounds.heads / heads;
    room =
        room + Extent(count) * entriesOfMap(map, extents) * (map.lists->perSequence ? Extent(1) : sizeNamed("batch"));
  }
  // (Lists of several heads or sequences may be the same entries.)
  if (bounds.keysOfARow)
    room = max(room, Extent(bounds.heads) * extents.tilesOf(false, tiles.queries) *
                         ceilDiv(min(*bounds.keysOfARow, extents.rows(true)), tiles.keys));
  else
    room = max(room, max(Extent(each) * lists, least));
  return min(across + min(lists * across, room) + 1, INT32_MAX); // one entry is prefetched
}

std::string attn::describeRoomOfLists(ProblemOp problem) {
  if (boundingLists(problem.getMask()))
    return "room for all blocks that the block maps list";
  std::optional<uint64_t> keys = problem.getKvListCapacity();
  std::string room =
      keys ? llvm::formatv("{0} keys a row on average, as kv_list_capacity says", *keys).str()
           : llvm::formatv("all tiles, up to {0} in all, or {1} a list on average (kv_list_capacity sets it)",
                           entriesInAll, entriesOfEachList)
                 .str();
  return "room for " + room + "; beyond that, tiles visit all from their first to their last";
}

//===--------------------------------------------------------------------===//
// Buffers
//===--------------------------------------------------------------------===//

namespace {
struct Workspace {
  explicit Workspace(Computation computation) : computation(computation), problem(computation.problem) {
    mlir::Attribute schedule =
        computation.backward ? computation.backward.getScheduleAttr() : problem.getScheduleAttr();
    if (auto byResidue = llvm::dyn_cast_or_null<tile::ByResidueAttr>(schedule))
      residues = byResidue.getStride();
  }

  std::vector<WorkspaceBuffer> build() {
    addBits();
    addOffsets();
    addTrees();
    addWorkTiles();
    computation.backward ? addBackward() : addForward();
    return std::move(buffers);
  }

private:
  template <typename ShapeOf> void add(std::string name, T::Element element, ShapeOf shape) {
    buffers.push_back({std::move(name), element, shape});
  }
  template <typename ShapeOf> void addIntegers(std::string name, ShapeOf shape) {
    add(std::move(name), T::Int32, shape);
  }

  /// The leading axes of a mask's array, then its own.
  auto shapeOf(const MaskOperand &operand, std::function<Shape(const Extents &)> own) {
    llvm::SmallVector<T::Axis, 4> axes = leadingAxesOf(operand, problem.getQLayout(), problem.getKLayout());
    for (T::Axis &axis : axes) // arrays are those of all heads
      axis = axis == T::Heads ? T::AllHeads : axis == T::KvHeads ? T::AllKvHeads : axis;
    T leading("", T::Result, T::Int32, axes);
    return [leading, own](const Extents &extents) {
      Shape shape = extents.of(leading);
      llvm::append_range(shape, own(extents));
      return shape;
    };
  }

  /// Bits of block maps, for kernels that test single blocks.
  void addBits() {
    for (const MaskOperand &operand : distinctOperands(problem.getMask()))
      if (operand.lists)
        addIntegers(bitsOf(operand), shapeOf(operand, [operand](const Extents &extents) -> Shape {
                      return {operand.lists->fixedWidth ? extents.linesOfLists(operand.lists->q)
                                                        : sizeNamed(operand.name + "_entries") - 1,
                              ceilDiv(ceilDiv(extents.keysOfBlocks(), operand.lists->kv), 32)};
                    }));
  }

  /// Offsets of lists of one width.
  void addOffsets() {
    for (const MaskOperand &operand : distinctOperands(problem.getMask()))
      if (operand.lists && operand.lists->fixedWidth)
        addIntegers(operand.name, shapeOf(operand, [operand](const Extents &extents) -> Shape {
                      return {extents.linesOfLists(operand.lists->q) + 1};
                    }));
  }

  /// Lists of one width, transposed.
  void addTransposed() {
    for (const MaskOperand &map : distinctOperands(problem.getMask())) {
      if (!map.lists || !map.lists->fixedWidth)
        continue;
      TransposedLists names = transposedOf(map);
      addIntegers(names.offsets, [map](const Extents &extents) -> Shape {
        return {headsOfMap(map, extents.fixed), blocksOfMap(map, extents) + 1};
      });
      addIntegers(names.tiles, [map](const Extents &extents) -> Shape { return {entriesOfMap(map, extents)}; });
      addIntegers(names.counts, [map](const Extents &extents) -> Shape {
        return {headsOfMap(map, extents.fixed), partsOfLists, blocksOfMap(map, extents)};
      });
    }
  }

  /// Numbers of tree nodes, and scratch space for computing them.
  void addTrees() {
    llvm::StringSet<> numbered;
    for (const MaskOperand &operand : distinctOperands(problem.getMask())) {
      if (operand.madeOf.empty())
        continue;
      bool keys = operand.shape != OperandShape::PerQuery;
      addIntegers(operand.name,
                  shapeOf(operand, [keys](const Extents &extents) -> Shape { return {extents.rows(keys)}; }));
      if (numbered.insert(operand.madeOf).second) // four numbers for each key, and two for each 32 keys
        addIntegers(numberingOf(operand.madeOf), [](const Extents &extents) -> Shape {
          return {Extent(5) * extents.rows(true) * (extents.fixed.packedKv ? Extent(1) : sizeNamed("batch"))};
        });
    }
  }

  /// Work-tile lists of long sequences.
  void addWorkTiles() {
    if (problem.getTiles() || !problem.getQLayout().isPacked() || !problem.getKLayout().isPacked())
      return;
    for (WorkTileList list : workTileLists(bool(computation.backward))) {
      addIntegers(list.name, [keys = list.keys](const Extents &extents) -> Shape { // no tile has fewer than 16 rows
        return {tilesOfRows(/*packed=*/true, sizeNamed("batch"), extents.rows(keys), 16)};
      });
      addIntegers(list.count, [](const Extents &) -> Shape { return {1}; });
    }
  }

  /// Lists of the tiles that each tile visits, for masks that read arrays of positions.
  void addLists(bool ofKeys) {
    const TileLists &names = tileLists(ofKeys);
    int64_t heads = headsOfTileLists(problem);
    int64_t lines =
        linesOfRanges(rangedArrays(problem.getMask(), ofKeys ? OperandShape::PerQuery : OperandShape::PerKey));
    addIntegers(names.ranges, [=](const Extents &extents) -> Shape { // rounded up to four groups of 32
      const Extents::ListedTiles &listed = extents.listed[ofKeys];
      return {heads * lines, roundUp(extents.tilesOf(!ofKeys, ofKeys ? listed.queries : listed.keys), 128)};
    });
    ListBounds bounds = {ofKeys, heads, {}, problem.getKvListCapacity()};
    if (bounds.keysOfARow) // tiles have as many keys as without residues, and positions so many times
      *bounds.keysOfARow *= residues;
    if (std::optional<llvm::SmallVector<MaskOperand>> blocks = boundingLists(problem.getMask()))
      bounds.blocks.assign(blocks->begin(), blocks->end());
    addIntegers(names.list, [bounds](const Extents &extents) -> Shape { return {entriesOfLists(bounds, extents)}; });
    addIntegers(names.positions, [=](const Extents &extents) -> Shape {
      const Extents::ListedTiles &listed = extents.listed[ofKeys];
      return {heads, extents.tilesOf(ofKeys, ofKeys ? listed.keys : listed.queries), 8};
    });
    addIntegers(names.used, [](const Extents &) -> Shape { return {4}; });
  }

  /// Rows of all sequences, for each head.
  static Shape rowsOfAll(const Extents &extents) {
    Shape rows = {extents.fixed.heads};
    if (!extents.fixed.packedQ)
      rows.push_back(sizeNamed("batch"));
    rows.push_back(extents.rows(false));
    return rows;
  }
  /// Rows of whole tiles of all sequences, as `tile.find_sequence` numbers them; of each residue.
  static Extent tiledRows(const Extents &extents, bool keys, int64_t residues = 1) {
    return extents.tilesOf(keys, statisticsTile * residues) * Extent(statisticsTile);
  }
  /// Rows of all sequences for each head, or for each head and residue, as `BackwardBody::rowsOfAccumulator` has them.
  static Shape rowsOfAccumulator(const Extents &extents, int64_t residues) {
    if (residues == 1)
      return rowsOfAll(extents);
    Extent heads = extents.fixed.heads * residues;
    if (extents.fixed.packedQ)
      return {heads, floorDiv(extents.rows(false), residues) + sizeNamed("batch")};
    return {heads, sizeNamed("batch"), ceilDiv(extents.rows(false), residues)};
  }

  void addForward() {
    auto rowsOfSplits = [](const Extents &extents, bool values) {
      Shape shape = rowsOfAll(extents);
      shape.insert(shape.begin(), sizeNamed("splits"));
      if (values)
        shape.push_back(extents.fixed.dimV);
      return shape;
    };
    add("partial_o", T::Float32, [=](const Extents &extents) { return rowsOfSplits(extents, true); });
    add("partial_max", T::Float32, [=](const Extents &extents) { return rowsOfSplits(extents, false); });
    add("partial_sum", T::Float32, [=](const Extents &extents) { return rowsOfSplits(extents, false); });
    addLoopSplits(kvSplits(), [](const Extents &extents) { return ceilDiv(extents.rows(false), 16); });
    for (const char *name : {"slots_o", "slots_max", "slots_sum"}) {
      bool isOutput = llvm::StringRef(name) == "slots_o";
      add(name, T::Float32, [isOutput](const Extents &extents) -> Shape {
        return {splitSlots(), splitRows, isOutput ? extents.fixed.dimV : 1};
      });
    }
    if (leavesTilesOut(problem.getMask()))
      addLists(/*ofKeys=*/false);
    if (!problem.getSegments())
      return;
    for (const T &tensor : tensorsOfSegments(problem))
      addIntegers(tensor.name, [tensor](const Extents &extents) {
        Shape shape = extents.of(tensor);
        if (tensor.hasLeadingDims())
          shape.insert(shape.begin(), sizeNamed("id_rows"));
        return shape;
      });
  }

  void addBackward() {
    addTransposed();
    if (leavesTilesOut(problem.getMask())) // evaluated once: it may sample tiles of predicates
      for (bool ofKeys : {false, true})
        addLists(ofKeys);
    add("row_statistics", T::Float32, [residues = residues](const Extents &extents) -> Shape {
      return {2, extents.fixed.heads * residues, tiledRows(extents, false, residues)};
    });
    add("dq_accumulator", T::Float32, [residues = residues](const Extents &extents) {
      Shape shape = rowsOfAccumulator(extents, residues);
      shape.push_back(accumulatorColumns(extents.fixed.dimQk));
      return shape;
    });
    addIntegers("dq_semaphore", [residues = residues](const Extents &extents) -> Shape {
      Shape shape = rowsOfAccumulator(extents, residues);
      Extent rows = shape[1];
      if (shape.size() == 3)
        rows = shape[2] * shape[1];
      return {shape[0], ceilDiv(rows, semaphoreRows) + sizeNamed(extents.fixed.pieces ? "piece_count_q" : "batch")};
    });
    addQuerySplits();
    for (const ScoreOperand &array : computation.backward.getDifferentiatedArrays())
      addPartialGradient(array);
  }

  /// The lists of split loops. `tiles`: as many tiles as there may be, of 16 rows at least. Tiles that are split have a
  /// slot for each CTA, the others have one CTA.
  template <typename TilesOf> void addLoopSplits(const LoopSplits &names, TilesOf tiles) {
    Extent slots = splitSlots() * Extent(splitRows / 16);
    addIntegers(names.list, [=](const Extents &extents) -> Shape { return {tiles(extents) + slots, 4}; });
    addIntegers(names.counts, [](const Extents &) -> Shape { return {4}; });
    addIntegers(names.split, [=](const Extents &extents) -> Shape { return {min(tiles(extents), slots), 3}; });
  }

  /// Parts of long loops over query tiles, and their partial results.
  void addQuerySplits() {
    for (bool ofDv : {false, true}) // tiles with lists of their own are numbered through all heads
      addLoopSplits(querySplits(ofDv), [isListed = mayListTiles(problem)](const Extents &extents) {
        Extent ofHead = ceilDiv(extents.rows(true), 16);
        return isListed ? ofHead * Extent(extents.fixed.kvHeads) * sizeNamed("batch") : ofHead;
      });
    for (bool ofV : {false, true})
      add(ofV ? "partial_dv" : "partial_dk", T::Float32, [ofV](const Extents &extents) -> Shape {
        return {splitSlots(), splitRows, ofV ? extents.fixed.dimV : extents.fixed.dimQk};
      });
  }

  void addPartialGradient(const ScoreOperand &array) {
    bool queries = array.has(ScoreOperand::Query), keys = array.has(ScoreOperand::Key);
    if ((queries && keys) || problem.isSinkArray(array))
      return;
    bool byDistance = array.has(ScoreOperand::Table);
    add(partialGradientOf(array), T::Float32, [=](const Extents &extents) -> Shape {
      if (byDistance && extents.fixed.pieces)
        return {extents.fixed.heads, Extent(2 * distancesOfTable(array.entries)) +
                                         sizeNamed("batch") * Extent(2 * arrayGradWorkers * arrayGradTile)};
      if (byDistance) // distances of positions in tiles of all sequences
        return {2, extents.fixed.heads, tiledRows(extents, false) + tiledRows(extents, true)};
      return {extents.fixed.heads, tiledRows(extents, keys)};
    });
  }

  Computation computation;
  ProblemOp problem;
  int64_t residues = 1; ///< of a schedule by residue: rows of each are tiles of their own
  std::vector<WorkspaceBuffer> buffers;
};
} // namespace

std::vector<WorkspaceBuffer> attn::workspaceOf(Computation computation) { return Workspace(computation).build(); }

mlir::LogicalResult attn::verifyArrayNames(Computation computation) {
  llvm::StringSet<> taken = {"q_map", "k_map", "v_map", "do_map", "blocks", "queue", "splits", "multiprocessors"};
  for (const char *slots : {"slots_o", "partial_dk", "partial_dv"})
    taken.insert((llvm::Twine(slots) + "_slots").str());
  for (const char *tensor : {"q", "k", "v", "o", "lse", "do", "dlse", "delta", "dq", "dk", "dv", "row_statistics"})
    for (const char *stride : {"_batch", "_row", "_head", "_kind"})
      taken.insert((llvm::Twine(tensor) + stride).str());
  llvm::StringSet<> made;
  for (const MaskOperand &array : distinctOperands(computation.problem.getMask())) {
    if (array.lists)
      for (const char *size : {"_rows", "_words"})
        taken.insert(bitsOf(array) + size);
    if (array.isComputed())
      made.insert(array.name);
  }
  for (const WorkspaceBuffer &buffer : workspaceOf(computation))
    if (!made.contains(buffer.name)) // checked by the problem
      taken.insert(buffer.name);
  for (const T &tensor : tensorsOf(computation))
    if (taken.contains(tensor.name))
      return computation.getOperation()->emitOpError("expected names of arrays and gradients that no argument of its "
                                                     "kernels has, got: \"")
             << tensor.name << "\"";
  return mlir::success();
}
