// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn::plan;

std::optional<std::string> StripedAttr::distribute(const Sequences &sequences, std::vector<Shard> &shards) const {
  shards = distributeRows(sequences, [&](int64_t row) {
    int64_t stripe = row / getRows();
    return std::pair(stripe % sequences.ranks, (stripe + 1) * getRows());
  });
  return std::nullopt;
}

LogicalResult StripedAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows) {
  constexpr int64_t most = int64_t(1) << 20;
  return rows >= 1 && rows <= most ? success()
                                   : emitError() << "expected stripes of 1 to " << most << " rows, got: " << rows;
}

Attribute StripedAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t rows = 1;
  if (succeeded(parser.parseOptionalLess()) && (parser.parseInteger(rows) || parser.parseGreater()))
    return {};
  return parser.getChecked<StripedAttr>(loc, parser.getContext(), rows);
}

void StripedAttr::print(AsmPrinter &printer) const {
  if (getRows() != 1)
    printer << "<" << getRows() << ">";
}
