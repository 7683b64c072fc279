// Fuzzes what `analyze` reads: a trace is refused, or its steps have one time per instruction.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/analysis/analyze.h"
#include "sim/analysis/replay.h"
#include "sim/ir/error.h"
#include "tests/support/as_written.h"
#include "traces/measured/assemble_steps.h"

namespace {

using namespace bubblescope;

void read_whole(std::string_view text) {
  traces::ObservedTrace trace = traces::parse_trace({"fuzz", text});
  for (const traces::MeasuredStep& step : traces::assemble_steps(trace)) {
    if (step.timeline.end.size() != step.program.size()) std::abort();
    if (step.program.size() > 10'000) continue;
    analyze(step.schedule, step.program, step.timeline);
    replay_error(step.program, step.timeline);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read_whole({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {  // refused
  }
  return 0;
}
