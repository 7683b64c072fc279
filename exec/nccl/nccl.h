// NCCL for the host: communicators with owners, calls that throw errors, and waits that can be
// aborted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/gpu_matrix.h"
#include "exec/nccl/calls.h"
#include "exec/nccl/rank_plan.h"

namespace bubblescope::exec {

/// Loads bubblescope_nccl.so for good. Throws Error (Fault::kMachine) that says what is missing.
const BubblescopeNccl& open_nccl();

/// Loads the module from this file.
const BubblescopeNccl& open_nccl(const std::string& module_file);

/// Returns a text such as "2.28.9".
std::string describe_version(const BubblescopeNccl& calls);

/// Called repeatedly while a call is in progress or has failed; throws Error to abort.
using Watch = std::function<void()>;

/// The arguments of a process that joins the communicator of all ranks.
struct CommunicatorConfig {
  std::int32_t rank = 0;
  std::int32_t count = 1;
  std::int32_t device = 0;
  BubblescopeNcclId id{};
};

/// The communicator of all ranks, and one for each group of ranks. All calls must come from one
/// thread. Errors of NCCL, on any rank, are thrown as Error (Fault::kMachine), and so are
/// exceptions of the watch. Every communicator is aborted first, so that the memory and streams
/// that NCCL uses can be freed safely.
class NcclRanks {
 public:
  /// All ranks must construct it at the same time, with the same groups. `calls` is not copied.
  /// Returns when all ranks have joined, or throws what `watch` throws.
  NcclRanks(const BubblescopeNccl& calls, const CommunicatorConfig& own,
            const std::vector<RankGroup>& groups, Watch watch);
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  using Buffer = GpuBuffer;

  // Each call returns when its work is on the stream, perhaps long before it runs. `group` is an
  // index into the constructor's groups and must contain this rank; empty means all ranks.
  void send(std::optional<std::size_t> group, std::int32_t peer, const Buffer& from, void* stream);
  void receive(std::optional<std::size_t> group, std::int32_t peer, const Buffer& to, void* stream);
  void sum(std::size_t group, const std::vector<Buffer>& values, void* stream);

  /// Adjacent bytes that one member of a group owns.
  struct Piece {
    Buffer buffer;
    std::int32_t owner = 0;
  };
  /// Each owner gets the sum of its pieces. The values of the other members are overwritten.
  void sum_pieces(std::size_t group, const std::vector<Piece>& pieces, void* stream);
  /// All members get the owners' pieces.
  void gather_pieces(std::size_t group, const std::vector<Piece>& pieces, void* stream);

  /// Runs the calls of send() and receive() in `calls` as one ncclGroup.
  void run_as_group(std::optional<std::size_t> group, const std::function<void()>& calls);

  /// Throws Error if NCCL has reported an error.
  void check();

  /// Aborts all communicators without waiting for other ranks. Nothing can be sent afterwards.
  /// Calling it again has no effect.
  void abort();

 private:
  struct Release {
    const BubblescopeNccl* calls;
    void operator()(void* communicator) const { calls->release(communicator); }
  };
  using Communicator = std::unique_ptr<void, Release>;

  Communicator own(void* communicator) const { return {communicator, Release{&calls_}}; }
  void* communicator(std::optional<std::size_t> group) const;
  std::int32_t rank_in(std::optional<std::size_t> group, std::int32_t rank) const;
  void split(const std::vector<std::size_t>& parts);
  void expect(const char* error);
  void await_idle(void* communicator);
  void await(std::optional<std::size_t> group);
  void watch();

  const BubblescopeNccl& calls_;
  CommunicatorConfig own_;
  std::vector<RankGroup> groups_;
  Watch watch_;
  Communicator all_;
  std::vector<Communicator> parts_;  ///< by group; null if this rank is not in it
  bool in_group_ = false;
  bool is_aborted_ = false;
};

}  // namespace bubblescope::exec
