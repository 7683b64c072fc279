// A step of one rank among processes.
#include "exec/mpi_crew.h"

#include <algorithm>
#include <utility>

#include "exec/mpi_clock.h"
#include "exec/step_control.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// All come to the beginning of a step one after the other, which takes a busy machine a while.
constexpr Nanos kLeastBegin = 5'000'000'000;

/// Before what an instruction carries.
struct StepHeader {
  std::uint32_t step = 0;
  InstructionId id = 0;
  Nanos end = 0;
};

template <class Header>
Blob to_letter(const Header& header, const Blob& rest = {}) {
  BlobWriter writer;
  writer.write(header);
  writer.write_all(rest);
  return writer.take();
}

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

/// Of no step.
Blob sign_of_life() { return to_letter(ControlHeader{}); }

MpiCrew::MpiCrew(BackendRequest request, const Program& program, MpiPort& port)
    : request_(std::move(request)),
      program_(program),
      port_(port),
      here_(port.rank()),
      receivers_(find_receivers(program, port.rank())),
      copies_(request_.cargo, program, port),
      pool_(request_, program, make_outside()) {}

Outside MpiCrew::make_outside() {
  return {here_, [this](InstructionId id, Nanos end) { tell(id, end); },
          [this](InstructionId copy) { move(copy); }, [this] { return listen(); }};
}

std::vector<RankResult> MpiCrew::run_step() {
  ++step_;
  news_at_ = read_monotonic_clock();
  deadline_.reset();
  heard_stop_ = Stop::kTimeout;
  arrivals_.clear();
  copies_.begin_step(step_);
  const RankPart own = run_lanes();
  std::vector<RankPart> parts;
  std::int32_t rank = 0;
  const auto wait = [this] {
    copies_.serve();  // whose ranks are not done yet
    return gives_up();
  };
  for (const std::optional<Blob>& bytes : port_.share(to_bytes(own), wait)) {
    parts.push_back(bytes ? read_part(*bytes) : missing_part(rank, own.result.reason));
    ++rank;
  }
  parts = call_roll(std::move(parts));
  set_arrivals(parts, program_);
  return take_results(std::move(parts));
}

/// A rank that was done may have died since: a launcher then stops the others and does not say why.
std::vector<RankPart> MpiCrew::call_roll(std::vector<RankPart> parts) {
  const Stop stop = find_stop(parts);
  if (stop == Stop::kNone) return parts;
  deadline_ = read_monotonic_clock() + grace_of(stop);
  port_.share({}, [this] { return gives_up(); });
  return fail_those_gone(std::move(parts),
                         [this](std::int32_t rank) { return port_.is_gone(rank); });
}

/// Also where a process is missed before the step: then nothing has started.
RankPart MpiCrew::run_lanes() {
  pool_.await_threads();
  // Whoever hears of a stop gives up at once: the others wait for what it tells.
  const std::optional<Nanos> begin =
      agree_on_begin(port_, [this] { return gives_up(kLeastBegin) || deadline_.has_value(); });
  begin ? static_cast<void>(pool_.run_step(*begin)) : pool_.skip_step();
  RankPart part{pool_.result(here_), {}};
  if (!begin) part.result.reason = is_interrupted() ? Stop::kInterrupt : heard_stop_;
  if (part.result.reason != Stop::kNone) {
    port_.send_all(Channel::kControl, to_letter(ControlHeader{step_, part.result.reason}));
    deadline_ = read_monotonic_clock() + grace_of(part.result.reason);
  }
  part.arrivals = std::exchange(arrivals_, {});
  news_at_ = read_monotonic_clock();
  return part;
}

/// On the thread that ended the instruction.
void MpiCrew::tell(InstructionId id, Nanos end) {
  const std::vector<std::int32_t>& receivers = receivers_[id];
  if (receivers.empty()) return;
  const Blob letter =
      to_letter(StepHeader{step_, id, end}, request_.cargo.pack ? request_.cargo.pack(id) : Blob());
  for (const std::int32_t receiver : receivers) port_.send(receiver, Channel::kStep, letter);
}

