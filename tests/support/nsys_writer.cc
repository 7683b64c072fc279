// Writes exports of Nsight Systems.
#include "tests/support/nsys_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace bubblescope::tests {

namespace {

constexpr Nanos kMicro = 1'000;
constexpr Nanos kAhead = 40 * kMicro;  ///< the host launches an op this long before it runs
constexpr Nanos kLaunching = 20 * kMicro;
constexpr Nanos kTail = 300 * kMicro;  ///< the optimizer

struct TimedOp {
  Op op;
  Nanos start = 0;
  Nanos end = 0;
};

std::vector<std::vector<TimedOp>> ops_by_rank(const RecordedStep& step) {
  std::vector<std::vector<TimedOp>> ranks(step.schedule->order.size());
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& instruction = step.program.instructions[id];
    if (is_compute(instruction.op.kind))
      ranks[instruction.rank].push_back(
          {instruction.op, step.timeline.start[id], step.timeline.end[id]});
  }
  return ranks;
}

class Writer {
 public:
  Writer(const RecordedStep& step, const NsysJob& job)
      : job_(job), ranks_(static_cast<std::int32_t>(step.schedule->order.size())) {
    // Recordings begin long before their first step.
    Nanos origin = 5'000 * kMicro;
    const std::vector<std::vector<TimedOp>> ops = ops_by_rank(step);
    for (int at = 0; at < job.steps; ++at) {
      for (rank_ = 0; rank_ < ranks_; ++rank_) add_step(ops[rank_], origin);
      origin += step.report.makespan + 2 * kTail;
    }
  }

  NsysEvents take() && { return std::move(events_); }

 private:
  std::int64_t process() const { return nsys_process(rank_); }
  std::int64_t main_thread() const { return process() + 17; }
  std::int64_t engine_thread() const { return process() + 18; }

  void add_step(const std::vector<TimedOp>& ops, Nanos origin) {
    for (std::size_t at = 0; at < ops.size(); ++at) {
      TimedOp op = ops[at];
      op.start += origin;
      op.end += origin;
      free_ = at == 0 ? origin - kTail / 2 : op.end;
      add_op(op);
      if (job_.names == NsysNames::kDeepSpeed || job_.names == NsysNames::kPasses ||
          job_.unnamed_messages) {
        const TimedOp* const next = at + 1 < ops.size() ? &ops[at + 1] : nullptr;
        if (at == 0) receive(op);
        free_ = op.end;
        send(op);
        if (next) receive({next->op, next->start + origin, next->end + origin});
      }
      if (job_.names == NsysNames::kMegatron || job_.names == NsysNames::kFunctionsAndMessages) {
        if (at == 0) call("recv_forward", op, {}, nullptr, &op);
        free_ = op.end;
        const TimedOp* const next = at + 1 < ops.size() ? &ops[at + 1] : nullptr;
        add_calls_between(op, next, origin);
      }
    }
    if (job_.names == NsysNames::kInterleaved || job_.names == NsysNames::kOverlapped)
      add_calls_of_chunks(ops, origin);
    const Nanos end = ops.back().end + origin;
    if (job_.reduction > 0) {
      const Nanos begin = (ops.back().start + ops.back().end) / 2 + origin;
      launch(engine_thread(), ops.back().start + origin - kAhead + 13 * kMicro, begin,
             begin + job_.reduction, "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL");
      events_.kernels.back().stream = 30;
    }
    launch(main_thread(), end, end + kTail / 2, end + kTail, "multi_tensor_apply_kernel");
  }

  void add_op(const TimedOp& op) {
    const Nanos host = op.start - kAhead;
    const bool forward = op.op.kind == OpKind::kForward;
    const std::int64_t thread = forward || !job_.autograd_thread ? main_thread() : engine_thread();
    const Nanos third = (op.end - op.start) / 3;
    launch(thread, host + 4 * kMicro, op.start, op.start + third, "gemm");
    launch(thread, host + 8 * kMicro, op.start + third, op.start + 2 * third, "softmax");
    launch(thread, host + 12 * kMicro, op.start + 2 * third, op.end, "gemm");
    const std::string name = name_of(op.op);
    if (!name.empty()) {
      range(host, host + kLaunching, name);
      range(host + kMicro, host + 15 * kMicro, "aten::linear, op_id = 7");
    }
  }

