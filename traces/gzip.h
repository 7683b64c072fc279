// gzip: what files whose names end in .gz hold.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace bubblescope {

/// Packs; the same content gives the same bytes. Throws Error (Fault::kMachine).
std::string gzip(std::string_view content);

/// Packs what comes in pieces.
class GzipWriter {
 public:
  /// What is packed goes to `sink`. Throws Error (Fault::kMachine).
  explicit GzipWriter(std::function<void(std::string_view packed)> sink);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view content);
  /// Gives out the rest; without it the file is cut short.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Unpacks, also several members in a row. Throws Error that goes on after a file's name:
/// "is no gzip file", "is cut short", ..., or that more comes out than
/// traces/input_limit.h allows.
std::string gunzip(std::string_view packed);

}  // namespace bubblescope
