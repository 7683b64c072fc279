// Writes a sentence for each kind of cause.
#include "traces/reports/cause_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr double kMinReported = 0.01;  ///< as a fraction of the step
constexpr std::size_t kShown = 5;
constexpr std::size_t kNamedWorkers = 3;

double share_of(const Cause& cause, Nanos step) { return fraction(cause.saves, step); }

/// Names the first of some workers, at most `shown`: "rank 1, rank 2 and 3 other ranks".
std::string name_workers(const Cause& cause, bool has_replicas, std::size_t shown) {
  std::string names;
  const std::size_t named = std::min(shown, cause.changed.size());
  for (std::size_t at = 0; at < named; ++at)
    names += (at == 0 ? "" : ", ") + name_worker(cause.changed[at], has_replicas);
  const std::size_t others = cause.changed.size() - named;
  if (others == 0) return names;
  return names + " and " + counted(static_cast<std::int64_t>(others), "other rank");
}

/// Names the ops that a drift has changed: "all ops", "the ops of rank 1", "the ops of rank 1 and 2
/// other ranks".
std::string changed_ops(const Cause& cause) {
  if (cause.changed.empty()) return "all ops";
  return "the ops of " + name_workers(cause, cause.has_replicas, 1);
}

std::string name_stages(const Cause& cause) {
  return cause.stages.size() > 1 ? fmt::format("stages {}", fmt::join(cause.stages, " and "))
                                 : fmt::format("stage {}", cause.stage);
}

std::set<std::int32_t> replicas_of(const Cause& cause) {
  std::set<std::int32_t> replicas;
  for (const Worker& worker : cause.changed) replicas.insert(worker.replica);
  return replicas;
}

/// "1", "1 and 3", "1, 3 and 4".
std::string join_words(const std::vector<std::string>& words) {
  std::string joined;
  for (std::size_t at = 0; at < words.size(); ++at)
    joined += (at == 0 ? "" : at + 1 == words.size() ? " and " : ", ") + words[at];
  return joined;
}

std::string list_replicas(const Cause& cause) {
  std::vector<std::string> numbers;
  for (const std::int32_t replica : replicas_of(cause)) numbers.push_back(std::to_string(replica));
  return join_words(numbers);
}

/// Names what is slow: a worker, several, or all of one or more replicas.
std::string_view name_slow_kind(const Cause& cause) {
  if (cause.whole_replicas) return replicas_of(cause).size() > 1 ? "replicas" : "replica";
  return cause.changed.empty() ? "worker" : "workers";
}

/// "rank 1 of replica 0", "replicas 1 and 3", "rank 1 of replica 0, rank 2 of replica 0".
std::string name_slow_workers(const Cause& cause) {
  if (cause.changed.empty()) return name_worker({cause.replica, cause.rank}, cause.has_replicas);
  if (!cause.whole_replicas) return name_workers(cause, true, kNamedWorkers);
  return fmt::format("{} {}", name_slow_kind(cause), list_replicas(cause));
}

std::string describe_slow_workers(const Cause& cause) {
  const std::string steps =
      fmt::format("in {} of {}", cause.steps, counted(cause.all_steps, "step"));
  if (cause.grows)
    return fmt::format("slow worker: {} becomes slower from step to step, to {:.2f} x its first",
                       cause_place(cause), cause.factor);
  if (cause.is_at_times)
    return fmt::format("slow worker {}: {} takes {:.2f} x what it takes in the others", steps,
                       cause_place(cause), cause.factor);
  if (cause.changed.empty())
    return fmt::format("slow worker: {} takes {:.2f} x what its stage takes in other replicas, {}",
                       cause_place(cause), cause.factor, steps);
  return fmt::format("slow {}: {}{} take {:.2f} x what their stages take in other replicas, {}",
                     name_slow_kind(cause), cause.whole_replicas ? "all ranks of " : "",
                     cause_place(cause), cause.factor, steps);
}

std::string describe_long_ops(const Cause& cause) {
  std::string text = fmt::format("pauses: {} took {:.2g} x as long as usual",
                                 counted(cause.count, "op"), cause.factor);
  if (cause.changed.empty()) return text;
  return text + fmt::format(", nearly all on {}, in {}",
                            name_worker(cause.changed.front(), cause.has_replicas),
                            counted(cause.steps, "step"));
}

