// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A .npy file: "\x93NUMPY", major, minor, the length of the header (2 bytes in
// version 1, 4 in version 2), the header (a Python dictionary, padded with
// spaces), the data.
//
#include "attn/Reference/Npy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <optional>

using namespace attn::reference;
using llvm::StringRef, llvm::Twine;

static constexpr StringRef magic("\x93NUMPY", 6);

static llvm::Error error(StringRef path, const Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "`" + path + "`: " + what);
}

//===--------------------------------------------------------------------===//
// Reading
//===--------------------------------------------------------------------===//

namespace {
struct Header {
  std::string descr;
  std::optional<bool> fortranOrder;
  StringRef shapeText;
  std::optional<llvm::SmallVector<int64_t, 4>> shape; ///< none: its text has numbers that are no extents
};
} // namespace

static bool consume(StringRef &text, StringRef token) {
  text = text.ltrim();
  return text.consume_front(token);
}

/// `'...'` or `"..."`; nullopt: no string.
static std::optional<StringRef> consumeString(StringRef &text) {
  text = text.ltrim();
  if (text.empty() || !StringRef("'\"").contains(text.front()))
    return std::nullopt;
  size_t end = text.find(text.front(), 1);
  if (end == StringRef::npos)
    return std::nullopt;
  StringRef value = text.slice(1, end);
  text = text.drop_front(end + 1);
  return value;
}

/// `(3, 4)`, `(3,)` or `()`; false: no list of numbers.
static bool consumeShape(StringRef &text, Header &header) {
  text = text.ltrim();
  StringRef begin = text;
  if (!consume(text, "("))
    return false;
  header.shape.emplace();
  while (!consume(text, ")")) {
    text = text.ltrim();
    bool negative = text.consume_front("-");
    StringRef digits = text.take_while(llvm::isDigit);
    text = text.drop_front(digits.size());
    if (digits.empty() || (!consume(text, ",") && !text.ltrim().starts_with(")")))
      return false;
    int64_t extent = 0;
    if (negative || digits.getAsInteger(10, extent))
      header.shape.reset();
    else if (header.shape)
      header.shape->push_back(extent);
  }
  header.shapeText = begin.drop_back(text.size());
  return true;
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, in any order.
static std::optional<Header> parseHeader(StringRef text) {
  Header header;
  if (!consume(text, "{"))
    return std::nullopt;
  while (!consume(text, "}")) {
    std::optional<StringRef> key = consumeString(text);
    if (!key || !consume(text, ":"))
      return std::nullopt;
    if (*key == "descr") {
      std::optional<StringRef> value = consumeString(text);
      header.descr = value.value_or("a structured type").str();
      if (!value) // a list of fields; nothing we read
        return header;
    } else if (*key == "fortran_order") {
      if (consume(text, "True"))
        header.fortranOrder = true;
      else if (consume(text, "False"))
        header.fortranOrder = false;
    } else if (*key == "shape") {
      if (!consumeShape(text, header))
        return std::nullopt;
    } else {
      return std::nullopt;
    }
    if (!consume(text, ",") && !text.ltrim().starts_with("}"))
      return std::nullopt;
  }
  if (!text.trim().empty() || !header.fortranOrder || header.shapeText.empty() || header.descr.empty())
    return std::nullopt;
  return header;
}

/// Bytes of the data, or nullopt where no file can hold them, or could if an extent of 0 were 1.
static std::optional<int64_t> dataSize(llvm::ArrayRef<int64_t> shape, int64_t elementSize) {
  int64_t size = elementSize;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(size, std::max<int64_t>(extent, 1), &size))
      return std::nullopt;
  return llvm::is_contained(shape, 0) ? 0 : size;
}

/// A header that is cut short: how many bytes it and what is before it need.
static llvm::Error truncated(StringRef path, uint64_t expected, uint64_t got) {
  return error(path,
               "truncated in the header: expected " + Twine(expected) + " bytes up to its end, got: " + Twine(got));
}

static StringRef descrOf(Dtype dtype) { return dtype == Dtype::I32 ? "<i4" : dtype == Dtype::F64 ? "<f8" : "<f4"; }

