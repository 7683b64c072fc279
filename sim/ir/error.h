// What goes wrong: an Error stops a command; a Problem is data about what was asked.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bubblescope {

/// Whose fault an Error is; main turns it into the exit status of docs/cli.
enum class Fault : std::uint8_t {
  kProblem,  ///< a problem in what was asked about (exit 1)
  kUsage,    ///< bad usage or unreadable input (exit 2)
  kMachine,  ///< the machine failed: disk full, no GPU, a rank died (exit 3)
};

/// The one exception type: what, where and what to do, in one line. Thrown once, caught in main.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  explicit Error(const std::string& message) : Error(Fault::kUsage, message) {}

  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// One thing wrong with a schedule: where it is, where that is known, and what it is.
struct Problem {
  std::optional<std::int32_t> rank;      ///< the rank on which it shows
  std::optional<std::int32_t> position;  ///< the index in that rank's order
  std::string message;                   ///< what is wrong and what would mend it
};

using Problems = std::vector<Problem>;

}  // namespace bubblescope
