// Errors and problems: an Error stops a command; a Problem is data about the schedule that was
// given.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bubblescope::inline sim {

/// The party at fault for an Error. exit_status() (tools/errors.h) maps it to an exit status.
enum class Fault : std::uint8_t {
  kProblem,  ///< the schedule or configuration has a problem (exit 1)
  kUsage,    ///< bad usage or unreadable input (exit 2)
  kMachine,  ///< the machine failed: disk full, no GPU, a rank died (exit 3)
  kMemory,   ///< the machine failed because a device is out of memory (exit 3)
};

constexpr bool is_of_machine(Fault fault) {
  return fault == Fault::kMachine || fault == Fault::kMemory;
}

/// The only exception type. Its message is one line: what, where and what to do. Thrown once,
/// caught in main.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  explicit Error(const std::string& message) : Error(Fault::kUsage, message) {}

  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// A fault of a schedule, and its place if that is known.
struct Problem {
  std::optional<std::int32_t> rank;      ///< the rank on which it occurs
  std::optional<std::int32_t> position;  ///< the index in that rank's order
  std::string what;                      ///< the fault, with its op: "0F0 runs twice"
  std::string remedy = {};               ///< of the schedule; empty where the fault says it
};

/// Returns problem and remedy as one text: "0F0 runs twice; the first is at position 0, remove
/// one".
inline std::string to_string(const Problem& problem) {
  return problem.remedy.empty() ? problem.what : problem.what + "; " + problem.remedy;
}

using Problems = std::vector<Problem>;

}  // namespace bubblescope::inline sim
