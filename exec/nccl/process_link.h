// The processes of one run, connected by TCP: all with rank 0, which passes on what the others say
// to each other. A process that ends, or says what no process of ours would, is gone for good.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "exec/nccl/frames.h"
#include "exec/nccl/tcp_socket.h"

namespace bubblescope {

/// A process's place among the others.
struct Seat {
  std::int32_t rank = 0;
  std::int32_t count = 1;
};

/// A socket, and what has come over it already.
struct Connection {
  TcpSocket socket;
  FrameReader reader;
};

/// The largest share before a Program is known.
inline constexpr std::uint64_t kSmallShare = std::uint64_t{1} << 20;

/// For one thread.
class ProcessLink {
 public:
  /// What one process said.
  struct Letter {
    std::int32_t from = 0;
    Blob payload;
  };
  using GivesUp = std::function<bool()>;

  /// Rank 0 is connected with ranks 1, 2, ..., any other with rank 0 alone; a single process with
  /// none.
  ProcessLink(const Seat& seat, std::vector<Connection> connections);

  const Seat& seat() const { return seat_; }

  /// From now on shares have up to so many bytes, unless they could be larger before. All processes
  /// call it before a share that needs it, and share something small in between: whoever has that
  /// knows that rank 0 expects the larger ones.
  void allow_shares(std::uint64_t bytes);

  void send(std::int32_t to, Line line, Blob payload);
  void send_all(Line line, const Blob& payload);

  /// All that has come on a line.
  std::vector<Letter> look(Line line);

  /// Returns when something has come, or soon.
  void wait() const;

  /// Everyone's bytes, by rank; those of a rank that had not answered when `gives_up` became true
  /// are missing, and it is gone from then on. Every process calls it, in the same order.
  std::vector<std::optional<Blob>> share(Blob own, const GivesUp& gives_up);

  bool is_gone(std::int32_t rank) const { return gone_[static_cast<std::size_t>(rank)]; }
  /// The same when rank 0 had all that it got for the last share(): all know the same, and who has
  /// ended since in good order does not count.
  bool had_gone(std::int32_t rank) const { return had_gone_[static_cast<std::size_t>(rank)]; }
  /// Who went first; empty: all are there.
  std::optional<std::int32_t> first_gone() const { return first_gone_; }

  /// Sends what still waits to be sent, as long as someone takes it.
  void flush(const GivesUp& gives_up);

 private:
  struct Peer {
    std::int32_t rank = 0;
    Connection connection;
    std::deque<Blob> outbox = {};
    std::size_t sent = 0;  ///< of the first
  };

  bool leads() const { return seat_.rank == 0; }
  void bound_frames();
  void pump();
  void write(Peer& peer);
  void read(Peer& peer);
  void take(const Peer& from, Frame frame);
  void put(Peer& peer, const Frame& frame);
  void part_with(Peer& peer);
  void lose(Peer& peer);
  void note_gone(std::int32_t rank);
  std::vector<std::optional<Blob>> gather(Blob own, const GivesUp& gives_up);
  std::optional<Blob> await(Line line, const GivesUp& gives_up);

  Seat seat_;
  std::uint64_t largest_share_ = kSmallShare;
  std::vector<Peer> peers_;
  std::vector<bool> gone_;  ///< by rank
  std::vector<bool> had_gone_;
  std::optional<std::int32_t> first_gone_;
  std::vector<std::deque<Letter>> letters_;  ///< by line
  std::vector<std::deque<Blob>> shares_;     ///< at rank 0, by rank: not used yet
};

}  // namespace bubblescope
