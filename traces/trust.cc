// Judges measured steps and words the verdict.
#include "traces/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/json_string.h"
#include "traces/time_axis.h"

namespace bubblescope {

namespace {

constexpr double kMostReplayError = 0.05;
constexpr double kRounding = 1e-6;

/// The value that a fraction of the values does not exceed.
double quantile(std::vector<double> values, std::size_t percent) {
  std::sort(values.begin(), values.end());
  const std::size_t rank = (values.size() * percent + 99) / 100;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

Trust judge_trust(const BubbleReport& report, const TrustEvidence& evidence) {
  Trust trust;
  trust.replay_error = quantile(evidence.replay_errors, 50);
  const double worst = quantile(evidence.replay_errors, 95);
  std::vector<std::string> faults = evidence.faults;
  std::vector<std::string> doubts = evidence.doubts;
  if (trust.replay_error >= kMostReplayError)
    faults.push_back(
        fmt::format("a replay of the ops' own order and durations misses the measured span by "
                    "{:.1f} %: time passes that no op and no message explains",
                    100 * trust.replay_error));
  else if (worst >= kMostReplayError)
    doubts.push_back(
        fmt::format("in some steps a replay misses the measured span by {:.1f} %", 100 * worst));
  const double bound = static_cast<double>(report.lower_bound);
  if (bound > static_cast<double>(report.makespan) * (1 + kRounding))
    faults.push_back(fmt::format(
        "the ops alone need {}, but the measured span is {}: ops overlap or hold waiting",
        short_text(report.lower_bound), short_text(report.makespan)));
  trust.verdict = !faults.empty()   ? Verdict::kNone
                  : !doubts.empty() ? Verdict::kLimited
                                    : Verdict::kGood;
  trust.why = std::move(faults);
  trust.why.insert(trust.why.end(), doubts.begin(), doubts.end());
  return trust;
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood: return "good";
    case Verdict::kLimited: return "limited";
    case Verdict::kNone: return "none";
  }
  return "";
}

std::string trust_json(const Trust& trust) {
  std::string why;
  for (const std::string& reason : trust.why) why += (why.empty() ? "" : ",") + json_string(reason);
  return fmt::format("\"trust\":{{\"replay_error\":{},\"verdict\":\"{}\",\"why\":[{}]}}",
                     trust.replay_error, to_string(trust.verdict), why);
}

std::string trust_text(const Trust& trust) {
  if (trust.verdict == Verdict::kGood) return {};
  std::string text =
      trust.verdict == Verdict::kNone
          ? "not trusted: the trace does not explain its steps, so no bubble, bound, straggler or "
            "what-if is shown\n"
          : "trusted with reservations:\n";
  for (const std::string& reason : trust.why) text += "  " + reason + "\n";
  return text + "\n";
}

std::string without_conclusions(const std::string& report_json) {
  nlohmann::ordered_json report = nlohmann::ordered_json::parse(report_json);
  for (const char* key : {"bubble", "lower_bound_ns", "critical_path", "stragglers", "slowdown"})
    if (report.contains(key)) report[key] = nullptr;
  for (nlohmann::ordered_json& rank : report["ranks"]) rank["idle_by_cause_ns"] = nullptr;
  for (nlohmann::ordered_json& row : report["per_iteration"]) row["bubble_ratio"] = nullptr;
  return report.dump(1) + "\n";
}

}  // namespace bubblescope
