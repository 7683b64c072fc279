// The processes of one run, connected by TCP: all with rank 0, which passes on what the others send
// to each other. A process that ends, or sends what no process of ours would, is gone for good, and
// all others hear of it at once.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/nccl/frames.h"
#include "exec/nccl/tcp_socket.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

/// A socket, and what has come over it already.
struct Connection {
  TcpSocket socket;
  FrameReader reader;
};

/// The largest that one process gives to a gather before a Program is known.
inline constexpr std::uint64_t kSmallGather = std::uint64_t{1} << 20;

class SocketTransport : public Transport {
 public:
  /// Rank 0 is connected with ranks 1, 2, ..., any other with rank 0 alone; a single process with
  /// none.
  SocketTransport(const RankInfo& self, std::vector<Connection> connections);

  /// From now on gathers have up to so many bytes from each, unless they could be larger before.
  /// All processes call it before a gather that needs it, and gather something small in between:
  /// whoever has that knows that rank 0 expects the larger ones.
  void allow_gathers(std::uint64_t bytes);

  void send(std::int32_t to, MessageTag tag, Blob payload) override;
  void send_all(MessageTag tag, const Blob& payload) override;
  std::vector<Message> poll(MessageTag tag) override;
  Gathered gather(Blob own, const ShouldAbort& should_abort) override;
  void wait(const PollBackoff& backoff) const override;
  void flush(const ShouldAbort& should_abort) override;

 private:
  struct Peer {
    std::int32_t rank = 0;
    Connection connection;
    std::deque<Blob> outbox = {};
    std::size_t sent = 0;  ///< of the first
  };

  bool is_root() const { return self().rank == 0; }
  void bound_frames();
  void send_frame(std::int32_t to, FrameKind kind, Blob payload);
  void send_to_all(FrameKind kind, const Blob& payload);
  bool flush_once();
  void pump();
  void write(Peer& peer);
  void read(Peer& peer);
  void take(const Peer& from, Frame frame);
  void put(Peer& peer, const Frame& frame);
  void drop(Peer& peer);
  void lose(Peer& peer);
  void lose(std::int32_t rank);
  std::vector<std::optional<Blob>> collect(Blob own, const ShouldAbort& should_abort);
  bool collect_once(std::vector<std::optional<Blob>>& all);
  std::optional<Blob> await(FrameKind kind, const ShouldAbort& should_abort);

  mutable std::mutex mutex_;  ///< guards what follows
  std::uint64_t largest_gather_ = kSmallGather;
  std::vector<Peer> peers_;
  std::vector<std::deque<Message>> messages_;  ///< by kind of frame
  std::vector<std::deque<Blob>> gathers_;      ///< at rank 0, by rank: not used yet
};

}  // namespace bubblescope::exec
