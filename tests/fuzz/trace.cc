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
#include "traces/measured/name_rules.h"
#include "traces/measured/timer_log.h"

namespace {

using namespace bubblescope;

void read_whole(std::string_view text) {
  const traces::AssembledSteps read = traces::assemble_steps(traces::parse_trace({"fuzz", text}));
  for (const traces::MeasuredStep& step : read.steps) {
    if (step.timeline.end.size() != step.program.size()) std::abort();
    if (step.program.size() > 10'000) continue;
    analyze(step.schedule, step.program, step.timeline);
    replay_error(step.program, step.timeline);
  }
}

void read_log(std::string_view text) {
  if (!traces::is_timer_log(text)) return;
  for (const traces::TimerLog& log : traces::read_timer_logs(text, "fuzz")) {
    traces::write_timer_log_text(log);
    traces::write_timer_log_json(log);
  }
}

void read_rules(std::string_view text) {
  const traces::NameRules rules = traces::NameRules::parse(text, "fuzz");
  for (const char* name : {"F1 of 2", "fwd mb3", "step 4", ""}) rules.find(name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto read : {read_whole, read_log, read_rules}) try {
      read({reinterpret_cast<const char*>(data), size});
    } catch (const Error&) {  // refused
    }
  return 0;
}
