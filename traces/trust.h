// How far a report on measured steps can be believed: a replay of a step, its own order with its
// own durations, must meet what was measured.
//
// As json, in the report:
//   "trust":{"replay_error":0.0021,"verdict":"good","why":[]}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope {

enum class Verdict : std::uint8_t {
  kGood,     ///< what is reported stands
  kLimited,  ///< it stands with the reservations of `why`
  kNone,     ///< the ops do not explain the step: reports are without_conclusions()
};

struct Trust {
  double replay_error = 0;  ///< median over the steps, a fraction of the makespan
  Verdict verdict = Verdict::kGood;
  std::vector<std::string> why;  ///< in sentences, the gravest first
};

/// What is known of measured steps besides their reports.
struct TrustEvidence {
  std::vector<double> replay_errors;  ///< of each step, at least one
  std::vector<std::string> doubts;    ///< of the reader
  std::vector<std::string> faults;    ///< of the reader: each alone leaves nothing to conclude
};

/// Judges the mean report of the steps. A median replay error of 5 % and a bound above the makespan
/// are faults.
Trust judge_trust(const BubbleReport& report, const TrustEvidence& evidence);

/// "good", "limited", "none".
std::string_view to_string(Verdict verdict);

/// The member above.
std::string trust_json(const Trust& trust);

/// What to say before anything else; empty where all is good.
std::string trust_text(const Trust& trust);

}  // namespace bubblescope