std::string describe_cause(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kVariation:
      return "uneven ops: those of one kind and stage do not all take as long, and forwards and "
             "backwards\nof a micro-batch do not grow together";
    case CauseKind::kWorker: return describe_slow_workers(cause);
    case CauseKind::kStage:
      return fmt::format("unequal stages: {} {} {:.2f} x the mean stage's work", cause_place(cause),
                         cause.stages.size() > 1 ? "each have up to" : "has", cause.factor);
    case CauseKind::kSequenceLengths:
      return fmt::format(
          "unequal micro-batches: forwards and backwards grow together (correlation {:.2f})",
          cause.factor);
    case CauseKind::kCommunication:
      return fmt::format("exposed communication: {}{}", cause_place(cause),
                         cause.is_unseen ? " (or ops start late: nothing shows when these arrive)"
                         : cause.link
                             ? fmt::format(", {} each (usual: {})", format_time(cause.link->time),
                                           format_time(cause.link->usual))
                             : "");
    case CauseKind::kLaunch:
      return fmt::format(
          "late launches: ops start after they could, most on rank {} ({} of its time)", cause.rank,
          format_percent(cause.factor));
    case CauseKind::kPause:
      return cause.within_ops
                 ? describe_long_ops(cause)
                 : fmt::format("pauses: {} between ops, long and rare, {}on rank {}, in {}",
                               counted(cause.count, "gap"),
                               cause.count > 1 ? "longest in total " : "", cause.rank,
                               counted(cause.steps, "step"));
    case CauseKind::kSlowSteps:
      return fmt::format(
          "slow steps: {}, the ops of most ranks take {:.2f} x what they take in the others",
          cause_place(cause), cause.factor);
    case CauseKind::kLateReplica:
      return fmt::format(
          "late start: {} begin{} {} ops later in the step than the earliest one does, in {} of {}",
          cause_place(cause), cause.changed.size() > 1 ? "" : "s",
          cause.changed.size() > 1 ? "their" : "its", cause.steps,
          counted(cause.all_steps, "step"));
    case CauseKind::kDrift:
      return fmt::format("drift: after the first {} {} take {:.3g} x as long",
                         counted(cause.steps, "step"), changed_ops(cause), cause.factor);
  }
  return "";
}

/// "messages from rank 1 to rank 2 of replica 0".
std::string name_link(const SlowLink& link) {
  const std::string ranks =
      link.both_ways ? fmt::format("between ranks {} and {}", std::min(link.from, link.to),
                                   std::max(link.from, link.to))
                     : fmt::format("from rank {} to rank {}", link.from, link.to);
  return "messages " + ranks + (link.replica ? fmt::format(" of replica {}", *link.replica) : "");
}

/// Completes "the step would be 3 ms shorter": "if they were launched in time".
std::string_view remedy(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kWorker:
      if (cause.grows) return "if it had stayed as fast as at first";
      if (cause.is_at_times) return "if it were as fast as in those";
      return cause.changed.empty() ? "if it were as fast as there"
                                   : "if they were as fast as there";
    case CauseKind::kStage: return "with the same work in equal stages";
    case CauseKind::kSequenceLengths: return "with the same work in equal micro-batches";
    case CauseKind::kCommunication:
      if (cause.link) return "if they took the usual time";
      return cause.collective.empty() ? "if messages took no time" : "if ops hid it";
    case CauseKind::kLaunch: return "if they were launched in time";
    case CauseKind::kPause: return "without them";
    case CauseKind::kDrift: return "if they had stayed as fast as before";
    case CauseKind::kSlowSteps: return "if they were as fast as in those";
    case CauseKind::kLateReplica:
      return cause.changed.size() > 1 ? "if they began as soon as that one"
                                      : "if it began as soon as that one";
    case CauseKind::kVariation: return "if each took their mean time";
  }
  return "";
}

