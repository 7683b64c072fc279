// Runs the lanes of one rank, and exchanges messages with the other processes.
#include "exec/runtime/distributed_backend.h"

#include <algorithm>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Precedes an instruction's payload in a message.
struct StepHeader {
  std::uint32_t step = 0;
  InstructionId id = 0;
  Nanos end = 0;
};

std::vector<std::vector<std::int32_t>> find_receivers(const Program& program, std::int32_t here) {
  std::vector<std::vector<std::int32_t>> receivers(program.size());
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId dependency : program.dependencies_of(id)) {
      const std::int32_t rank = program.instructions[id].rank;
      std::vector<std::int32_t>& known = receivers[dependency];
      if (program.instructions[dependency].rank == here && rank != here &&
          std::find(known.begin(), known.end(), rank) == known.end())
        known.push_back(rank);
    }
  return receivers;
}

}  // namespace

DistributedBackend::DistributedBackend(BackendRequest request, const Program& program,
                                       Transport& transport)
    : request_(std::move(request)),
      program_(program),
      transport_(transport),
      here_(transport.self().rank),
      receivers_(find_receivers(program, here_)),
      copies_(request_.payload_codec, program, transport),
      protocol_(transport, request_.limits),
      pool_(request_, program, make_remote_hooks()) {}

RemoteHooks DistributedBackend::make_remote_hooks() {
  return {here_, [this](InstructionId id, Nanos end) { notify(id, end); },
          [this](InstructionId copy) { copy_remote(copy); }, [this] { return poll(); }};
}

std::vector<RankResult> DistributedBackend::run_step() {
  protocol_.open_step();
  arrivals_.clear();
  copies_.begin_step(protocol_.step());
  // Ranks that have not finished may still load activations from this one.
  std::vector<RankPart> parts = protocol_.gather_parts(run_lanes(), [this] { copies_.serve(); });
  set_arrivals(parts, program_);
  return take_results(std::move(parts));
}

/// Returns this rank's part. If a process is gone before the step begins, nothing has started.
RankPart DistributedBackend::run_lanes() {
  pool_.await_threads();
  const std::optional<StepBegin>& begin = protocol_.agree_on_begin();
  if (!begin) {
    pool_.skip_step();
    RankPart part{pool_.result(here_), {}};
    part.result.reason = protocol_.abort_reason();
    return part;
  }
  pool_.run_step(begin->time);
  return {pool_.result(here_), std::exchange(arrivals_, {})};
}

/// Runs on the thread that ended the instruction.
void DistributedBackend::notify(InstructionId id, Nanos end) {
  const std::vector<std::int32_t>& receivers = receivers_[id];
  if (receivers.empty()) return;
  const Blob bytes =
      blob_of(StepHeader{protocol_.step(), id, end},
              request_.payload_codec.pack ? request_.payload_codec.pack(id) : Blob());
  for (const std::int32_t receiver : receivers) transport_.send(receiver, MessageTag::kStep, bytes);
}

/// Runs on the thread of the copy's lane.
void DistributedBackend::copy_remote(InstructionId copy) {
  const PollBackoff backoff;
  copies_.copy_remote(copy, [&] {
    if (!poll()) transport_.wait(backoff);
    return !pool_.run().aborted();
  });
}

bool DistributedBackend::poll() {
  try {
    const std::vector<Message> messages = transport_.poll(MessageTag::kStep);
    for (const Message& message : messages) handle(message);
    const bool copied = copies_.serve();
    const PeerUpdate update = protocol_.exchange_heartbeats(pool_.run().progress_here());
    if (update.progressed) pool_.run().note_progress_elsewhere();
    if (update.abort_reason != AbortReason::kNone) pool_.abort(update.abort_reason);
    return copied || !messages.empty();
  } catch (...) {
    pool_.run().fail(here_);
    return false;
  }
}

/// Messages from an earlier step are leftovers of an abort; ignore them.
void DistributedBackend::handle(const Message& message) {
  BlobReader reader(message.payload);
  const auto header = reader.read<StepHeader>();
  if (header.step != protocol_.step()) return;
  if (header.id >= program_.size() || program_.instructions[header.id].rank != message.from)
    throw Error(Fault::kMachine,
                "rank " + std::to_string(message.from) +
                    " sent an invalid message: one for an instruction that is not its own");
  const Instruction& instruction = program_.instructions[header.id];
  const auto size = reader.read<std::size_t>();
  if (size != reader.rest().size())
    throw Error(Fault::kMachine, "rank " + std::to_string(message.from) +
                                     " sent a wrong size: " + to_string(instruction.op) + " has " +
                                     counted(reader.rest().size(), "byte") + ", not " +
                                     std::to_string(size));
  if (request_.payload_codec.unpack && size != 0)
    request_.payload_codec.unpack(header.id, reader.rest());
  if (is_message(instruction) && instruction.peer == here_) {
    const Nanos now = pool_.run().now();
    const std::lock_guard lock(mutex_);
    arrivals_.push_back({header.id, now, now});
  }
  pool_.run().record_remote_end(header.id, header.end);
}

}  // namespace bubblescope::exec