/// On the lane of a copy.
void MpiCrew::move(InstructionId copy) {
  const Patience patience;
  copies_.move(copy, [&] {
    if (!listen()) patience.wait();
    return !pool_.run().stopped();
  });
}

bool MpiCrew::listen() {
  try {
    const std::vector<Letter> letters = port_.look(Channel::kStep);
    for (const Letter& letter : letters) take(letter);
    const bool copied = copies_.serve();
    for (const Letter& letter : port_.look(Channel::kControl)) heed(letter);
    show_life();
    return copied || !letters.empty();
  } catch (...) {
    pool_.run().fail(here_);
    return false;
  }
}

/// What is of an earlier step, or of no step at all, is late news of a stop.
void MpiCrew::take(const Letter& letter) {
  BlobReader reader(letter.bytes);
  const auto header = reader.read<StepHeader>();
  if (header.step != step_) return;
  if (header.id >= program_.size() || program_.instructions[header.id].rank != letter.peer)
    throw Error(Fault::kMachine, "rank " + std::to_string(letter.peer) +
                                     " sent garbage: a message of no instruction of its own");
  const Instruction& instruction = program_.instructions[header.id];
  const auto size = reader.read<std::size_t>();
  if (size != reader.rest().size())
    throw Error(Fault::kMachine, "rank " + std::to_string(letter.peer) +
                                     " sent a wrong size: " + to_string(instruction.op) + " has " +
                                     std::to_string(reader.rest().size()) + " bytes, not " +
                                     std::to_string(size));
  if (request_.cargo.unpack && size != 0) request_.cargo.unpack(header.id, reader.rest());
  if (is_message(instruction) && instruction.peer == here_) {
    const Nanos now = pool_.run().now();
    const std::lock_guard lock(mutex_);
    arrivals_.push_back({header.id, now, now});
  }
  pool_.run().hear(header.id, header.end);
}

void MpiCrew::heed(const Letter& letter) {
  const auto header = BlobReader(letter.bytes).read<ControlHeader>();
  {
    const std::lock_guard lock(mutex_);
    ++heard_;
    news_at_ = read_monotonic_clock();
  }
  if (header.stop == Stop::kNone)
    pool_.run().note_progress();
  else if (header.step == step_)
    pool_.stop(header.stop);
}

/// The others wait for as long as anyone goes on.
void MpiCrew::show_life() {
  const Nanos now = read_monotonic_clock();
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || now - shown_at_ < request_.timeout / kShownPerTimeout) return;
    const std::uint64_t progress = pool_.run().progress() - heard_;
    if (std::exchange(shown_, progress) == progress) return;
    shown_at_ = now;
  }
  port_.send_all(Channel::kControl, to_letter(ControlHeader{step_, Stop::kNone}));
}

bool MpiCrew::is_interrupted() const {
  return request_.interrupted != nullptr && request_.interrupted->load();
}

/// While this process has nothing to do but to wait for others, for the timeout or for longer.
bool MpiCrew::gives_up(Nanos least) {
  for (const Letter& letter : port_.look(Channel::kControl)) {
    const auto header = BlobReader(letter.bytes).read<ControlHeader>();
    news_at_ = read_monotonic_clock();
    if (header.stop == Stop::kNone || header.step != step_ || deadline_) continue;
    heard_stop_ = header.stop;
    deadline_ = news_at_ + kStopGrace;
  }
  const Nanos now = read_monotonic_clock();
  if (is_interrupted())
    deadline_ = std::min(deadline_.value_or(now + kShortStopGrace), now + kShortStopGrace);
  if (deadline_) return now > *deadline_;
  return now - news_at_ > std::max(request_.timeout, least) + kStopGrace;
}

}  // namespace bubblescope
