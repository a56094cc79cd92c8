// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/DrawTiles.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;
using Cell = TileMap::Cell;

void attn::drawText(llvm::raw_ostream &os, TileMap &map) {
  TileMap::Cells cells = map.cells(64);
  os << "a cell is " << cells.tilesDown * map.qTile << " rows x " << cells.tilesAcross * map.kvTile
     << " keys: `#` full (the mask is not applied), `/` partial, `o` visited but empty, `.` skipped\n\n";
  for (const auto &row : cells.rows) {
    os << "  ";
    for (Cell cell : row)
      os << ".#/o"[int(cell)];
    os << "\n";
  }
  os << "\n";
}

// Readable on white and on dark pages.
static const char *colorOf(Cell cell) {
  const char *colors[] = {"none", "#2b6cb0", "#90cdf4", "#f6ad55"};
  return colors[int(cell)];
}

namespace {
class Svg {
public:
  Svg(llvm::raw_ostream &os, double scaleX, double scaleY, double x0, double y0)
      : os(os), scaleX(scaleX), scaleY(scaleY), x0(x0), y0(y0) {}

  void rect(int64_t q, int64_t rows, int64_t k, int64_t keys, const char *color, const char *more = "") {
    os << llvm::format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"%s/>\n", x0 + k * scaleX,
                       y0 + q * scaleY, keys * scaleX, rows * scaleY, color, more);
  }
  void line(double x, double y, double toX, double toY) {
    os << llvm::format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x0 + x * scaleX, y0 + y * scaleY,
                       x0 + toX * scaleX, y0 + toY * scaleY);
  }

private:
  llvm::raw_ostream &os;
  double scaleX, scaleY, x0, y0;
};
} // namespace

static std::string escaped(llvm::StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

void attn::drawSvg(llvm::raw_ostream &os, TileMap &map, llvm::StringRef title) {
  constexpr double side = 288, margin = 12, header = 30, legend = 22;
  int64_t longest = std::max<int64_t>({map.lenQ, map.lenK, 1});
  double scale = side / longest, width = side + 2 * margin, height = header + map.lenQ * scale + legend + margin;
  os << llvm::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
                     "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"10\">\n",
                     width, height, width, height)
     << "<title>" << escaped(title) << "</title>\n"
     << llvm::format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height)
     << llvm::format("<text x=\"%.0f\" y=\"20\" fill=\"#4a5568\">%lld queries down, %lld keys across</text>\n", margin,
                     (long long)map.lenQ, (long long)map.lenK);
  Svg svg(os, scale, scale, margin, header);
  svg.rect(0, map.lenQ, 0, map.lenK, "#edf2f7");
  TileMap::Cells cells = map.cells(96);
  int64_t tall = cells.tilesDown * map.qTile, wide = cells.tilesAcross * map.kvTile;
  for (auto [i, row] : llvm::enumerate(cells.rows))
    for (size_t from = 0, to; from < row.size(); from = to) {
      for (to = from + 1; to < row.size() && row[to] == row[from];)
        ++to;
      int64_t q = i * tall, k = from * wide;
      if (row[from] != Cell::Skipped)
        svg.rect(q, std::min(tall, map.lenQ - q), k, std::min<int64_t>(to * wide, map.lenK) - k, colorOf(row[from]));
    }
  if (longest <= 96) { // the visible pairs of partial tiles
    for (int64_t q = 0; q < map.lenQ; ++q)
      for (int64_t from = 0, to; from < map.lenK; from = to) {
        to = from + 1;
        bool partial = cells.rows[q / tall][from / wide] == Cell::Partial;
        if (!partial || !map.keeps(q, from))
          continue;
        while (to < map.lenK && to % wide && map.keeps(q, to))
          ++to;
        svg.rect(q, 1, from, to - from, colorOf(Cell::Full), " fill-opacity=\"0.75\"");
      }
    os << "<g stroke=\"#ffffff\" stroke-width=\"0.7\">\n";
    for (int64_t q = tall; q < map.lenQ; q += tall)
      svg.line(0, q, map.lenK, q);
    for (int64_t k = wide; k < map.lenK; k += wide)
      svg.line(k, 0, k, map.lenQ);
    os << "</g>\n";
  }
  const std::pair<Cell, const char *> keys[] = {
      {Cell::Full, "full"}, {Cell::Partial, "partial"}, {Cell::Empty, "visited but empty"}};
  double x = margin, y = height - margin - 8;
  for (auto [cell, text] : keys) {
    os << llvm::format("<rect x=\"%.0f\" y=\"%.1f\" width=\"9\" height=\"9\" fill=\"%s\"/>", x, y, colorOf(cell))
       << llvm::format("<text x=\"%.0f\" y=\"%.1f\" fill=\"#4a5568\">%s</text>\n", x + 13, y + 8.5, text);
    x += 70;
  }
  os << "</svg>\n";
}
