// Parses the notation of the phases.
#include "schedules/two_streams.h"

#include <algorithm>
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
  for (auto& next_of_stream : next_)
    for (std::size_t stream = 0; stream < streams.size(); ++stream)
      next_of_stream[stream] = streams[stream].first_microbatch;
  ops_.reserve(static_cast<std::size_t>(expected_ops));
}

void TwoStreamOrder::repeat(std::int32_t times, std::string_view phase) {
  struct Source {
    Op op;
    std::int32_t* next_microbatch = nullptr;  ///< null: the oldest pending weight gradient
  };
  const std::vector<Turn> turns = parse_phase(phase);
  std::vector<Source> sources;
  sources.reserve(turns.size());
  for (const Turn& turn : turns) {
    Source& source = sources.emplace_back();
    source.op = {streams_[turn.stream].stage, 0, 0, turn.kind, turn.pairing};
    const auto value_kind = static_cast<std::size_t>(value_kind_of(turn.kind));
    if (!turn.oldest) source.next_microbatch = &next_[value_kind][turn.stream];
  }
  const std::size_t count = static_cast<std::size_t>(std::max(times, 0)) * sources.size();
  ops_.resize(ops_.size() + count);
  Op* next = ops_.data() + ops_.size() - count;
  Op* const end = ops_.data() + ops_.size();
  while (next != end)
    for (const Source& source : sources) {
      *next = source.op;
      if (source.next_microbatch != nullptr)
        next->microbatch = (*source.next_microbatch)++;
      else
        take_oldest(*next);
      ++next;
    }
}

void TwoStreamOrder::take_oldest(Op& weight_grad) {
  while (ops_[oldest_].kind != OpKind::kInputGrad) ++oldest_;
  weight_grad.stage = ops_[oldest_].stage;
  weight_grad.microbatch = ops_[oldest_++].microbatch;
}

RankOrder TwoStreamOrder::take() && { return std::move(ops_); }

}  // namespace bubblescope::schedules
