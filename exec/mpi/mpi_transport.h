// Messages over MPI. MPI itself is in a module, bubblescope_mpi.so, which is opened when the first
// message is to be sent.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/mpi/mpi_module.h"
#include "exec/runtime/module.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

/// A loaded module, and the processes that MPI has started.
struct MpiLibrary {
  /// Throws Error with what to install where it cannot be loaded.
  explicit MpiLibrary(const std::string& module_file);

  decltype(&bubblescope_mpi_send) send = nullptr;
  decltype(&bubblescope_mpi_find) find = nullptr;
  decltype(&bubblescope_mpi_receive) receive = nullptr;
  decltype(&bubblescope_mpi_is_done) is_done = nullptr;
  decltype(&bubblescope_mpi_close) close = nullptr;
  BubblescopeMpiWorld world{};
};

/// MPI sees one call at a time. A rank is known to be gone only when it does not answer a gather.
class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const MpiLibrary& library);

  void send(std::int32_t to, MessageTag tag, Blob payload) override;
  void send_all(MessageTag tag, const Blob& payload) override;
  std::vector<Message> poll(MessageTag tag) override;
  Gathered gather(Blob own, const ShouldAbort& should_abort) override;
  void wait(const PollBackoff& backoff) const override { backoff.wait(); }

  /// Ends MPI; all processes must do so.
  void close();

 private:
  /// A message on its way: its bytes must not move.
  struct Transfer {
    void* mpi_request = nullptr;
    MessageTag tag = MessageTag::kStep;
    Message message;
  };

  void drop_sent();
  void receive_found(MessageTag tag);
  void take_gathered(const Message& message, std::vector<std::optional<Blob>>& all);
  bool is_complete(const std::vector<std::optional<Blob>>& all) const;

  MpiLibrary library_;
  std::mutex mutex_;  ///< guards MPI's calls and the two lists
  std::list<Transfer> sent_;
  std::list<Transfer> arriving_;
  std::uint64_t gathers_ = 0;
  std::vector<Message> early_;  ///< what others give to the next gather
};

/// The one of this process; opens the module, and starts MPI, when first called. Throws Error with
/// what to install where it cannot.
MpiTransport& open_mpi();

}  // namespace bubblescope::exec
