// Compresses and decompresses gzip, for files whose names end in .gz or whose content is packed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Compresses content that comes in pieces. The same content always gives the same bytes.
class GzipWriter {
 public:
  /// Compressed bytes go to `sink`. Throws Error (Fault::kMachine).
  explicit GzipWriter(std::function<void(std::string_view packed)> sink);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view content);
  /// Writes the rest; without this call the file is truncated.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether these first bytes are those of a gzip file, whatever its name is.
bool is_gzip(std::string_view begin);

/// Decompresses, including several members in a row. Throws an Error whose text follows a file's
/// name: "is not a gzip file", "is cut short", ..., or that the result exceeds
/// traces/files/input_limit.h.
std::string gunzip(std::string_view packed);

/// The first bytes of the content, at most 64 KiB, from the beginning of a file; empty where it is
/// no gzip file.
std::string gunzip_begin(std::string_view packed);

}  // namespace bubblescope::traces
