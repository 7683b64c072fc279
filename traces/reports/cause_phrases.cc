// Writes the phrases, in one function for each sort of cause.
#include "traces/reports/cause_phrases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kNamedWorkers = 3;

/// Names the first of some workers, at most `shown`: "rank 1, rank 2 and 3 other ranks".
std::string name_workers(const std::vector<Worker>& workers, bool has_replicas, std::size_t shown) {
  std::string names;
  const std::size_t named = std::min(shown, workers.size());
  for (std::size_t at = 0; at < named; ++at)
    names += (at == 0 ? "" : ", ") + name_worker(workers[at], has_replicas);
  const std::size_t others = workers.size() - named;
  if (others == 0) return names;
  return names + " and " + counted(static_cast<std::int64_t>(others), "other rank");
}

/// Returns a text such as "replica 1" or "replicas 1 and 3".
std::string name_replicas(const std::set<std::int32_t>& replicas) {
  std::vector<std::string> numbers;
  for (const std::int32_t replica : replicas) numbers.push_back(std::to_string(replica));
  return fmt::format("replica{} {}", replicas.size() > 1 ? "s" : "", list_words(numbers));
}

/// Returns a text such as "in 3 of 8 steps".
std::string among_steps(std::int64_t steps, const Cause& cause) {
  return fmt::format("in {} of {}", steps, counted(cause.all_steps, "step"));
}

CausePhrases phrase(const SlowWorkers& slow, const Cause& cause) {
  const std::string steps = among_steps(slow.steps, cause);
  if (slow.workers.size() == 1) {
    const std::string place = name_worker(slow.workers.front(), cause.has_replicas);
    return {place, fmt::format("slow worker ({})", place),
            fmt::format("slow worker: {} takes {:.2f} x what its stage takes in other replicas, {}",
                        place, slow.factor, steps),
            "if it were as fast as there"};
  }
  std::set<std::int32_t> replicas;
  for (const Worker& worker : slow.workers) replicas.insert(worker.replica);
  const std::string place = slow.whole_replicas ? name_replicas(replicas)
                                                : name_workers(slow.workers, true, kNamedWorkers);
  const std::string_view kind = !slow.whole_replicas  ? "workers"
                                : replicas.size() > 1 ? "replicas"
                                                      : "replica";
  return {place, fmt::format("slow {} ({})", kind, place),
          fmt::format("slow {}: {}{} take {:.2f} x what their stages take in other replicas, {}",
                      kind, slow.whole_replicas ? "all ranks of " : "", place, slow.factor, steps),
          "if they were as fast as there"};
}

CausePhrases phrase(const WorkerSlowAtTimes& slow, const Cause& cause) {
  const std::string place = name_worker(slow.worker, cause.has_replicas);
  const std::string name = fmt::format("slow worker ({})", place);
  if (slow.grows)
    return {place, name,
            fmt::format("slow worker: {} becomes slower from step to step, to {:.2f} x its first",
                        place, slow.factor),
            "if it had stayed as fast as at first"};
  return {place, name,
          fmt::format("slow worker {}: {} takes {:.2f} x what it takes in the others",
                      among_steps(slow.steps, cause), place, slow.factor),
          "if it were as fast as in those"};
}

CausePhrases phrase(const UnequalStage& one, const Cause&) {
  const bool are_several = one.stages.size() > 1;
  const std::string stages = are_several ? fmt::format("stages {}", fmt::join(one.stages, " and "))
                                         : fmt::format("stage {}", one.stage);
  const std::string place = fmt::format("{} (rank {})", stages, one.rank);
  return {place, "unequal stages (" + stages + ")",
          fmt::format("unequal stages: {} {} {:.2f} x the mean stage's work", place,
                      are_several ? "each have up to" : "has", one.factor),
          "with the same work in equal stages"};
}

CausePhrases phrase(const UnequalMicrobatches& unequal, const Cause&) {
  return {"micro-batches", "unequal micro-batches",
          fmt::format(
              "unequal micro-batches: forwards and backwards grow together (correlation {:.2f})",
              unequal.correlation),
          "with the same work in equal micro-batches"};
}

/// Returns a text such as "messages from rank 1 to rank 2 of replica 0".
std::string name_link(const SlowLink& link) {
  const std::string ranks =
      link.both_ways ? fmt::format("between ranks {} and {}", std::min(link.from, link.to),
                                   std::max(link.from, link.to))
                     : fmt::format("from rank {} to rank {}", link.from, link.to);
  return "messages " + ranks + (link.replica ? fmt::format(" of replica {}", *link.replica) : "");
}

