// Fuzzes the native json files: schedules and timelines must come back from what is written, and
// cost files must be read or refused.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sim/ir/error.h"
#include "traces/costs/cost_file.h"
#include "traces/schedules/native_schedule.h"
#include "traces/timelines/timeline_file.h"

namespace {

using namespace bubblescope;

void expect_round_trip(std::string_view text) {
  if (traces::is_timeline(text)) {
    const traces::TimelineFile step = traces::parse_timeline(text, "fuzz.json");
    const std::string written = traces::write_timeline(step.schedule, step.program, step.timeline);
    const traces::TimelineFile again = traces::parse_timeline(written, "fuzz.json");
    if (traces::write_timeline(again.schedule, again.program, again.timeline) != written)
      std::abort();
  } else if (text.find("bubblescope-costs") != text.npos) {
    traces::parse_cost_file(text, "fuzz.json");
  } else {
    const Schedule schedule = traces::read_native_schedule(text, "fuzz.json");
    if (!(traces::read_native_schedule(traces::write_native_schedule(schedule), "fuzz.json") ==
          schedule))
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    expect_round_trip({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {  // refused
  }
  return 0;
}
