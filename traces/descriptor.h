// A file descriptor that closes itself, and what the system says where it fails.
#pragma once

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

namespace bubblescope {

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
  /// False, with errno, where what was written could not be kept.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

/// "No such file or directory" of ENOENT.
inline std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace bubblescope