  std::string name_of(const Op& op) const {
    const bool forward = op.kind == OpKind::kForward;
    switch (job_.names) {
      case NsysNames::kOps: return "PP:" + to_string(op);
      case NsysNames::kEmitNvtx:
        return fmt::format("PP:{}, op_id = {}", to_string(op), 11 + op.microbatch);
      case NsysNames::kZeroBubble: {
        const char* const letter = forward ? "F" : op.kind == OpKind::kWeightGrad ? "W" : "B";
        return fmt::format("{}{}.{}.0", letter, op.microbatch, op.stage / ranks_);
      }
      case NsysNames::kMegatron:
      case NsysNames::kInterleaved:
      case NsysNames::kOverlapped: return "";
      case NsysNames::kFunctions:
      case NsysNames::kFunctionsAndMessages:
        return fmt::format("megatron.core.pipeline_parallel.schedules.{}_step",
                           forward ? "forward" : "backward");
      case NsysNames::kDeepSpeed:
        if (!forward && op.stage + 1 < ranks_) return "";
        return forward ? "DeepSpeedEngine.forward" : "DeepSpeedEngine.backward";
      case NsysNames::kPasses:
        return fmt::format("PipelineEngine._exec_{}_pass", forward ? "forward" : "backward");
    }
    return "";
  }

  /// DeepSpeed receives an op's input and sends its result in calls of their own.
  void receive(const TimedOp& op) {
    const bool forward = op.op.kind == OpKind::kForward;
    if (forward ? op.op.stage == 0 : op.op.stage + 1 == ranks_) return;
    const Nanos begin = post_time(op.start - kAhead - 6 * kMicro);
    message(forward ? "recv_activations" : "recv_grads", begin, op.start);
  }

  /// When a receive is posted that could be posted as late as at `latest`.
  Nanos post_time(Nanos latest) const {
    return job_.posts_early ? std::min(latest, free_ - 4 * kMicro) : latest;
  }

  /// When the kernel of a message that arrives at `finish` starts.
  Nanos message_start(Nanos finish) const {
    return job_.posts_early ? std::min(free_, finish - 2 * kMicro) : finish - 2 * kMicro;
  }

  void send(const TimedOp& op) {
    const bool forward = op.op.kind == OpKind::kForward;
    if (forward ? op.op.stage + 1 == ranks_ : op.op.stage == 0) return;
    const Nanos begin = op.start - kAhead + kLaunching + kMicro;
    message(forward ? "send_activations" : "send_grads", begin, op.end + 3 * kMicro);
  }

  void message(const std::string& name, Nanos begin, Nanos finish) {
    if (job_.names == NsysNames::kPasses)
      range(begin, begin + 5 * kMicro, "PipelineEngine._exec_" + name);
    launch(main_thread(), begin + kMicro, message_start(finish), finish,
           "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)");
  }

  /// Megatron's non-interleaved 1F1B names what it does between two ops.
  void add_calls_between(const TimedOp& op, const TimedOp* next, Nanos origin) {
    const bool forward = op.op.kind == OpKind::kForward;
    if (!next) return call("send_backward", {}, op, &op, nullptr);
    TimedOp after = *next;
    after.start += origin;
    const bool to_forward = after.op.kind == OpKind::kForward;
    if (forward != to_forward) {
      const std::string name =
          forward ? "send_forward_recv_backward" : "send_backward_recv_forward";
      return call(name, after, op, &op, &after);
    }
    call(forward ? "send_forward" : "send_backward", {}, op, &op, nullptr);
    call(forward ? "recv_forward" : "recv_backward", after, {}, nullptr, &after);
  }

