// Finds and reads the reference data.
#include "tests/golden/reference_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace bubblescope::tests {

std::vector<std::string> with_input_gradients(std::vector<std::string> row) {
  for (std::string& cell : row) {
    const std::size_t kind = cell.find_first_not_of("0123456789");
    if (kind == cell.npos || cell[kind] != 'B') continue;
    std::string weight_gradient = cell;
    weight_gradient[kind] = 'W';
    if (std::find(row.begin(), row.end(), weight_gradient) != row.end()) cell[kind] = 'I';
  }
  return row;
}

std::string missing_reference(const std::string& file) {
  const std::string path = reference_folder() + "/" + file;
  if (std::filesystem::exists(path)) return "";
  return path + " is not there; BUBBLESCOPE_SHARED_DATA says where the reference data is";
}

nlohmann::json read_reference(const std::string& file) {
  std::ifstream in(reference_folder() + "/" + file);
  return nlohmann::json::parse(in);
}

std::vector<nlohmann::json> read_reference_lines(const std::string& file) {
  std::ifstream in(reference_folder() + "/" + file);
  std::vector<nlohmann::json> values;
  for (std::string line; std::getline(in, line);) values.push_back(nlohmann::json::parse(line));
  return values;
}

ScheduleRequest make_request(const GoldenFamily& family, const nlohmann::json& golden_case) {
  ScheduleRequest request;
  request.profile = family.profile;
  if (family.moe_overlap) request.moe_overlap = MoeOverlap::kTurns;
  request.shape.ranks = golden_case["p"];
  request.shape.microbatches = golden_case["m"];
  request.shape.chunks =
      find_schedule(family.schedule).implied_chunks.value_or(golden_case.value("v", 1));
  if (golden_case.contains("N")) request.shape.group_size = golden_case["N"].get<std::int32_t>();
  request.cost.forward = kGoldenUnit;
  request.cost.input_grad = kGoldenUnit;
  request.cost.weight_grad = kGoldenUnit;
  request.cost.per = UniformCost::Per::kChunk;
  return request;
}

}  // namespace bubblescope::tests
