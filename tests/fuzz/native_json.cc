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
  if (is_timeline(text)) {
    const TimelineFile step = parse_timeline(text, "fuzz.json");
    const std::string written = write_timeline(step.schedule, step.program, step.timeline);
    const TimelineFile again = parse_timeline(written, "fuzz.json");
    if (write_timeline(again.schedule, again.program, again.timeline) != written) std::abort();
  } else if (text.find("bubblescope-costs") != text.npos) {
    parse_cost_file(text, "fuzz.json");
  } else {
    const Schedule schedule = read_native_schedule(text, "fuzz.json");
    if (!(read_native_schedule(write_native_schedule(schedule), "fuzz.json") == schedule))
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
