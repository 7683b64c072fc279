// The transport over MPI. MPI itself is in a module, bubblescope_mpi.so, which is loaded when the
// transport is first opened.
//
// Every message is sent directly to its receiver. MPI does not report the death of a process, so a
// rank is known to be gone only when it has not answered a gather.
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

/// The functions of the loaded module.
struct MpiLibrary {
  /// Throws Error that says what to install if the module cannot be loaded.
  explicit MpiLibrary(const std::string& module_file);

  decltype(&bubblescope_mpi_send) send = nullptr;
  decltype(&bubblescope_mpi_find) find = nullptr;
  decltype(&bubblescope_mpi_receive) receive = nullptr;
  decltype(&bubblescope_mpi_is_done) is_done = nullptr;
  decltype(&bubblescope_mpi_close) close = nullptr;
  BubblescopeMpiWorld world{};
};

/// Calls MPI on one thread at a time.
class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const MpiLibrary& library);

  void send(std::int32_t to, MessageTag tag, Blob payload) override;
  void send_all(MessageTag tag, const Blob& payload) override;
  std::vector<Message> poll(MessageTag tag) override;
  Gathered gather(Blob own, const ShouldAbort& should_abort) override;
  void wait(const PollBackoff& backoff) const override { backoff.wait(); }

  /// Ends MPI. All processes must call it.
  void close();

 private:
  /// A message that is being sent or received. Its bytes must not move.
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
  std::mutex mutex_;  ///< guards calls into MPI and the two lists
  std::list<Transfer> sent_;
  std::list<Transfer> arriving_;
  std::uint64_t gathers_ = 0;
  std::vector<Message> early_;  ///< payloads that other ranks sent for a later gather
};

/// The transport of this process. The first call loads the module and starts MPI. Throws Error that
/// says what to install if that fails.
MpiTransport& open_mpi();

}  // namespace bubblescope::exec
