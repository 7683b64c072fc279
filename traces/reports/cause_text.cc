// Writes what the step would gain without each cause.
#include "traces/reports/cause_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traces/reports/cause_phrases.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr double kMinReported = 0.01;  ///< as a fraction of the step
constexpr std::size_t kShown = 5;

double share_of(const Cause& cause, Nanos step) { return fraction(cause.saves, step); }

/// "the step", or "the step without its slow workers" where savings were found without them.
std::string name_step(const Cause& cause, const CauseReport& report) {
  std::vector<std::string> without;
  for (const CauseKind kind : cause.presumed) {
    const bool costs = std::any_of(report.causes.begin(), report.causes.end(),
                                   [kind](const Cause& other) { return other.kind() == kind; });
    const std::string alone = costs ? "" : ", which alone cost nothing,";
    if (kind == CauseKind::kWorker) without.push_back("its slow workers" + alone);
    if (kind == CauseKind::kPause) without.push_back("its long ops" + alone);
    if (kind == CauseKind::kDrift) without.push_back("the drift" + alone);
  }
  if (without.empty()) return "the step";
  return "the step without " + list_words(without);
}

/// Says what the causes within the pipeline save together, where that is less than their sum.
std::string describe_overlap(const CauseReport& report, const std::vector<Cause>& shown,
                             Nanos step) {
  Nanos sum = 0;
  bool are_all_within = true;
  for (const Cause& cause : shown) {
    are_all_within = are_all_within && cause.is_within_pipeline();
    if (cause.is_within_pipeline()) sum += cause.saves;
  }
  if (fraction(sum - report.saved_together, step) < kMinReported) return {};
  return fmt::format("{} overlap: without all of them at once, the step would be {} shorter ({})",
                     are_all_within ? "these" : "those within the pipeline",
                     format_time(report.saved_together),
                     format_percent(fraction(report.saved_together, step)));
}

/// Continues every line of a text below the first word of "cause:    unequal stages".
std::string indent_lines(std::string text) {
  constexpr std::string_view kIndent = "          ";
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
    text.insert(at + 1, kIndent);
  return text;
}

}  // namespace

std::string_view cause_code(CauseKind kind) {
  switch (kind) {
    case CauseKind::kWorker: return "worker";
    case CauseKind::kStage: return "stage";
    case CauseKind::kSequenceLengths: return "sequence_lengths";
    case CauseKind::kCommunication: return "communication";
    case CauseKind::kLaunch: return "launch";
    case CauseKind::kPause: return "pause";
    case CauseKind::kDrift: return "drift";
    case CauseKind::kSlowSteps: return "slow_steps";
    case CauseKind::kVariation: return "variation";
    case CauseKind::kLateReplica: return "late_replica";
  }
  return "";
}

void write_causes_json(JsonWriter& json, const CauseReport& report, Nanos step) {
  if (!report.is_known) {
    json.null().line(1).key("causes_together_ns").null();
    return;
  }
  json.begin_array();
  for (const Cause& cause : report.causes) {
    json.line(3).begin_object().member("cause", cause_code(cause.kind()));
    json.member("where", phrase_cause(cause).place).member("saves_ns", cause.saves);
    json.key("share").fixed(share_of(cause, step), 6);
    if (!cause.presumed.empty()) {
      json.key("presumed").begin_array();
      for (const CauseKind kind : cause.presumed) json.value(cause_code(kind));
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().line(1).member("causes_together_ns", report.saved_together);
}

std::vector<Cause> find_shown_causes(const CauseReport& report, Nanos step) {
  std::vector<Cause> shown;
  for (const Cause& cause : report.causes)
    if (share_of(cause, step) >= kMinReported && shown.size() < kShown) shown.push_back(cause);
  // A small cause without which the savings of a shown one were found.
  const auto is_shown = [&](CauseKind kind) {
    return std::any_of(shown.begin(), shown.end(),
                       [&](const Cause& cause) { return cause.kind() == kind; });
  };
  std::set<CauseKind> presumed;
  for (const Cause& cause : shown) presumed.insert(cause.presumed.begin(), cause.presumed.end());
  for (const Cause& cause : report.causes)
    if (presumed.contains(cause.kind()) && !is_shown(cause.kind())) shown.push_back(cause);
  return shown;
}

CausesInWords describe_causes(const CauseReport& report, Nanos step, bool has_replicas) {
  CausesInWords words;
  if (!report.is_known) {
    words.remark = fmt::format(
        "unknown: messages leave some time after their ops, and replayed without that time\n"
        "the step takes {}, so that no replay can tell causes apart",
        format_time(report.replayed));
    return words;
  }
  const std::vector<Cause> shown = find_shown_causes(report, step);
  for (const Cause& cause : shown) {
    const CausePhrases phrases = phrase_cause(cause);
    const double share = share_of(cause, step);
    const auto* const stage = std::get_if<UnequalStage>(&cause.facts);
    words.causes.push_back(
        {phrases.description,
         fmt::format("{} would be {} shorter ({}) {}", name_step(cause, report),
                     format_time(cause.saves), format_percent(share), phrases.remedy),
         stage != nullptr && stage->factor > 1 && !has_replicas
             ? "(or its rank is slow: that takes a second replica to tell)"
             : "",
         cause.saves, share});
  }
  words.remark = shown.empty() ? "none that would save 1 % of the step"
                               : describe_overlap(report, shown, step);
  return words;
}

std::string write_causes_text(const CauseReport& report, Nanos step, bool has_replicas) {
  const CausesInWords words = describe_causes(report, step, has_replicas);
  std::string lines;
  const auto add = [&](const std::string& line) {
    if (!line.empty()) lines += (lines.empty() ? "" : "\n") + line;
  };
  for (const CauseWords& cause : words.causes) {
    add(cause.what);
    add(cause.would_save);
    add(cause.caveat);
  }
  add(words.remark);
  return "cause:    " + indent_lines(lines) + "\n";
}

std::optional<std::string> describe_many_long_ops(const CauseReport& report) {
  if (!report.many_long_ops) return {};
  return fmt::format(
      "{} of the ops take {:.2f} x as long as usual, scattered over ranks, steps and micro-batches "
      "as interruptions are: they are too many to be a cause of their own, and the causes show "
      "only a part of what they cost",
      format_percent(report.many_long_ops->fraction), report.many_long_ops->factor);
}

}  // namespace bubblescope::traces