CausePhrases phrase(const ExposedMessages& messages, const Cause&) {
  const std::string place =
      messages.link ? name_link(*messages.link) : std::string("messages between ranks");
  const std::string description = "exposed communication: " + place;
  if (!messages.link) return {place, place, description, "if messages took no time"};
  return {place, place,
          description + fmt::format(", {} each (usual: {})", format_time(messages.link->time),
                                    format_time(messages.link->usual)),
          "if they took the usual time"};
}

CausePhrases phrase(const UnseenMessages&, const Cause&) {
  const std::string place = "messages that were not recorded";
  return {
      place, place,
      "exposed communication: " + place + " (or ops start late: nothing shows when these arrive)",
      "if messages took no time"};
}

CausePhrases phrase(const ExposedCollective& collective, const Cause&) {
  return {collective.name, collective.name, "exposed communication: " + collective.name,
          "if ops hid it"};
}

CausePhrases phrase(const LateLaunches& late, const Cause&) {
  return {fmt::format("rank {}", late.rank), "late launches",
          fmt::format("late launches: ops start after they could, most on rank {} ({} of its time)",
                      late.rank, format_percent(late.share)),
          "if they were launched in time"};
}

CausePhrases phrase(const LongGaps& gaps, const Cause&) {
  return {"between ops", "pauses between ops",
          fmt::format("pauses: {} between ops, long and rare, {}on rank {}, in {}",
                      counted(gaps.count, "gap"), gaps.count > 1 ? "longest in total " : "",
                      gaps.rank, counted(gaps.steps, "step")),
          "without them"};
}

CausePhrases phrase(const InterruptedOps& ops, const Cause& cause) {
  std::string description = fmt::format("pauses: {} took {:.2g} x as long as usual",
                                        counted(ops.count, "op"), ops.factor);
  if (ops.worker)
    description +=
        fmt::format(", nearly all on {}, in {}", name_worker(*ops.worker, cause.has_replicas),
                    counted(ops.steps, "step"));
  return {"within ops", "pauses within ops", description, "without them"};
}

CausePhrases phrase(const SlowerOps& ops, const Cause& cause) {
  const std::string steps = counted(ops.steps, "step");
  const std::string of_workers =
      ops.workers.empty() ? "" : "the ops of " + name_workers(ops.workers, cause.has_replicas, 1);
  return {(ops.workers.empty() ? "" : of_workers + " ") + fmt::format("after {}", steps), "drift",
          fmt::format("drift: after the first {} {} take {:.3g} x as long", steps,
                      ops.workers.empty() ? "all ops" : of_workers, ops.factor),
          "if they had stayed as fast as before"};
}

CausePhrases phrase(const SlowOnMostRanks& slow, const Cause& cause) {
  const std::string which = !slow.are_first   ? std::to_string(slow.steps)
                            : slow.steps == 1 ? "the first"
                                              : fmt::format("the first {}", slow.steps);
  const std::string place = fmt::format("in {} of {}", which, counted(cause.all_steps, "step"));
  return {place, "slow steps",
          fmt::format(
              "slow steps: {}, the ops of most ranks take {:.2f} x what they take in the others",
              place, slow.factor),
          "if they were as fast as in those"};
}

CausePhrases phrase(const ReplicasThatBeginLate& late, const Cause& cause) {
  const bool are_several = late.replicas.size() > 1;
  const std::string place = name_replicas({late.replicas.begin(), late.replicas.end()});
  return {place, "late start of " + place,
          fmt::format("late start: {} begin{} {} later in the step than the earliest one does, {}",
                      place, are_several ? "" : "s", are_several ? "their ops" : "its ops",
                      among_steps(late.steps, cause)),
          are_several ? "if they began as soon as that one" : "if it began as soon as that one"};
}

CausePhrases phrase(const UnevenOps&, const Cause&) {
  return {"ops of one kind and stage", "uneven ops",
          "uneven ops: those of one kind and stage do not all take as long, and forwards and "
          "backwards\nof a micro-batch do not grow together",
          "if each took their mean time"};
}

}  // namespace

CausePhrases phrase_cause(const Cause& cause) {
  return std::visit([&](const auto& facts) { return phrase(facts, cause); }, cause.facts);
}

}  // namespace bubblescope::traces
