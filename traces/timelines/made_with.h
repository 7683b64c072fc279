// The assumptions behind a report, as names and values.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/files/format.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// The fields of MadeWith::conditions.
inline constexpr std::array<const char*, 4> kConditions{"inject", "slow", "arrivals", "policy"};

/// Returns "costs", "p2p_mode", "lowering", "overlap", "optimizer", "grad_reduction",
/// "ranks_per_host_link", "send_budget", "unshard", "profile" and the conditions, each as its flag
/// takes it; unknown ones are left out.
std::vector<std::pair<std::string, std::string>> describe(const MadeWith& made);

/// Returns the conditions for a title, such as " with slow rank=1,factor=2, policy ready:path";
/// empty without any.
std::string conditions_text(const MadeWith& made);

/// Writes `"made_with":{"costs":"f 1 ms, ...","p2p_mode":"dataflow",...}`, a member of a report.
void write_made_with_json(JsonWriter& json, const MadeWith& made);

/// Returns the lowering that such names and values describe. Throws Error for an unknown value,
/// with `where` they are: "trace.json: /otherData"; missing ones have their defaults.
LowerOptions read_lowering(const std::map<std::string, std::string>& described,
                           const std::string& where);

}  // namespace bubblescope::traces