  /// Megatron's interleaved schedule names its messages as forward_backward_pipelining_with_
  /// interleaving does; in the steady state a forward and a backward share their messages, unless
  /// these overlap with ops.
  void add_calls_of_chunks(const std::vector<TimedOp>& ops, Nanos origin) {
    const bool overlapped = job_.names == NsysNames::kOverlapped;
    std::size_t warmup = 0;  // the first backward follows one more forward
    while (ops[warmup + 1].op.kind == OpKind::kForward) ++warmup;
    std::size_t forwards = 0;
    std::size_t backwards = 0;
    const Nanos first = ops.front().start + origin - kAhead;
    add_call("recv_forward", first - 6 * kMicro, first, ops.front().start + origin);
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const bool forward = ops[at].op.kind == OpKind::kForward;
      const std::size_t count = forward ? ++forwards : ++backwards;
      const Nanos begin = ops[at].start + origin - kAhead + kLaunching;
      const Nanos next = at + 1 < ops.size() ? ops[at + 1].start + origin : begin + kAhead + kMicro;
      const bool shared = forward ? count >= warmup : backwards + warmup <= ops.size() / 2;
      if (!overlapped && forward && count > warmup) continue;
      const auto arrival = [&](OpKind kind) {
        for (std::size_t later = at + 1; overlapped && later < ops.size(); ++later)
          if (ops[later].op.kind == kind) return ops[later].start + origin;
        return next;
      };
      const Nanos middle = begin + 4 * kMicro;
      const bool more = overlapped && forward && count == warmup;
      add_call(shared && !overlapped ? "send_forward_backward_recv_forward_backward"
               : forward             ? "send_forward_recv_forward"
                                     : "send_backward_recv_backward",
               begin, more ? middle : next - kAhead, arrival(ops[at].op.kind));
      if (more)
        add_call("send_backward_recv_backward", middle, next - kAhead, arrival(OpKind::kBackward));
    }
  }

  /// A call whose message arrives at `arrival`.
  void add_call(const std::string& name, Nanos begin, Nanos end, Nanos arrival) {
    range(begin, end, "megatron.core.pipeline_parallel.p2p_communication." + name);
    launch(main_thread(), begin + kMicro, arrival - 2 * kMicro, arrival,
           "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)");
  }

  /// A call that sends the result of `sent` and receives the input of `received`; each may be null.
  void call(const std::string& name, const TimedOp& to, const TimedOp& from, const TimedOp* sent,
            const TimedOp* received) {
    const Nanos begin =
        sent ? from.start - kAhead + kLaunching : post_time(to.start - kAhead - 6 * kMicro);
    const Nanos end = received ? to.start - kAhead : begin + 5 * kMicro;
    range(begin, end, "megatron.core.pipeline_parallel.p2p_communication." + name);
    const bool sends = sent && (sent->op.kind == OpKind::kForward ? sent->op.stage + 1 < ranks_
                                                                  : sent->op.stage > 0);
    const bool receives =
        received && (received->op.kind == OpKind::kForward ? received->op.stage > 0
                                                           : received->op.stage + 1 < ranks_);
    if (!sends && !receives) return;
    const Nanos finish = receives ? to.start : from.end + 3 * kMicro;
    launch(main_thread(), begin + kMicro, message_start(finish), finish,
           "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)");
  }

  void range(Nanos start, Nanos end, const std::string& name) {
    events_.ranges.push_back({main_thread(), start, end, name});
  }

  void launch(std::int64_t thread, Nanos call, Nanos start, Nanos end, const std::string& name) {
    // Every process counts on its own.
    const std::int64_t correlation = ++correlations_[rank_];
    events_.calls.push_back({thread, call, correlation});
    events_.kernels.push_back({process(), start, end, correlation, name});
  }

  NsysJob job_;
  std::int32_t ranks_;
  std::int32_t rank_ = 0;
  Nanos free_ = 0;  ///< the end of the op before the next one
  std::map<std::int32_t, std::int64_t> correlations_;
  NsysEvents events_;
};

}  // namespace

NsysEvents record_nsys(const RecordedStep& step, const NsysJob& job) {
  return Writer(step, job).take();
}

NsysEvents of_rank(const NsysEvents& events, std::int32_t rank) {
  NsysEvents kept = events;
  const std::int64_t process = nsys_process(rank);
  const auto elsewhere = [process](std::int64_t thread) {
    return (thread & ~std::int64_t{0xffffff}) != process;
  };
  std::erase_if(kept.ranges, [&](const auto& range) { return elsewhere(range.thread); });
  std::erase_if(kept.calls, [&](const auto& call) { return elsewhere(call.thread); });
  std::erase_if(kept.kernels, [&](const auto& kernel) { return elsewhere(kernel.process); });
  return kept;
}

}  // namespace bubblescope::tests
