// Judges measured steps and words the verdict.
#include "traces/measured/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/ir/quantile.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

constexpr double kRounding = 1e-6;
/// An error of 1 % is noticed where it is ten times the usual one.
constexpr double kNoticedError = 0.01;
constexpr double kUnusual = 10;

/// Whether lost time explains most of a share of the steps.
bool explain(const std::vector<LostTime>& lost, double share) {
  return std::any_of(lost.begin(), lost.end(),
                     [share](const LostTime& one) { return 2 * one.share >= share; });
}

/// Every sentence once: many files may have the same fault.
std::vector<std::string> without_repeated(const std::vector<std::string>& sentences) {
  std::vector<std::string> once;
  for (const std::string& sentence : sentences)
    if (std::find(once.begin(), once.end(), sentence) == once.end()) once.push_back(sentence);
  return once;
}

/// Describes the rank with the most gaps, if these are long. A guess at the reason is left out
/// where lost time is one.
std::optional<std::string> describe_gaps(const std::vector<double>& gap_shares,
                                         const std::vector<LostTime>& lost) {
  const auto longest = std::max_element(gap_shares.begin(), gap_shares.end());
  if (longest == gap_shares.end() || *longest < kMaxReplayError) return {};
  return fmt::format(
      "rank {} is idle for {:.1f} % of the pipeline's time although its next op has its input{}",
      longest - gap_shares.begin(), 100 * *longest,
      explain(lost, *longest) ? ""
                              : ": ops or messages are missing or recorded too short, or the host "
                                "launches ops late");
}

/// The sentences on the longest lost times.
std::vector<std::string> list_longest_lost(std::vector<LostTime> lost) {
  constexpr std::size_t kShown = 2;
  std::stable_sort(lost.begin(), lost.end(), [](const LostTime& left, const LostTime& right) {
    return left.share > right.share;
  });
  std::vector<std::string> texts;
  for (LostTime& one : lost)
    if (texts.size() < kShown) texts.push_back(std::move(one.text));
  return texts;
}

}  // namespace

Trust judge_trust(const BubbleReport& report, const TrustEvidence& evidence) {
  Trust trust;
  trust.replay_error = quantile(evidence.replay_errors, 50);
  const double worst = quantile(evidence.replay_errors, 95);
  std::vector<std::string> faults = without_repeated(evidence.faults);
  std::vector<std::string> doubts = evidence.doubts;
  if (trust.replay_error >= kMaxReplayError)
    faults.push_back(
        fmt::format("a replay of the ops' own order and durations misses the measured span by "
                    "{:.1f} %: {}",
                    100 * trust.replay_error,
                    evidence.lacks_ranks
                        ? "the ranks without a trace are missing from it, and may explain the rest"
                        : "the rest is time that no op and no message explains"));
  else if (worst >= kMaxReplayError)
    doubts.push_back(
        fmt::format("in some steps a replay misses the measured span by {:.1f} %", 100 * worst));
  else if (worst >= kNoticedError && worst >= kUnusual * trust.replay_error)
    doubts.push_back(fmt::format(
        "in some steps a replay misses the measured span by {:.1f} %, but usually by {:.1f} %: "
        "they hold something that the trace does not show",
        100 * worst, 100 * trust.replay_error));
  std::optional<std::string> gaps = describe_gaps(evidence.gap_shares, evidence.lost);
  const bool lacks_time = gaps || trust.replay_error >= kMaxReplayError;
  if (gaps) doubts.push_back(*std::move(gaps));
  if (lacks_time)
    for (std::string& text : list_longest_lost(evidence.lost)) doubts.push_back(std::move(text));
  const double bound = static_cast<double>(report.lower_bound);
  if (bound > static_cast<double>(report.makespan) * (1 + kRounding))
    faults.push_back(fmt::format(
        "the ops alone need {}, but the measured span is {}: ops overlap or include waiting",
        format_time(report.lower_bound), format_time(report.makespan)));
  trust.verdict = !faults.empty()   ? Verdict::kNone
                  : !doubts.empty() ? Verdict::kLimited
                                    : Verdict::kGood;
  trust.why = std::move(faults);
  trust.why.insert(trust.why.end(), doubts.begin(), doubts.end());
  return trust;
}

std::optional<std::string> doubt_whole_replay(Nanos measured, Nanos replayed) {
  const double off = static_cast<double>(replayed) / static_cast<double>(measured) - 1;
  if (measured <= 0 || std::abs(off) < kMaxReplayError) return {};
  return fmt::format(
      "the whole steps took {} in the mean, but with the works around the ops they replay in {} "
      "({:+.1f} %): no cause, slowdown or slow worker is shown, because all follow from that "
      "replay",
      format_time(measured), format_time(replayed), 100 * off);
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood: return "good";
    case Verdict::kLimited: return "limited";
    case Verdict::kNone: return "none";
  }
  return "";
}

void write_trust_json(JsonWriter& json, const Trust& trust) {
  json.key("trust").begin_object().key("replay_error").shortest(trust.replay_error);
  json.member("verdict", to_string(trust.verdict)).array("why", trust.why).end_object();
}

std::string write_trust_text(const Trust& trust) {
  if (trust.verdict == Verdict::kGood) return {};
  const bool is_none = trust.verdict == Verdict::kNone;
  std::string text =
      is_none ? "not trusted: " + trust.why.front() + "\n" : "trusted with reservations:\n";
  for (std::size_t at = is_none ? 1 : 0; at < trust.why.size(); ++at)
    text += "  " + trust.why[at] + "\n";
  if (is_none) text += "so no bubble, bound, straggler or cause is shown\n";
  return text + "\n";
}

}  // namespace bubblescope::traces
