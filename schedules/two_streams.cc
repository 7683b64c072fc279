// Reading the notation of the phases.
#include "schedules/two_streams.h"

#include <utility>

namespace bubblescope {
namespace {

/// One op of a phase.
struct Turn {
  OpKind kind = OpKind::kForward;
  std::size_t stream = 0;
  bool oldest = false;  ///< of either stream
  Pairing pairing = Pairing::kAlone;
};

OpKind kind_of(char letter) {
  if (letter == 'F') return OpKind::kForward;
  if (letter == 'B') return OpKind::kBackward;
  return letter == 'I' ? OpKind::kInputGrad : OpKind::kWeightGrad;
}

std::vector<Turn> parse_phase(std::string_view phase) {
  std::vector<Turn> turns;
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
  ops_.reserve(expected_ops);
}

void TwoStreamOrder::repeat(std::int32_t times, std::string_view phase) {
  const std::vector<Turn> turns = parse_phase(phase);
  for (std::int32_t time = 0; time < times; ++time)
    for (const Turn& turn : turns) {
      ops_.push_back(turn.oldest ? weight_grads_[weight_grads_taken_++]
                                 : next(turn.kind, turn.stream));
      ops_.back().pairing = turn.pairing;
    }
}

RankOrder TwoStreamOrder::take() && { return std::move(ops_); }

Op TwoStreamOrder::next(OpKind kind, std::size_t stream) {
  const std::int32_t stage = streams_[stream].stage;
  const std::int32_t microbatch = streams_[stream].first_microbatch +
                                  taken_[static_cast<std::size_t>(product_of(kind))][stream]++;
  if (kind == OpKind::kInputGrad) weight_grads_.push_back(weight_grad(stage, microbatch));
  return {stage, microbatch, 0, kind};
}

}  // namespace bubblescope
