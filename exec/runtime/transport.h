// How the processes of one run talk to each other, whatever connects them: messages between any two
// of them, and gathers of everyone's bytes. MPI is one transport, sockets are another.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/runtime/step_clock.h"

namespace bubblescope::exec {

/// A process's place among those of its run.
struct RankInfo {
  std::int32_t rank = 0;
  std::int32_t count = 1;
};

/// What a message is about. Those of one channel arrive in the order in which they were sent.
enum class MessageTag : std::uint8_t {
  kStep,      ///< instructions that have ended, with their payloads
  kCopy,      ///< copies of activations to the memory of another process, and back
  kControl,   ///< heartbeats and aborts
  kClock,     ///< clock sync, and when a step begins
  kGather,    ///< everyone's bytes for everyone
  kShutdown,  ///< the coordinator is done
};

struct Message {
  std::int32_t from = 0;
  Blob payload;
};

/// Asked again and again while something is awaited.
using ShouldAbort = std::function<bool()>;

/// Everyone's bytes.
struct Gathered {
  std::vector<std::optional<Blob>> payloads;  ///< by rank; empty: it has not answered
  /// By rank: it was gone when everything was there. Who has left since in good order is not.
  std::vector<bool> gone;
};

/// Any thread may call, unless said otherwise. Throws Error for what the connection refuses.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Messages to a process that is gone are dropped.
  virtual void send(std::int32_t to, MessageTag tag, Blob payload) = 0;
  virtual void send_all(MessageTag tag, const Blob& payload) = 0;

  /// All messages that have arrived on a channel. None, too, while another thread polls.
  virtual std::vector<Message> poll(MessageTag tag) = 0;

  /// Every process calls it, in the same order, on one thread. A rank that has not answered when
  /// `should_abort` becomes true is gone from then on.
  virtual Gathered gather(Blob own, const ShouldAbort& should_abort) = 0;

  /// Returns when something has arrived, or soon. A patience begins with each wait for news.
  virtual void wait(const PollBackoff& backoff) const = 0;

  /// Returns when all that was sent is on its way, for transports that do not see to it themselves.
  virtual void flush(const ShouldAbort& should_abort) { static_cast<void>(should_abort); }

  const RankInfo& self() const { return self_; }

  /// Whether rank 0 passes on what the others send to each other: without it nobody is heard.
  bool is_relayed() const { return is_relayed_; }

  bool is_gone(std::int32_t rank) const;
  /// The rank that went first; empty: all are there.
  std::optional<std::int32_t> first_gone() const;
  /// The lowest rank that is not known to be gone: it prints and writes files.
  std::int32_t coordinator() const;

 protected:
  Transport(const RankInfo& self, bool is_relayed);

  /// False: it was known.
  bool note_gone(std::int32_t rank);
  std::vector<bool> gone() const;

 private:
  RankInfo self_;
  bool is_relayed_;
  mutable std::mutex gone_mutex_;  ///< guards what follows
  std::vector<bool> gone_;         ///< by rank
  std::optional<std::int32_t> first_gone_;
};

}  // namespace bubblescope::exec
