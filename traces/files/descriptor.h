// A file descriptor that closes itself, and the text of system errors.
#pragma once

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

namespace bubblescope::traces {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Returns false, with errno set, where written data could not be saved.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

/// Returns the system's text of an error number: "No such file or directory" for ENOENT.
inline std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace bubblescope::traces
