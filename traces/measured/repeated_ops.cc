// Compares an op that is repeated with the ops around it.
#include "traces/measured/repeated_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "sim/ir/error.h"
#include "traces/measured/align_clocks.h"

namespace bubblescope::traces {

namespace {

using RankOps = std::vector<ObservedOp>;

bool holds(const ObservedOp& outer, const ObservedOp& inner) {
  return outer.start <= inner.start && inner.end <= outer.end;
}

/// Whether the second op computes the gradient for what the first one, a forward, has computed.
bool is_backward_of(const ObservedOp& forward, const ObservedOp& other) {
  return forward.op.kind == OpKind::kForward && gives_input_grad(other.op.kind) &&
         forward.op.stage == other.op.stage && forward.op.microbatch == other.op.microbatch &&
         forward.op.slice == other.op.slice;
}

/// Whether the op is a forward that its own backward contains.
bool is_within_backward(const RankOps& lane, std::size_t at) {
  return std::any_of(lane.begin(), lane.end(), [&](const ObservedOp& other) {
    return is_backward_of(lane[at], other) && holds(other, lane[at]);
  });
}

/// Whether a forward has as many backwards as it runs.
bool has_all_backwards(const RankOps& lane, const ObservedOp& forward) {
  const auto is_same = [&](const ObservedOp& op) {
    return to_string(op.op) == to_string(forward.op);
  };
  const auto is_own = [&](const ObservedOp& op) { return is_backward_of(forward, op); };
  return std::count_if(lane.begin(), lane.end(), is_same) ==
         std::count_if(lane.begin(), lane.end(), is_own);
}

/// Whether the second of two equal forwards is nearer to its backward, which follows, than to the
/// first: slices of single layers follow each other.
bool is_before_backward(const RankOps& lane, std::size_t first, std::size_t second) {
  if (second + 1 >= lane.size() || !is_backward_of(lane[second], lane[second + 1]) ||
      has_all_backwards(lane, lane[second]))
    return false;
  return lane[second + 1].start - lane[second].end < lane[second].start - lane[first].end;
}

/// Whether ops overlap by more than half of the shorter one, other than as parts of one.
bool overlap(const RankOps& lane) {
  for (std::size_t at = 0; at + 1 < lane.size(); ++at) {
    const ObservedOp& one = lane[at];
    const ObservedOp& next = lane[at + 1];
    const Nanos shared = std::min(one.end, next.end) - next.start;
    const Nanos shorter = std::min(one.end - one.start, next.end - next.start);
    if (shared > kClockTolerance && 2 * shared > shorter && !is_backward_of(next, one) &&
        to_string(one.op) != to_string(next.op))
      return true;
  }
  return false;
}

/// Whether a forward without a chunk runs again before the first backward, and has as many
/// backwards: those of an evaluation have none.
bool seem_to_be_chunks(const RankOps& lane, std::size_t first, std::size_t second) {
  const ObservedOp& repeated = lane[second];
  if (repeated.op.kind != OpKind::kForward || !repeated.chunk_is_assumed) return false;
  const auto begin = lane.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = lane.begin() + static_cast<std::ptrdiff_t>(second);
  return has_all_backwards(lane, repeated) && std::none_of(begin, end, [](const ObservedOp& op) {
           return gives_input_grad(op.op.kind);
         });
}

/// Why a lane holds an op twice, at these places of it, and what to do.
const char* explain_repetition(const RankOps& lane, std::size_t first, std::size_t second) {
  if (holds(lane[first], lane[second]) || holds(lane[second], lane[first]))
    return "one slice of it lies within the other, so that slices of one op are nested; give only "
           "the outer one the name or the arguments of an op";
  if (is_within_backward(lane, second) || is_within_backward(lane, first))
    return "its backward contains it once more, as with recomputation, and is the whole op; give "
           "the slice within the backward a name that is not an op's";
  if (is_before_backward(lane, first, second))
    return "it runs again directly before its backward, as recomputation does; name the second "
           "one as such ('recompute', or kind R in `rules`)";
  if (overlap(lane))
    return "ops of this rank overlap, as those of several ranks do that share a thread or a "
           "process; state args.pp_rank of every op";
  if (second == first + 1)
    return "several slices of it follow each other with no other op between them, as slices of "
           "single layers do; give the whole op one slice";
  if (seem_to_be_chunks(lane, first, second))
    return "it runs again before its backward, as on a rank that runs several stages, and nothing "
           "states which of them an op is of; state the chunk of every op (args.model_chunk), or "
           "its stage (args.stage), as tools/hooks/bubblescope_hooks.py does for PyTorch";
  return "the step has several runs of the pipeline, as accumulated gradients or an evaluation "
         "have, and its report would be of neither; mark each as a step of its own "
         "(profiler.step() after each)";
}

}  // namespace

void expect_one_pipeline(const std::vector<std::vector<ObservedOp>>& lanes,
                         const std::string& where) {
  for (const RankOps& lane : lanes) {
    std::map<std::string, std::size_t> seen;
    for (std::size_t at = 0; at < lane.size(); ++at) {
      const auto [first, is_new] = seen.emplace(to_string(lane[at].op), at);
      if (!is_new)
        throw Error(fmt::format("{}: {} runs more than once in a step: {}", where, first->first,
                                explain_repetition(lane, first->second, at)));
    }
  }
}

}  // namespace bubblescope::traces
