// Moves all late sends, then takes back what was not needed.
#include "sim/analysis/suggest_sends.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMaxTakenBack = 32;  ///< more late sends are all reported

/// A late send, by its place in the lists.
struct LateSend {
  std::size_t rank = 0;
  std::size_t producer = 0;  ///< the position after which it may be posted
  std::size_t at = 0;
  std::size_t before = 0;  ///< the position of the op or receive that it was posted after
};

bool produces(const Op& op, const Op& send) {
  const bool is_kind =
      send.kind == OpKind::kSendForward ? op.kind == OpKind::kForward : gives_input_grad(op.kind);
  return is_kind && op.stage == send.stage && op.microbatch == send.microbatch &&
         op.slice == send.slice;
}

/// The late sends of a list. Halves of a pair stay together, and sends keep their order.
void find_late_sends(const RankOrder& list, std::size_t rank, std::vector<LateSend>& late) {
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (!is_send(list[at].kind)) continue;
    std::size_t producer = at;
    while (producer > 0 && !produces(list[producer], list[at])) --producer;
    if (!produces(list[producer], list[at])) continue;
    if (list[producer].pairing == Pairing::kFirst) ++producer;
    std::size_t before = at;
    while (before > producer + 1 && !is_compute(list[before].kind) && !is_recv(list[before].kind))
      --before;
    if (is_compute(list[before].kind) || is_recv(list[before].kind))
      late.push_back({rank, producer, at, before});
  }
}

std::vector<RankOrder> move(const std::vector<RankOrder>& lists,
                            const std::vector<LateSend>& sends) {
  std::vector<RankOrder> moved(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (std::size_t at = 0; at < lists[rank].size(); ++at) {
      const auto is_here = [&](const LateSend& send) { return send.rank == rank && send.at == at; };
      if (std::any_of(sends.begin(), sends.end(), is_here)) continue;
      moved[rank].push_back(lists[rank][at]);
      for (const LateSend& send : sends)
        if (send.rank == rank && send.producer == at) moved[rank].push_back(lists[rank][send.at]);
    }
  return moved;
}

class SendSuggester {
 public:
  SendSuggester(const ValidSchedule& schedule, const LowerOptions& options, const CostModel& costs)
      : schedule_(schedule), options_(options), costs_(costs) {}

  std::optional<SendSuggestion> run() const {
    if (!posts_messages(schedule_) || runs(schedule_)) return std::nullopt;
    std::vector<LateSend> sends;
    for (std::size_t rank = 0; rank < schedule_->posted.size(); ++rank)
      find_late_sends(schedule_->posted[rank], rank, sends);
    if (sends.empty() || !attempt(sends)) return std::nullopt;
    if (sends.size() <= kMaxTakenBack)
      for (std::size_t at = sends.size(); at-- > 0;) {
        std::vector<LateSend> fewer = sends;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
        if (attempt(fewer)) sends = std::move(fewer);
      }
    std::optional<SendSuggestion> suggestion = attempt(sends);
    for (const LateSend& send : sends) {
      const RankOrder& list = schedule_->posted[send.rank];
      suggestion->moves.push_back({static_cast<std::int32_t>(send.rank), list[send.at],
                                   list[send.producer], list[send.before]});
    }
    return suggestion;
  }

 private:
  bool runs(const ValidSchedule& schedule) const {
    return std::holds_alternative<Program>(lower(schedule, options_));
  }

  /// Returns nullopt if the lists with these sends moved deadlock, no matter which receives are
  /// moved too.
  std::optional<SendSuggestion> attempt(const std::vector<LateSend>& sends) const {
    Schedule changed = schedule_;
    changed.posted = move(schedule_->posted, sends);
    std::variant<ValidSchedule, InvalidSchedule> validated = validate_schedule(std::move(changed));
    const auto* const valid = std::get_if<ValidSchedule>(&validated);
    if (valid == nullptr) return std::nullopt;
    if (runs(*valid)) return SendSuggestion{};
    std::optional<ReceiveSuggestion> receives = suggest_receives(*valid, options_, costs_);
    if (!receives) return std::nullopt;
    return SendSuggestion{{}, std::move(receives)};
  }

  const ValidSchedule& schedule_;
  const LowerOptions& options_;
  const CostModel& costs_;
};

}  // namespace

std::optional<SendSuggestion> suggest_sends(const ValidSchedule& schedule,
                                            const LowerOptions& options, const CostModel& costs) {
  return SendSuggester(schedule, options, costs).run();
}

std::string to_string(const SendSuggestion& suggestion) {
  std::string text;
  for (const MovedSend& move : suggestion.moves)
    text += "rank " + std::to_string(move.rank) + ": post " + to_string(move.send) +
            " directly after " + to_string(move.producer) + ", not after " +
            to_string(move.before) + "\n";
  return text + (suggestion.receives ? to_string(*suggestion.receives) : "removes the deadlock\n");
}

}  // namespace bubblescope::inline sim
