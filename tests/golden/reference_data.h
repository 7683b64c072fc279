// Reads the reference data where it is present; none of it is part of the project.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "sim/model/schedule_def.h"
#include "tests/support/test_paths.h"

namespace bubblescope::tests {

/// The reason why tests that need a file of that folder skip; empty where it is present.
std::string missing_reference(const std::string& file);

/// Reads a json file, or one with a json value per line.
nlohmann::json read_reference(const std::string& file);
std::vector<nlohmann::json> read_reference_lines(const std::string& file);

/// PyTorch's own tests write B for the input gradient beside W: where a row has 3W0, its "3B0" is
/// our 3I0.
std::vector<std::string> with_input_gradients(std::vector<std::string> row);

/// A golden file of orders and the schedule that must produce them.
struct GoldenFamily {
  const char* file;
  const char* schedule;
  Profile profile;
  bool moe_overlap = false;
};

/// Printed by gtest, which would otherwise show the bytes.
inline std::ostream& operator<<(std::ostream& out, const GoldenFamily& family) {
  return out << family.schedule;
}

/// The request of a golden case: F = I = W = 10, B = 20 per chunk.
ScheduleRequest make_request(const GoldenFamily& family, const nlohmann::json& golden_case);

inline constexpr Nanos kGoldenUnit = 10;

}  // namespace bubblescope::tests