llvm::Expected<Tensor> attn::reference::readNpy(StringRef path, Dtype dtype) {
  llvm::sys::fs::file_status status; // devices and pipes may have no end
  if (!llvm::sys::fs::status(path, status) && status.type() != llvm::sys::fs::file_type::regular_file)
    return error(path, "expected the path of a regular file, got: a directory, device or pipe");
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return error(path, "cannot read the file: " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  if (!bytes.starts_with(magic))
    return error(path, "expected an .npy file, got: other contents");
  if (bytes.size() < 8)
    return truncated(path, 10, bytes.size());
  int version = uint8_t(bytes[6]);
  if (version != 1 && version != 2)
    return error(path, "expected .npy format version 1 or 2, got: " + Twine(version));
  size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start)
    return truncated(path, start, bytes.size());
  uint64_t length = version == 1 ? llvm::support::endian::read16le(bytes.data() + 8)
                                 : llvm::support::endian::read32le(bytes.data() + 8);
  if (bytes.size() - start < length)
    return truncated(path, start + length, bytes.size());
  StringRef text = bytes.substr(start, length), data = bytes.drop_front(start + length);

  std::optional<Header> header = parseHeader(text);
  if (!header) {
    std::string shown;
    llvm::raw_string_ostream(shown).write_escaped(text.trim().take_front(200));
    return error(path, "expected a header with `descr`, `fortran_order` and `shape`, got: " + shown);
  }
  if (dtype == Dtype::F64 && header->descr == descrOf(Dtype::F32))
    dtype = Dtype::F32;
  StringRef descr = descrOf(dtype);
  if (header->descr != descr)
    return error(path, "expected dtype " +
                           StringRef(dtype == Dtype::I32   ? "int32"
                                     : dtype == Dtype::F64 ? "float32 or float64"
                                                           : "float32") +
                           " (`" + descr + "`), got: `" + header->descr + "`");
  if (*header->fortranOrder)
    return error(path, "expected C order, got: Fortran order");
  std::optional<int64_t> size = header->shape ? dataSize(*header->shape, sizeOf(dtype)) : std::nullopt;
  if (!size)
    return error(path, "expected a shape with extents from 0 on and less than 2^63 bytes of data, got: " +
                           header->shapeText + " with " + Twine(data.size()) + " bytes of data");
  if (data.size() != uint64_t(*size))
    return error(path, (data.size() < uint64_t(*size) ? "truncated: expected " : "expected ") + Twine(*size) +
                           " bytes of data for shape " + shapeText(*header->shape) + ", got: " + Twine(data.size()));
  Tensor tensor(dtype, *header->shape);
  std::memcpy(tensor.bytes().data(), data.data(), data.size());
  return tensor;
}

llvm::Error attn::reference::checkShape(StringRef path, const Tensor &tensor, llvm::ArrayRef<int64_t> expected) {
  if (tensor.shape() == expected)
    return llvm::Error::success();
  return error(path, "expected shape " + shapeText(expected) + ", got: " + shapeText(tensor.shape()));
}

//===--------------------------------------------------------------------===//
// Writing
//===--------------------------------------------------------------------===//

static std::string makeHeader(const Tensor &tensor) {
  std::string shape;
  for (int64_t extent : tensor.shape())
    shape += std::to_string(extent) + (tensor.shape().size() == 1 ? "," : ", ");
  if (tensor.shape().size() > 1)
    shape.resize(shape.size() - 2);
  std::string text =
      "{'descr': '" + descrOf(tensor.dtype()).str() + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  text.resize(llvm::alignTo(10 + text.size() + 1, 64) - 10 - 1, ' '); // data starts at a multiple of 64
  text += '\n';
  std::string length(2, 0);
  llvm::support::endian::write16le(length.data(), uint16_t(text.size()));
  return magic.str() + std::string("\x01\x00", 2) + length + text;
}

llvm::Error attn::reference::checkWritable(StringRef path) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  if (!fs::status(path, status) && status.type() != fs::file_type::regular_file)
    return error(path, "expected the path of a file to write, got: a directory or device");
  StringRef folder = llvm::sys::path::parent_path(path);
  if (std::error_code code = fs::access(folder.empty() ? "." : folder, fs::AccessMode::Write))
    return error(path, "cannot write the file: " + code.message());
  return llvm::Error::success();
}

llvm::Error attn::reference::writeNpy(StringRef path, const Tensor &tensor) {
  namespace fs = llvm::sys::fs;
  if (llvm::Error bad = checkWritable(path))
    return bad;
  bool keeps = tensor.dtype() == Dtype::I32 || tensor.dtype() == Dtype::F64;
  Tensor values = tensor.to(keeps ? tensor.dtype() : Dtype::F32);
  auto temporary = fs::TempFile::create(path + ".tmp-%%%%%%%%");
  if (!temporary)
    return error(path, "cannot write the file: " + llvm::toString(temporary.takeError()));
  llvm::raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  os << makeHeader(values) << StringRef(values.bytes().data(), values.bytes().size());
  os.flush();
  if (std::error_code failure = os.error()) {
    os.clear_error();
    llvm::consumeError(temporary->discard());
    return error(path, "cannot write the file: " + failure.message());
  }
  if (llvm::Error failure = temporary->keep(path))
    return error(path, "cannot write the file: " + llvm::toString(std::move(failure)));
  return llvm::Error::success();
}
