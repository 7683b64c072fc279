// Checks posted lists: every message needs both ends, at positions where they can run.
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/posted_kinds.h"
#include "sim/ir/swapped_messages.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

/// The posted ends of a message, by position.
struct PostedEnds {
  std::optional<std::int32_t> send;
  std::optional<std::int32_t> recv;
  std::optional<std::int32_t> content;  ///< position of the op that produces the content
};

class MessageChecks {
 public:
  explicit MessageChecks(const Schedule& schedule)
      : schedule_(schedule), index_(schedule), ends_(index_.size()) {}

  Problems run() && {
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank) record_rank(rank);
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank)
      for (const Op& op : schedule_.order[rank]) check_consumer(rank, op);
    return std::move(problems_);
  }

 private:
  void report(std::int32_t rank, std::optional<std::int32_t> position, std::string what,
              std::string remedy = {}) {
    problems_.push_back({rank, position, std::move(what), std::move(remedy)});
  }

  void record_rank(std::int32_t rank) {
    const RankOrder& cells = schedule_.posted[rank];
    for (std::int32_t at = 0; at < static_cast<std::int32_t>(cells.size()); ++at) {
      const Op& op = cells[at];
      if (is_compute(op.kind))
        ends_[index_(op)].content = at;
      else if (is_message(op.kind))
        record_message(rank, at);
    }
  }

  void record_message(std::int32_t rank, std::int32_t at) {
    const Op& op = schedule_.posted[rank][at];
    const std::optional<Value> content = find_carried_value(schedule_, op);
    if (!content)
      return report(rank, at, to_string(op) + " has no adjacent stage or no such micro-batch");
    const std::int32_t from = schedule_.rank_of(content->stage, content->microbatch);
    const std::int32_t to =
        schedule_.rank_of(*receiving_stage(schedule_, *content), content->microbatch);
    const std::int32_t expected_rank = is_send(op.kind) ? from : to;
    if (from == to)
      return report(rank, at, to_string(op) + " would not leave rank " + std::to_string(from),
                    "remove it");
    if (expected_rank != rank)
      return report(rank, at, to_string(op) + " belongs to rank " + std::to_string(expected_rank),
                    "move it there");
    PostedEnds& ends = ends_[index_(*content)];
    std::optional<std::int32_t>& end = is_send(op.kind) ? ends.send : ends.recv;
    if (end) return report(rank, at, to_string(op) + " is posted twice", "remove one");
    end = at;
    if (is_send(op.kind) && !ends.content)
      report(rank, at, to_string(op) + " is posted before its data is produced", "move it after");
  }

  void check_consumer(std::int32_t rank, const Op& op) {
    for (const Value& content : collect_needs(schedule_, op)) {
      const std::int32_t from = schedule_.rank_of(content.stage, content.microbatch);
      if (from == rank) continue;
      const PostedEnds& ends = ends_[index_(content)];
      const std::optional<std::int32_t> user = ends_[index_(op)].content;
      const Op send = make_send(content);
      const Op recv = make_receive(schedule_, content, op.stage);
      if (!ends.send)
        report(from, {}, to_string(send) + " is missing",
               to_string(op) + " of rank " + std::to_string(rank) + " waits for it");
      if (!ends.recv)
        report(rank, {}, to_string(recv) + " is missing", "add it before " + to_string(op));
      if (ends.recv && user && *user < *ends.recv)
        report(rank, ends.recv,
               to_string(recv) + " is posted after " + to_string(op) + ", which needs it",
               "move it before");
    }
  }

  const Schedule& schedule_;
  ValueIndex index_;
  std::vector<PostedEnds> ends_;
  Problems problems_;
};

}  // namespace

Problems validate_messages(const Schedule& schedule) {
  if (!posts_messages(schedule)) return {};
  return MessageChecks(schedule).run();
}

Problems validate_message_order(const Schedule& schedule) {
  // PyTorch's own deferral swaps messages, so lists with waits may contain swaps; `check` warns of
  // them.
  if (!posts_messages(schedule) || posts_waits(schedule)) return {};
  return find_swapped_messages(schedule, schedule.posted);
}

}  // namespace bubblescope::inline sim
