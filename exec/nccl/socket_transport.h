// The transport over TCP. Every process has one connection, to rank 0, which forwards the messages
// between the others.
//
//   rank 1 -> rank 3:   rank 1 -> rank 0 -> rank 3
//
// A process counts as gone for good when its connection ends or it sends a malformed frame. Rank 0
// then notifies all others at once.
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

/// A socket and the bytes that were already received from it.
struct Connection {
  TcpSocket socket;
  FrameReader reader;
};

/// The maximum payload of a gather before a Program is known.
inline constexpr std::uint64_t kSmallGather = std::uint64_t{1} << 20;

class SocketTransport : public Transport {
 public:
  /// `connections`: rank 0 has one to each of the ranks 1, 2, ...; every other rank has one, to
  /// rank 0. A single process has none.
  SocketTransport(const RankInfo& self, std::vector<Connection> connections);

  /// Raises the maximum payload of gathers. All processes must call it, then gather something
  /// small: when that gather is complete, rank 0 accepts the larger payloads.
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
    std::size_t sent = 0;  ///< bytes of the first frame that were sent
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

  mutable std::mutex mutex_;  ///< guards the members below
  std::uint64_t largest_gather_ = kSmallGather;
  std::vector<Peer> peers_;
  std::vector<std::deque<Message>> messages_;  ///< [kind of frame]: received
  std::vector<std::deque<Blob>> gathers_;      ///< at rank 0, by rank: received for later gathers
};

}  // namespace bubblescope::exec
