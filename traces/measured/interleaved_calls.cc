// Counts the ops of every rank, finds the shape that gives these counts, and numbers them by it.
#include "traces/measured/interleaved_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kHint = "; annotate the ops (tools/hooks/bubblescope_hooks.py)";

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(where + ": several stages per rank: " + what + kHint);
}

/// The calls of one step of one process: [first, last).
struct StepCalls {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The ops that lie before a call.
struct Gap {
  std::size_t call = 0;
  bool forward = false;
  bool backward = false;
};

bool is_lone_receive(const MessageCall& call) { return call.receives_forward && !call.sends(); }

/// A step begins with the only call that receives a forward and sends nothing.
std::vector<StepCalls> split_steps(const std::vector<TimedCall>& calls, const std::string& where) {
  std::vector<StepCalls> steps;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    if (is_lone_receive(calls[at].call)) steps.push_back({at, at});
    if (steps.empty()) refuse(where, "the recording begins within a step; record whole steps");
    steps.back().last = at + 1;
  }
  return steps;
}

bool sends_both(const MessageCall& call) { return call.sends_forward && call.sends_backward; }

/// Returns the ops before each call of a step. The messages after the last forward of the warmup
/// also bring the first backward's input: in one call with the forward's, or in one of their own,
/// before which nothing runs.
std::vector<Gap> find_gaps(const std::vector<TimedCall>& calls, const StepCalls& step,
                           const std::string& where) {
  std::vector<Gap> gaps;
  bool in_steady = false;
  for (std::size_t at = step.first + 1; at < step.last; ++at) {
    const MessageCall& call = calls[at].call;
    if (calls[at].start < calls[at - 1].end) refuse(where, "calls overlap");
    if (sends_both(call)) {
      gaps.push_back({at, true, in_steady});
      in_steady = true;
    } else if (call.sends_forward) {
      gaps.push_back({at, true, false});
    } else if (call.sends_backward) {
      gaps.push_back({at, false, true});
    } else {
      refuse(where,
             "every forward runs before the first backward, as with as many micro-batches "
             "as ranks, and that order is the same for any number of chunks");
    }
  }
  const auto count = [&](bool Gap::*kind) {
    return std::count_if(gaps.begin(), gaps.end(), [&](const Gap& gap) { return gap.*kind; });
  };
  // With overlapped messages, the first backward's input has a call of its own.
  if (!in_steady && count(&Gap::backward) == count(&Gap::forward) + 1)
    gaps.erase(std::find_if(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.backward; }));
  if (gaps.empty() || count(&Gap::backward) != count(&Gap::forward))
    refuse(where, fmt::format("a step has {} forwards and {} backwards: it was cut off, or calls "
                              "are missing",
                              count(&Gap::forward), count(&Gap::backward)));
  return gaps;
}

/// The shape of the pipeline follows from the counts of ops.
struct Interleaving {
  std::int32_t ranks = 0;
  std::int32_t chunks = 0;
  std::int32_t ops = 0;  ///< forwards of a rank and step

  std::int32_t microbatch_of(std::int32_t at) const {
    return at / (ranks * chunks) * ranks + at % ranks;
  }
  std::int32_t chunk_of(std::int32_t at, bool forward) const {
    const std::int32_t chunk = at % (ranks * chunks) / ranks;
    return forward ? chunk : chunks - 1 - chunk;
  }
};

std::int32_t count_forwards(const std::vector<Gap>& gaps) {
  return static_cast<std::int32_t>(
      std::count_if(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.forward; }));
}

/// Counts the forwards of the warmup: one less than those before the first backward.
std::int32_t count_warmup(const std::vector<Gap>& gaps) {
  const auto first =
      std::find_if(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.backward; });
  const auto before =
      std::count_if(gaps.begin(), first, [](const Gap& gap) { return gap.forward; });
  return static_cast<std::int32_t>(before) + (first->forward ? 0 : -1);
}

/// Finds the shape whose warmups are these, from the longest to the shortest.
Interleaving find_interleaving(std::vector<std::int32_t> warmups, std::int32_t ops,
                               const std::string& where) {
  std::sort(warmups.rbegin(), warmups.rend());
  Interleaving found;
  found.ranks = static_cast<std::int32_t>(warmups.size());
  found.ops = ops;
  for (std::size_t rank = 1; rank < warmups.size(); ++rank)
    if (warmups[rank] != warmups[0] - 2 * static_cast<std::int32_t>(rank))
      refuse(where,
             fmt::format("ranks run {} and {} forwards before their first backward, but each "
                         "should run two fewer than the one before it; give all ranks of "
                         "one pipeline in one file",
                         warmups[rank - 1], warmups[rank]));
  const std::int32_t of_chunks = warmups[0] - 2 * (found.ranks - 1);
  found.chunks = of_chunks / found.ranks + 1;
  const bool fits = found.ranks > 1 && of_chunks > 0 && of_chunks % found.ranks == 0 &&
                    ops % (found.chunks * found.ranks) == 0;
  if (!fits)
    refuse(where, fmt::format("{} ranks that run {} forwards per step, {} of them before the first "
                              "backward, follow from no number of chunks in groups of {} "
                              "micro-batches; give all ranks of one pipeline in one file",
                              found.ranks, ops, warmups[0], found.ranks));
  return found;
}

