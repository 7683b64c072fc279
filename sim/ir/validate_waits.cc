// Checks posted waits, one rank after the other.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "sim/ir/depend.h"
#include "sim/ir/posted_kinds.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

class WaitChecks {
 public:
  WaitChecks(const RankOrder& cells, std::int32_t rank) : cells_(cells), rank_(rank) {}

  Problems run() && {
    for (std::size_t at = 0; at < cells_.size(); ++at) check(cells_[at], static_cast<int>(at));
    for (const auto& [send, at] : pending_sends_)
      report(at, to_string(cells_[static_cast<std::size_t>(at)]) + " has no wait",
             "add its WAIT_" + std::string(code(cells_[static_cast<std::size_t>(at)].kind)) +
                 " after it, as PyTorch 2.15 requires");
    if (open_reduction_) report_reduction();
    return std::move(problems_);
  }

 private:
  /// Identifies a message of the rank: a SEND and its WAIT_SEND have the same.
  using MessageKey = std::tuple<bool, std::int32_t, std::int32_t, std::int16_t>;

  static MessageKey message_key(const Op& op) {
    return {carries_activation(op.kind), op.stage, op.microbatch, op.slice};
  }

  void check(const Op& op, std::int32_t at) {
    if (is_send(op.kind)) pending_sends_.emplace(message_key(op), at);
    if (is_send_wait(op.kind) && pending_sends_.erase(message_key(op)) == 0)
      report(at, to_string(op) + " waits for no SEND of this rank that is still in transit",
             "put one wait after each SEND");
    if (op.kind == OpKind::kReduceGrad) begin_reduction(at);
    if (op.kind == OpKind::kWaitReduceGrad) end_reduction(op, at);
  }

  void begin_reduction(std::int32_t at) {
    if (open_reduction_) report_reduction();
    open_reduction_ = at;
  }

  void end_reduction(const Op& op, std::int32_t at) {
    if (!open_reduction_ || cells_[static_cast<std::size_t>(*open_reduction_)].stage != op.stage)
      return report(at, to_string(op) + " waits for no REDUCE_GRAD that is in progress",
                    "put it after that of its stage");
    open_reduction_.reset();
  }

  void report_reduction() {
    const Op& op = cells_[static_cast<std::size_t>(*open_reduction_)];
    report(*open_reduction_, to_string(op) + " has no wait before the rank's next reduction",
           "add " + std::to_string(op.stage) + "WAIT_REDUCE_GRAD after it");
  }

  void report(std::int32_t at, std::string what, std::string remedy) {
    problems_.push_back({rank_, at, std::move(what), std::move(remedy)});
  }

  const RankOrder& cells_;
  std::int32_t rank_;
  std::map<MessageKey, std::int32_t> pending_sends_;  ///< to their position
  std::optional<std::int32_t> open_reduction_;        ///< position of the reduction in progress
  Problems problems_;
};

Problems check_waits(const Schedule& schedule) {
  Problems problems;
  for (std::size_t rank = 0; rank < schedule.posted.size(); ++rank)
    for (Problem& problem :
         WaitChecks(schedule.posted[rank], static_cast<std::int32_t>(rank)).run())
      problems.push_back(std::move(problem));
  return problems;
}

Problems refuse_waits(const Schedule& schedule) {
  Problems problems;
  for (std::size_t rank = 0; rank < schedule.posted.size(); ++rank) {
    const RankOrder& cells = schedule.posted[rank];
    for (std::size_t at = 0; at < cells.size(); ++at)
      if (is_wait(cells[at].kind))
        problems.push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(at),
                            to_string(cells[at]) + " is not known to PyTorch before 2.15",
                            "remove all waits"});
  }
  return problems;
}

}  // namespace

Problems validate_waits(const Schedule& schedule) {
  return posts_waits(schedule) ? check_waits(schedule) : Problems{};
}

Problems validate_release(const Schedule& schedule, PytorchRelease release) {
  return release == PytorchRelease::kFrom215 ? check_waits(schedule) : refuse_waits(schedule);
}

}  // namespace bubblescope::inline sim