/// "the step", or "the step without its slow workers" where savings were found without them.
std::string name_step(const Cause& cause, const CauseReport& report) {
  std::vector<std::string> without;
  for (const CauseKind kind : cause.presumed) {
    const bool costs = std::any_of(report.causes.begin(), report.causes.end(),
                                   [kind](const Cause& other) { return other.kind == kind; });
    const std::string alone = costs ? "" : ", which alone cost nothing,";
    if (kind == CauseKind::kWorker) without.push_back("its slow workers" + alone);
    if (kind == CauseKind::kPause) without.push_back("its long ops" + alone);
    if (kind == CauseKind::kDrift) without.push_back("the drift" + alone);
  }
  if (without.empty()) return "the step";
  return "the step without " + join_words(without);
}

/// Says what the causes within the pipeline save together, where that is less than their sum.
std::string describe_overlap(const CauseReport& report, const std::vector<Cause>& shown,
                             Nanos step) {
  Nanos sum = 0;
  bool are_all_within = true;
  for (const Cause& cause : shown) {
    const bool is_within = cause.collective.empty() && cause.kind != CauseKind::kLateReplica;
    are_all_within = are_all_within && is_within;
    if (is_within) sum += cause.saves;
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

std::string cause_place(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kWorker: return name_slow_workers(cause);
    case CauseKind::kStage: return fmt::format("{} (rank {})", name_stages(cause), cause.rank);
    case CauseKind::kSequenceLengths: return "micro-batches";
    case CauseKind::kCommunication:
      if (!cause.collective.empty()) return cause.collective;
      if (cause.link) return name_link(*cause.link);
      return cause.is_unseen ? "messages that were not recorded" : "messages between ranks";
    case CauseKind::kLaunch: return fmt::format("rank {}", cause.rank);
    case CauseKind::kPause: return cause.within_ops ? "within ops" : "between ops";
    case CauseKind::kDrift:
      return (cause.changed.empty() ? "" : changed_ops(cause) + " ") +
             fmt::format("after {}", counted(cause.steps, "step"));
    case CauseKind::kSlowSteps:
      return fmt::format("in {} of {}",
                         !cause.are_first   ? std::to_string(cause.steps)
                         : cause.steps == 1 ? "the first"
                                            : fmt::format("the first {}", cause.steps),
                         counted(cause.all_steps, "step"));
    case CauseKind::kVariation: return "ops of one kind and stage";
    case CauseKind::kLateReplica:
      return fmt::format("replica{} {}", cause.changed.size() > 1 ? "s" : "", list_replicas(cause));
  }
  return "";
}

std::string cause_name(const Cause& cause) {
  const std::string where = cause_place(cause);
  switch (cause.kind) {
    case CauseKind::kWorker: return fmt::format("slow {} ({})", name_slow_kind(cause), where);
    case CauseKind::kStage: return "unequal stages (" + name_stages(cause) + ")";
    case CauseKind::kSequenceLengths: return "unequal micro-batches";
    case CauseKind::kCommunication: return where;
    case CauseKind::kLaunch: return "late launches";
    case CauseKind::kPause: return "pauses " + where;
    case CauseKind::kDrift: return "drift";
    case CauseKind::kSlowSteps: return "slow steps";
    case CauseKind::kVariation: return "uneven ops";
    case CauseKind::kLateReplica: return "late start of " + where;
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
    json.line(3).begin_object().member("cause", cause_code(cause.kind));
    json.member("where", cause_place(cause)).member("saves_ns", cause.saves);
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
                       [&](const Cause& cause) { return cause.kind == kind; });
  };
  std::set<CauseKind> presumed;
  for (const Cause& cause : shown) presumed.insert(cause.presumed.begin(), cause.presumed.end());
  for (const Cause& cause : report.causes)
    if (presumed.contains(cause.kind) && !is_shown(cause.kind)) shown.push_back(cause);
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
    const double share = share_of(cause, step);
    words.causes.push_back(
        {describe_cause(cause),
         fmt::format("{} would be {} shorter ({}) {}", name_step(cause, report),
                     format_time(cause.saves), format_percent(share), remedy(cause)),
         cause.kind == CauseKind::kStage && cause.factor > 1 && !has_replicas
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
      "only "
      "a part of what they cost",
      format_percent(report.many_long_ops->fraction), report.many_long_ops->factor);
}

}  // namespace bubblescope::traces
