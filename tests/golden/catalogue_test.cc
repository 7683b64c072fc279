// Checks schedules against a catalogue measured by an independent simulator: time, span, memory,
// messages.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "tests/golden/reference_data.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

using nlohmann::json;

struct Known {
  const char* schedule;
  std::int32_t chunks;
  std::int32_t slices = 1;
};

const std::map<std::string, Known> kCatalogue = {
    {"gpipe", {"gpipe", 1}},
    {"1f1b", {"1f1b", 1}},
    {"eager1f1b", {"eager-1f1b", 1}},
    {"interleaved_v2", {"interleaved", 2}},
    {"interleaved_v4", {"interleaved", 4}},
    {"loopedbfs_v2", {"bfs", 2}},
    {"zbh1", {"zb-h1", 1}},
    {"zbh2", {"zb-h2", 1}},
    {"izb_v2", {"interleaved-zb", 2}},
    {"zbv", {"zb-v", 2}},
    {"dualpipe", {"dualpipe", 1}},
    {"dualpipev", {"dualpipev", 2}},
    {"chimera", {"chimera", 1}},
    {"gems", {"gems", 1}},
    {"hanayo_w1", {"hanayo", 2}},
    {"hanayo_w2", {"hanayo", 4}},
    {"seq1f1b_n2", {"seq1f1b", 1, 2}},
    {"seq1f1b_n4", {"seq1f1b", 1, 4}},
    {"terapipe_n4", {"terapipe", 1, 4}},
    {"slimpipe_n4", {"slimpipe", 1, 4}},
};

/// The catalogue's unit of time, of which chunks, slices and quarters are whole numbers.
constexpr Nanos kUnit = 240;

/// Parses "113/4" in units.
Nanos parse_time(const std::string& text) {
  const std::size_t slash = text.find('/');
  const Nanos parts = slash == std::string::npos ? 1 : std::stoll(text.substr(slash + 1));
  return std::stoll(text.substr(0, slash)) * kUnit / parts;
}

ScheduleRequest make_request(const json& row, const Known& known) {
  ScheduleRequest request;
  request.shape.ranks = row["p"];
  request.shape.chunks = known.chunks;
  request.shape.slices = known.slices;
  request.shape.microbatches = row["m"];
  request.cost.forward = row["F"].get<Nanos>() * kUnit;
  request.cost.input_grad = row["I"].get<Nanos>() * kUnit;
  request.cost.weight_grad = row["W"].get<Nanos>() * kUnit;
  request.cost.message = parse_time(row["comm"]);
  return request;
}

std::vector<std::int64_t> count_sends(const Program& program) {
  std::vector<std::int64_t> sends(program.ranks, 0);
  for (const Instruction& instruction : program.instructions)
    if (is_message(instruction)) ++sends[instruction.rank];
  return sends;
}

TEST(Catalogue, RowsAreReproduced) {
  const std::string file = "golden/catalogue.json";
  if (const std::string missing = missing_reference(file); !missing.empty())
    GTEST_SKIP() << missing;
  std::map<std::string, int> rows;
  for (const json& row : read_reference(file)) {
    const auto known = kCatalogue.find(row["name"]);
    if (known == kCatalogue.end()) continue;
    ++rows[row["name"]];
    const ScheduleRequest request = make_request(row, known->second);
    const Schedule schedule = build_schedule(find_schedule(known->second.schedule), request);
    const Program program = lower_or_throw(schedule);
    const Times times = times_of(program, simulate(program, spread(request.cost, schedule)));
    EXPECT_EQ(times.makespan, parse_time(row["T"])) << row;
    EXPECT_EQ(times.max_span, parse_time(row["span"])) << row;
    EXPECT_EQ(count_sends(program), row["sends"].get<std::vector<std::int64_t>>()) << row;
    const std::int32_t parts = known->second.chunks * known->second.slices;
    std::vector<std::int64_t> peaks;  // the catalogue counts in shares of v chunks of n slices
    for (const std::string peak : row["peak"]) peaks.push_back(parse_time(peak) * parts / kUnit);
    EXPECT_EQ(walk_peaks(schedule, {}), peaks) << row;
  }
  EXPECT_EQ(rows.size(), kCatalogue.size());
}

}  // namespace
}  // namespace bubblescope::tests
