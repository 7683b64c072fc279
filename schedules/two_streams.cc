// Parses the notation of the phases.
#include "schedules/two_streams.h"

#include <utility>

namespace bubblescope::schedules {
namespace {

/// One op of a phase.
struct Turn {
  OpKind kind = OpKind::kForward;
  std::size_t stream = 0;
  bool oldest = false;  ///< takes the oldest one of either stream
  Pairing pairing = Pairing::kAlone;
};

OpKind kind_of(char letter) {
  if (letter == 'F') return OpKind::kForward;
  if (letter == 'B') return OpKind::kBackward;
  return letter == 'I' ? OpKind::kInputGrad : OpKind::kWeightGrad;
}

std::vector<Turn> parse_phase(std::string_view phase) {
  std::vector<Turn> turns;
  turns.reserve(phase.size());
  for (const char letter : phase) {
    if (letter == '0' || letter == '1') {
      turns.back().stream = static_cast<std::size_t>(letter - '0');
      turns.back().oldest = false;
    } else if (letter == '&') {
      turns.back().pairing = Pairing::kFirst;
    } else if (letter != ' ') {
      const bool second = !turns.empty() && turns.back().pairing == Pairing::kFirst;
      turns.push_back({kind_of(letter), 0, true, second ? Pairing::kSecond : Pairing::kAlone});
    }
  }
  return turns;
}

}  // namespace

TwoStreamOrder::TwoStreamOrder(std::array<Stream, 2> streams, std::int64_t expected_ops)
    : streams_(streams) {
  ops_.reserve(static_cast<std::size_t>(expected_ops));
  weight_grads_.reserve(static_cast<std::size_t>(expected_ops / 3));
}

void TwoStreamOrder::repeat(std::int32_t times, std::string_view phase) {
  const std::vector<Turn> turns = parse_phase(phase);
  if (times <= 0) return;
  const std::size_t first = ops_.size();
  ops_.resize(first + static_cast<std::size_t>(times) * turns.size());
  Op* next = ops_.data() + first;
  for (std::int32_t time = 0; time < times; ++time)
    for (const Turn& turn : turns) {
      Op& op = *next++;
      op.kind = turn.kind;
      op.pairing = turn.pairing;
      if (turn.oldest) {
        op.stage = weight_grads_[weight_grads_taken_].stage;
        op.microbatch = weight_grads_[weight_grads_taken_++].microbatch;
        continue;
      }
      const auto value_kind = static_cast<std::size_t>(value_kind_of(turn.kind));
      op.stage = streams_[turn.stream].stage;
      op.microbatch = streams_[turn.stream].first_microbatch + taken_[value_kind][turn.stream]++;
      if (turn.kind == OpKind::kInputGrad) weight_grads_.push_back({op.stage, op.microbatch});
    }
}

RankOrder TwoStreamOrder::take() && { return std::move(ops_); }

}  // namespace bubblescope::schedules
