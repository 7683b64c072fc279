// Compares the ends of the pipeline with those that it must have.
#include "traces/measured/missing_ends.h"

#include <fmt/format.h>

#include <algorithm>

namespace bubblescope::traces {

namespace {

bool has_chunks(const ObservedTrace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(),
                     [](const ObservedOp& observed) { return observed.chunk.value_or(0) > 0; });
}

bool goes_upstream(OpKind message) {
  return message == OpKind::kRecvForward || message == OpKind::kSendBackward;
}

}  // namespace

ObservedTrace note_missing_last_ranks(ObservedTrace trace,
                                      const std::vector<std::int32_t>& warmups) {
  if (warmups.back() == 1) return trace;
  const bool one_apart =
      std::adjacent_find(warmups.begin(), warmups.end(), [](std::int32_t left, std::int32_t right) {
        return left != right + 1;
      }) == warmups.end();
  if (one_apart)
    trace.remarks.faults.push_back(fmt::format(
        "the last of the ranks runs {} forwards before its first backward, where the last stage "
        "runs one: traces of further ranks are missing ({})",
        warmups.back(), warmups.back() - 1));
  else if (!has_chunks(trace))
    trace.remarks.doubts.push_back(fmt::format(
        "the last of the ranks runs {} forwards before its first backward, where the last stage "
        "needs one: traces of further ranks seem to be missing",
        warmups.back()));
  return trace;
}

ObservedTrace note_messages_beyond_ends(ObservedTrace trace) {
  std::int32_t last = 0;
  for (const Recorder& recorder : trace.recorders) last = std::max(last, recorder.rank.value_or(0));
  const bool one_chunk = !has_chunks(trace);
  for (const ObservedOp& observed : trace.ops) {
    if (!is_message(observed.op.kind) || observed.is_inferred) continue;
    const std::int32_t rank = recorder_of(trace, observed).rank.value_or(0);
    const bool upstream = goes_upstream(observed.op.kind);
    const bool at_first = rank == 0 && upstream && observed.chunk.value_or(0) == 0;
    const bool at_last = rank == last && !upstream && one_chunk;
    if (!at_first && !at_last) continue;
    trace.remarks.faults.push_back(fmt::format(
        "rank {} {} the rank {} it, which has no trace; give the traces of all ranks", rank,
        is_send(observed.op.kind) ? "sends to" : "receives from", at_first ? "before" : "after"));
    break;
  }
  return trace;
}

std::optional<std::string> describe_unrun_last_stage(const DraftStep& draft,
                                                     const TraceSource& source) {
  const std::int32_t last = draft.step.schedule->stages() - 1;
  const auto leaves_last_rank = [&](const ObservedOp& message) {
    const OpKind kind = message.op.kind;
    const bool was_sent = source.has_only_sent_messages || (!message.chunk && message.numbered);
    // Waiting for a message was inferred, not observed.
    return was_sent && !message.may_hold_waiting && !message.is_inferred &&
           message.op.stage == last &&
           (kind == OpKind::kSendForward || kind == OpKind::kRecvBackward);
  };
  const auto found = std::find_if(draft.messages.begin(), draft.messages.end(), leaves_last_rank);
  if (found == draft.messages.end()) return {};
  return fmt::format(
      "{} is a message with stage {}, which no trace runs: the trace of its rank is missing, and "
      "what waits for it is reported as waiting for no rank",
      to_string(found->op), last + 1);
}

}  // namespace bubblescope::traces
