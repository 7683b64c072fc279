// A transport sends messages between the processes of one run, over MPI (exec/mpi) or TCP sockets
// (exec/nccl). StepProtocol and the shutdown use nothing else.
//
// A message has a sender, a tag and a payload. Messages of one sender with the same tag arrive in
// the order in which they were sent. A gather collects one payload from every process and gives all
// of them to each:
//
//   rank 0: gather("a")   rank 1: gather("b")   rank 2 has died
//   both get: payloads {"a", "b", empty}, gone {false, false, true}
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/runtime/step_clock.h"

namespace bubblescope::exec {

/// The rank of a process and the number of processes.
struct RankInfo {
  std::int32_t rank = 0;
  std::int32_t count = 1;
};

/// The subject of a message.
enum class MessageTag : std::uint8_t {
  kStep,      ///< the end of an instruction, with its payload
  kCopy,      ///< activations that are copied to or from an offload target
  kControl,   ///< heartbeats and aborts
  kClock,     ///< clock sync, and the time at which a step begins
  kGather,    ///< payloads of a gather
  kShutdown,  ///< the coordinator has finished
};

/// The longest text that says why a process cannot continue or may not join. The sender cuts longer
/// ones, so transports can refuse larger control messages.
inline constexpr std::size_t kMaxFailureText = 8192;

struct Message {
  std::int32_t from = 0;
  Blob payload;
};

/// Called repeatedly while something is awaited; true ends the wait.
using ShouldAbort = std::function<bool()>;

/// The result of a gather.
struct Gathered {
  std::vector<std::optional<Blob>> payloads;  ///< by rank; empty if the rank has not answered
  /// By rank: whether it was gone when the gather ended. A rank that shut down after that is not.
  std::vector<bool> gone;
};

/// Any thread may call, except where a function says otherwise. Throws Error if the connection
/// fails.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Messages to a process that is gone are dropped.
  virtual void send(std::int32_t to, MessageTag tag, Blob payload) = 0;
  virtual void send_all(MessageTag tag, const Blob& payload) = 0;

  /// Returns all messages with this tag that have arrived; none if another thread is polling.
  virtual std::vector<Message> poll(MessageTag tag) = 0;

  /// Collects a payload from every process. All processes must call it, in the same order, on one
  /// thread. A rank that has not answered when `should_abort` becomes true counts as gone from then
  /// on.
  virtual Gathered gather(Blob own, const ShouldAbort& should_abort) = 0;

  /// Waits briefly, at most until something arrives. Use a new PollBackoff for each wait.
  virtual void wait(const PollBackoff& backoff) const = 0;

  /// Returns when everything has been sent. Does nothing for transports that send in the
  /// background.
  virtual void flush(const ShouldAbort& should_abort) { static_cast<void>(should_abort); }

  const RankInfo& self() const { return self_; }

  /// Whether rank 0 forwards the messages of the other ranks, so that they are cut off if it dies.
  bool is_relayed() const { return is_relayed_; }

  bool is_gone(std::int32_t rank) const;
  /// The first rank that was found to be gone; empty if none was.
  std::optional<std::int32_t> first_gone() const;
  /// The lowest rank that is not known to be gone: it prints and writes files.
  std::int32_t coordinator() const;

 protected:
  Transport(const RankInfo& self, bool is_relayed);

  /// Returns false if it was known.
  bool note_gone(std::int32_t rank);
  std::vector<bool> gone() const;

 private:
  RankInfo self_;
  bool is_relayed_;
  mutable std::mutex gone_mutex_;  ///< guards the members below
  std::vector<bool> gone_;         ///< by rank
  std::optional<std::int32_t> first_gone_;
};

}  // namespace bubblescope::exec
