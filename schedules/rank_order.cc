// Merges a rank's forwards and backwards into one order.
#include "schedules/rank_order.h"

#include <algorithm>

namespace bubblescope::schedules {
namespace {

Op make_op(const Visit& visit, OpKind kind) {
  return {visit.stage, visit.microbatch, visit.slice, kind};
}

}  // namespace

Visits visits_of_stage(std::int32_t stage, std::int32_t microbatches) {
  Visits visits;
  visits.forward.assign(microbatches, {stage});
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch)
    visits.forward[microbatch].microbatch = microbatch;
  visits.backward = visits.forward;
  return visits;
}

RankOrder alternate(const Visits& visits, std::int64_t warmup) {
  const std::int64_t count = std::ssize(visits.forward);
  warmup = std::min(warmup, count);
  RankOrder ops(2 * count);
  Op* next = ops.data();
  for (std::int64_t at = 0; at < warmup; ++at)
    *next++ = make_op(visits.forward[at], OpKind::kForward);
  for (std::int64_t at = warmup; at < count; ++at) {
    *next++ = make_op(visits.forward[at], OpKind::kForward);
    *next++ = make_op(visits.backward[at - warmup], OpKind::kBackward);
  }
  for (std::int64_t at = count - warmup; at < count; ++at)
    *next++ = make_op(visits.backward[at], OpKind::kBackward);
  return ops;
}

RankOrder alternate_split(const Visits& visits, std::int64_t warmup, std::int64_t lag) {
  const std::int64_t count = std::ssize(visits.forward);
  warmup = std::min(warmup, count);
  lag = std::min(lag, count);
  RankOrder ops(3 * count);
  Op* next = ops.data();
  for (std::int64_t at = 0; at < count + warmup + lag; ++at) {
    const std::int64_t input = at - warmup;
    const std::int64_t weight = input - lag;
    if (at < count) *next++ = make_op(visits.forward[at], OpKind::kForward);
    if (input >= 0 && input < count) *next++ = make_op(visits.backward[input], OpKind::kInputGrad);
    if (weight >= 0) *next++ = make_op(visits.backward[weight], OpKind::kWeightGrad);
  }
  return ops;
}

}  // namespace bubblescope::schedules
