// Checks weight versions, one rank after the other.
#include <map>
#include <string>
#include <unordered_map>

#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

class WeightChecks {
 public:
  WeightChecks(const Schedule& schedule, std::int32_t rank) : schedule_(schedule), rank_(rank) {}

  Problems run() && {
    const RankOrder& ops = schedule_.order[rank_];
    for (std::size_t at = 0; at < ops.size(); ++at) check(ops[at], static_cast<std::int32_t>(at));
    return std::move(problems_);
  }

 private:
  void check(const Op& op, std::int32_t at) {
    const WeightUse& use = schedule_.weights[rank_][at];
    auto& [newest, forward_read] = stages_[op.stage];
    if (use.read < 0 || use.read > newest)
      report(at, to_string(op) + reads(use.read), "the newest is " + std::to_string(newest));
    if (op.kind == OpKind::kForward)
      forward_read[schedule_.forward_index(op)] = use.read;
    else if (use.read != forward_read[schedule_.forward_index(op)])
      report(at,
             to_string(op) + reads(use.read) + ", its forward read version " +
                 std::to_string(forward_read[schedule_.forward_index(op)]),
             "use that one");
    if (!use.written) return;
    if (*use.written != newest + 1)
      report(at,
             to_string(op) + " writes version " + std::to_string(*use.written) + " of the weights",
             "the next one is " + std::to_string(newest + 1));
    newest = *use.written;
  }

  struct StageWeights {
    std::int32_t newest = 0;
    std::unordered_map<std::int64_t, std::int32_t> forward_read;  ///< per micro-batch and slice
  };

  static std::string reads(std::int32_t version) {
    return " reads version " + std::to_string(version) + " of the weights";
  }

  void report(std::int32_t at, std::string what, std::string remedy) {
    problems_.push_back({rank_, at, std::move(what), std::move(remedy)});
  }

  const Schedule& schedule_;
  std::int32_t rank_;
  std::map<std::int32_t, StageWeights> stages_;
  Problems problems_;
};

bool match(const Schedule& schedule) {
  if (schedule.weights.size() != schedule.order.size()) return false;
  for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
    if (schedule.weights[rank].size() != schedule.order[rank].size()) return false;
  return true;
}

}  // namespace

Problems validate_weights(const Schedule& schedule) {
  if (schedule.weights.empty()) return {};
  if (!match(schedule)) return {{{}, {}, "the weights must name a version for each op"}};
  Problems problems;
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
    for (Problem& problem : WeightChecks(schedule, rank).run())
      problems.push_back(std::move(problem));
  return problems;
}

}  // namespace bubblescope::inline sim