/// The last call before `call` that received such an input; empty if there is none in the step.
std::optional<std::size_t> find_received(const std::vector<TimedCall>& calls, const StepCalls& step,
                                         std::size_t call, bool forward) {
  for (std::size_t at = call; at > step.first; --at) {
    const MessageCall& before = calls[at - 1].call;
    if (forward ? before.receives_forward : before.receives_backward) return at - 1;
  }
  return {};
}

/// Numbers the ops of one step by their order.
std::vector<CalledOps> number_ops(const std::vector<TimedCall>& calls, const StepCalls& step,
                                  const std::vector<Gap>& gaps, const Interleaving& shape,
                                  std::int32_t rank) {
  std::vector<CalledOps> ops;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  const auto make = [&](bool forward) {
    const std::int32_t at = forward ? forwards++ : backwards++;
    Op op;
    op.kind = forward ? OpKind::kForward : OpKind::kBackward;
    op.stage = shape.chunk_of(at, forward) * shape.ranks + rank;
    op.microbatch = shape.microbatch_of(at);
    return op;
  };
  for (const Gap& gap : gaps) {
    CalledOps between;
    between.op = make(gap.forward);
    if (gap.forward && gap.backward) between.backward = make(false);
    between.start = calls[gap.call - 1].end;
    between.end = calls[gap.call].start;
    const bool comes =
        gap.forward ? between.op.stage > 0 : between.op.stage + 1 < shape.ranks * shape.chunks;
    if (comes) between.received = find_received(calls, step, gap.call, gap.forward);
    ops.push_back(between);
  }
  return ops;
}

/// The steps of one process, which are all alike.
struct ProcessSteps {
  std::vector<StepCalls> calls;
  std::vector<std::vector<Gap>> gaps;
  std::int32_t forwards = 0;
  std::int32_t warmup = 0;
};

ProcessSteps find_steps(const std::vector<TimedCall>& calls, const std::string& where) {
  ProcessSteps steps;
  steps.calls = split_steps(calls, where);
  for (const StepCalls& step : steps.calls) steps.gaps.push_back(find_gaps(calls, step, where));
  steps.forwards = count_forwards(steps.gaps.front());
  steps.warmup = count_warmup(steps.gaps.front());
  for (const std::vector<Gap>& gaps : steps.gaps)
    if (count_forwards(gaps) != steps.forwards || count_warmup(gaps) != steps.warmup)
      refuse(where, "steps have different numbers of ops; record whole, equal steps");
  return steps;
}

}  // namespace

bool are_interleaved(const std::vector<TimedCall>& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const TimedCall& timed) {
    return timed.call.receives_forward && timed.call.sends_forward;
  });
}

std::map<std::int64_t, std::vector<CalledOps>> find_interleaved_ops(
    const std::map<std::int64_t, std::vector<TimedCall>>& processes, const std::string& where) {
  std::map<std::int64_t, ProcessSteps> found;
  std::vector<std::int32_t> warmups;
  for (const auto& [process, calls] : processes)
    warmups.push_back(found.emplace(process, find_steps(calls, where)).first->second.warmup);
  const std::int32_t longest = *std::max_element(warmups.begin(), warmups.end());
  const std::int32_t forwards = found.begin()->second.forwards;
  const Interleaving shape = find_interleaving(std::move(warmups), forwards, where);
  std::map<std::int64_t, std::vector<CalledOps>> ops;
  for (const auto& [process, steps] : found) {
    if (steps.forwards != forwards) refuse(where, "ranks run different numbers of forwards");
    const std::int32_t rank = (longest - steps.warmup) / 2;
    for (std::size_t step = 0; step < steps.calls.size(); ++step)
      for (CalledOps& op :
           number_ops(processes.at(process), steps.calls[step], steps.gaps[step], shape, rank)) {
        op.step = static_cast<std::int64_t>(step);
        ops[process].push_back(op);
      }
  }
  return ops;
}

}  // namespace bubblescope::traces
