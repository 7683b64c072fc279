// Reading the notation of the phases.
#include "schedules/two_streams.h"

#include <algorithm>
#include <utility>

namespace bubblescope {
namespace {

OpKind kind_of(char letter) {
  if (letter == 'F') return OpKind::kForward;
  if (letter == 'B') return OpKind::kBackward;
  return letter == 'I' ? OpKind::kInputGrad : OpKind::kWeightGrad;
}

}  // namespace

TwoStreamOrder::TwoStreamOrder(std::array<Stream, 2> streams, std::int64_t expected_ops)
    : streams_(streams) {
  ops_.reserve(expected_ops);
}

void TwoStreamOrder::repeat(std::int32_t times, std::string_view ops) {
  for (std::int32_t time = 0; time < times; ++time)
    for (std::size_t begin = 0; begin < ops.size();) {
      const std::size_t end = std::min(ops.find(' ', begin), ops.size());
      add(ops.substr(begin, end - begin));
      begin = end + 1;
    }
}

RankOrder TwoStreamOrder::take() && { return std::move(ops_); }

void TwoStreamOrder::add(std::string_view word) {
  if (word == "W") {
    ops_.push_back(oldest_weight_grad());
    return;
  }
  const Op first = next(word[0], word[1]);
  if (word.size() == 2)
    ops_.push_back(first);
  else
    append_pair(ops_, first, next(word[3], word[4]));  // after the '&'
}

Op TwoStreamOrder::next(char kind_letter, char stream_digit) {
  const int stream = stream_digit - '0';
  const OpKind kind = kind_of(kind_letter);
  const std::int32_t microbatch =
      streams_[stream].first_microbatch + taken_[static_cast<int>(product_of(kind))][stream]++;
  const std::int32_t stage = streams_[stream].stage;
  if (kind == OpKind::kInputGrad) weight_grads_.push_back(weight_grad(stage, microbatch));
  return {stage, microbatch, 0, kind};
}

Op TwoStreamOrder::oldest_weight_grad() { return weight_grads_[weight_grads_taken_++]; }

}  // namespace bubblescope
