// NCCL as the host uses it: the calls of its module with errors thrown, communicators owned, and
// nothing that waits for ever.
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

/// Opens bubblescope_nccl.so. Throws Error (Fault::kMachine) that says what is missing. The module
/// stays open for good.
const BubblescopeNccl& open_nccl();

/// The same for a module in this file.
const BubblescopeNccl& open_nccl(const std::string& module_file);

/// "2.28.9".
std::string describe_version(const BubblescopeNccl& calls);

/// Called again and again while something is under way, or has failed; throws Error to give up.
using Watch = std::function<void()>;

/// What one process needs to join all others.
struct CommunicatorConfig {
  std::int32_t rank = 0;
  std::int32_t count = 1;
  std::int32_t device = 0;
  BubblescopeNcclId id{};
};

/// All ranks' communicator, and those of groups of them. For one thread. What NCCL refuses, here or
/// as the news of another rank, is thrown as Error (Fault::kMachine), and so is what the watch
/// throws: everything is aborted then, before anyone gives back memory or streams that it uses.
class NcclRanks {
 public:
  /// All ranks make it at the same time, with the same groups. `calls` is not copied. Returns when
  /// all are there, or throws what `watch` does.
  NcclRanks(const BubblescopeNccl& calls, const CommunicatorConfig& own,
            const std::vector<RankGroup>& groups, Watch watch);
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  using Buffer = GpuBuffer;

  // Each returns when it is on the stream, perhaps long before it has run. `group` is an index of
  // the constructor's groups, to which this rank belongs; empty: all ranks.
  void send(std::optional<std::size_t> group, std::int32_t peer, const Buffer& from, void* stream);
  void receive(std::optional<std::size_t> group, std::int32_t peer, const Buffer& to, void* stream);
  void sum(std::size_t group, const std::vector<Buffer>& values, void* stream);

  /// Neighbouring bytes that one member of a group owns.
  struct Piece {
    Buffer buffer;
    std::int32_t owner = 0;
  };
  /// Each owner gets the sum of its pieces; what the others have there is lost.
  void sum_pieces(std::size_t group, const std::vector<Piece>& pieces, void* stream);
  /// All get what the owners have.
  void gather_pieces(std::size_t group, const std::vector<Piece>& pieces, void* stream);

  /// What `calls` of send() and receive() ask for starts as one.
  void run_as_group(std::optional<std::size_t> group, const std::function<void()>& calls);

  /// Throws what has gone wrong since.
  void check();

  /// Ends everything that is under way, without the others. Nothing can be sent any more. Again is
  /// nothing.
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
  std::vector<Communicator> parts_;  ///< by group; null where this rank is not in it
  bool in_group_ = false;
  bool is_aborted_ = false;
};

}  // namespace bubblescope::exec
