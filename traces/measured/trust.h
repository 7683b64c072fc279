// Judges how far a report on measured steps can be trusted: a replay of a step, in its own order
// with its own durations, must reproduce what was measured.
//
// As json, in the report:
//   "trust":{"replay_error":0.0021,"verdict":"good","why":[]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/report.h"
#include "traces/files/trace_format.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// A replay that misses what was measured by this share of it does not explain it.
inline constexpr double kMaxReplayError = 0.05;

enum class Verdict : std::uint8_t {
  kGood,     ///< the report can be trusted
  kLimited,  ///< the report can be trusted with the reservations in `why`
  kNone,     ///< the ops do not explain the step: see remove_conclusions()
};

struct Trust {
  double replay_error = 0;  ///< median over the steps, a fraction of the makespan
  Verdict verdict = Verdict::kGood;
  std::vector<std::string> why;  ///< whole sentences, the most serious first
};

/// Evidence on measured steps besides their reports.
struct TrustEvidence {
  std::vector<double> replay_errors;  ///< [step], at least one
  std::vector<double> gap_shares;     ///< of find_gap_shares(); empty where unknown
  std::vector<std::string> doubts;    ///< from the reader
  std::vector<std::string> faults;    ///< from the reader; each alone leads to kNone
  bool lacks_ranks = false;           ///< ranks of the pipeline have no trace
  std::vector<LostTime> lost = {};    ///< the same; named where a replay misses time
};

/// Judges the mean report of the steps. A median replay error of 5 % or a lower bound above the
/// makespan is a fault; errors of 5 %, or ten times the usual one, in some steps are a doubt, and
/// so is a rank that is idle for 5 % of the time although its next op has its input.
Trust judge_trust(const BubbleReport& report, const TrustEvidence& evidence);

/// Describes, in a whole sentence, by how much a replay of the whole steps misses their measured
/// mean; nullopt under 5 %.
std::optional<std::string> doubt_whole_replay(Nanos measured, Nanos replayed);

/// Returns "good", "limited" or "none".
std::string_view to_string(Verdict verdict);

/// Writes the member above.
void write_trust_json(JsonWriter& json, const Trust& trust);

/// Returns the warning to print before anything else; empty for kGood.
std::string write_trust_text(const Trust& trust);

}  // namespace bubblescope::traces
