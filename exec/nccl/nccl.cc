// Calls the module, and waits for its asynchronous calls.
#include "exec/nccl/nccl.h"

#include <algorithm>
#include <utility>

#include "exec/runtime/step_clock.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// After an error of NCCL, how long to wait for another process to report the cause, or for its
/// connection to end.
constexpr Nanos kExplanation = 500'000'000;

bool contains(const RankGroup& members, std::int32_t rank) {
  return std::binary_search(members.begin(), members.end(), rank);
}

}  // namespace

std::string describe_version(const BubblescopeNccl& calls) {
  std::int32_t version = 0;
  if (const char* const error = calls.version(&version)) throw Error(Fault::kMachine, error);
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclRanks::NcclRanks(const BubblescopeNccl& calls, const CommunicatorConfig& own,
                     const std::vector<RankGroup>& groups, Watch watch)
    : calls_(calls), own_(own), groups_(groups), watch_(std::move(watch)) {
  void* made = nullptr;
  expect(calls_.join(own.device, own.rank, own.count, &own.id, &made));
  all_ = this->own(made);
  await_idle(made);
  for (std::size_t group = 0; group < groups_.size(); ++group) parts_.push_back(this->own(nullptr));
  for (const std::vector<std::size_t>& parts : plan_splits(groups_)) split(parts);
}

/// All ranks must call this at the same time.
void NcclRanks::split(const std::vector<std::size_t>& parts) {
  const auto mine = std::find_if(parts.begin(), parts.end(), [this](std::size_t part) {
    return contains(groups_[part], own_.rank);
  });
  const bool takes_part = mine != parts.end();
  void* made = nullptr;
  expect(calls_.split(all_.get(),
                      takes_part ? static_cast<std::int32_t>(*mine) : kBubblescopeNoColor,
                      own_.rank, &made));
  Communicator part = own(made);
  await_idle(all_.get());
  if (!takes_part) return;
  await_idle(part.get());
  parts_[*mine] = std::move(part);
}

/// Throws the error of a call, or, if another process has caused it, what the watch throws about
/// that process.
void NcclRanks::expect(const char* error) {
  if (error == nullptr) return;
  const std::string text = error;
  const Nanos end = read_monotonic_clock() + kExplanation;
  for (const PollBackoff backoff; read_monotonic_clock() < end; backoff.wait()) watch();
  abort();
  throw Error(Fault::kMachine, text);
}

void NcclRanks::watch() {
  try {
    watch_();
  } catch (...) {
    abort();
    throw;
  }
}

void NcclRanks::await_idle(void* communicator) {
  for (const PollBackoff backoff;; backoff.wait()) {
    std::int32_t under_way = 0;
    expect(calls_.get_async_error(communicator, &under_way));
    if (under_way == 0) return;
    watch();
  }
}

void* NcclRanks::communicator(std::optional<std::size_t> group) const {
  return group ? parts_[*group].get() : all_.get();
}

std::int32_t NcclRanks::rank_in(std::optional<std::size_t> group, std::int32_t rank) const {
  if (!group) return rank;
  const RankGroup& members = groups_[*group];
  return static_cast<std::int32_t>(std::lower_bound(members.begin(), members.end(), rank) -
                                   members.begin());
}

void NcclRanks::send(std::optional<std::size_t> group, std::int32_t peer, const Buffer& from,
                     void* stream) {
  expect(calls_.send(communicator(group), from.data, from.bytes, rank_in(group, peer), stream));
  await(group);
}

void NcclRanks::receive(std::optional<std::size_t> group, std::int32_t peer, const Buffer& to,
                        void* stream) {
  expect(calls_.receive(communicator(group), to.data, to.bytes, rank_in(group, peer), stream));
  await(group);
}

void NcclRanks::sum(std::size_t group, const std::vector<Buffer>& values, void* stream) {
  run_as_group(group, [&] {
    for (const Buffer& buffer : values)
      expect(calls_.sum(communicator(group), buffer.data, buffer.bytes / sizeof(float), stream));
  });
}

void NcclRanks::sum_pieces(std::size_t group, const std::vector<Piece>& pieces, void* stream) {
  run_as_group(group, [&] {
    for (const Piece& piece : pieces)
      expect(calls_.reduce(communicator(group), piece.buffer.data,
                           piece.buffer.bytes / sizeof(float), rank_in(group, piece.owner),
                           stream));
  });
}

void NcclRanks::gather_pieces(std::size_t group, const std::vector<Piece>& pieces, void* stream) {
  run_as_group(group, [&] {
    for (const Piece& piece : pieces)
      expect(calls_.broadcast(communicator(group), piece.buffer.data, piece.buffer.bytes,
                              rank_in(group, piece.owner), stream));
  });
}

void NcclRanks::run_as_group(std::optional<std::size_t> group, const std::function<void()>& calls) {
  expect(calls_.group_start());
  in_group_ = true;
  try {
    calls();
  } catch (const Error&) {
    in_group_ = false;
    calls_.group_end();
    throw;
  }
  in_group_ = false;
  expect(calls_.group_end());
  await(group);
}

/// Waits until NCCL has enqueued its own work, so that later work on the stream comes after it.
void NcclRanks::await(std::optional<std::size_t> group) {
  if (!in_group_) await_idle(communicator(group));
}

void NcclRanks::check() {
  std::int32_t under_way = 0;
  expect(calls_.get_async_error(all_.get(), &under_way));
  for (const Communicator& part : parts_)
    if (part) expect(calls_.get_async_error(part.get(), &under_way));
}

void NcclRanks::abort() {
  if (std::exchange(is_aborted_, true)) return;
  for (const Communicator& part : parts_)
    if (part) calls_.abort(part.get());
  if (all_) calls_.abort(all_.get());
}

}  // namespace bubblescope::exec
