// The text with which a measured trace is refused.
#pragma once

#include <string>
#include <utility>

#include "tests/support/error_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {

/// Empty if its steps are read.
inline std::string refusal(traces::ObservedTrace trace) {
  return error_of([&] { traces::assemble_steps(std::move(trace)); });
}

/// The same of the text of a file.
inline std::string refusal(const std::string& text) {
  return error_of([&] { traces::assemble_steps(traces::parse_trace({"t.json", text})); });
}

}  // namespace bubblescope::tests
