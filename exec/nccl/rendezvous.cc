// Implements the handshake of both sides.
#include "exec/nccl/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "exec/runtime/wait_deadline.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kMaxHello = 1024;
/// How long a caller may take to send its hello, normally and when the maximum number of callers is
/// pending.
constexpr Nanos kHelloTime = 5'000'000'000;
constexpr Nanos kCrowdedHelloTime = 500'000'000;
constexpr std::size_t kMaxCallers = 256;

struct Challenge {
  std::uint32_t version = kVersion;
  Nonce nonce{};
};

struct Hello {
  RankInfo rank_info;
  Nonce nonce{};
  Digest signature{};
};

/// The values that are signed: both ends of a connection know them, and the nonces are new.
struct Handshake {
  Challenge challenge;
  RankInfo rank_info;
  Nonce nonce{};
};

enum class End { kFirst, kCaller };

/// Proves that this end of the connection has the secret. The two ends sign different texts, so
/// that neither can reuse the other's signature.
Digest sign(const Secret& secret, End end, const Handshake& handshake) {
  BlobWriter writer;
  writer.write(handshake.challenge.version);
  writer.write(handshake.challenge.nonce);
  writer.write(handshake.rank_info.rank);
  writer.write(handshake.rank_info.count);
  writer.write(handshake.nonce);
  return secret.sign(end == End::kFirst ? "bubblescope rank 0" : "bubblescope caller",
                     writer.take());
}

struct Caller {
  Connection connection;
  Challenge challenge;
  Nanos since = 0;
};

struct AcceptedRank {
  Connection connection;
  Handshake handshake;
};

/// Sends a short frame without waiting. If the socket does not take it at once, the rest is lost.
void send_frame(const TcpSocket& socket, FrameKind kind, Blob payload) {
  const Blob bytes = to_bytes({kind, 0, std::move(payload)});
  socket.write(bytes);
}

/// The frame that a caller has sent; empty if it is not complete. Throws Error for anything else.
std::optional<Frame> receive(Connection& connection) {
  const std::optional<Blob> bytes = connection.socket.read();
  if (!bytes) throw Error(Fault::kMachine, "it closed the connection without a message");
  connection.reader.take(*bytes);
  return connection.reader.next();
}

class RankAcceptor {
 public:
  RankAcceptor(std::int32_t count, const RendezvousServer& server)
      : server_(server), accepted_(static_cast<std::size_t>(count)) {}

  bool is_full() const {
    return std::all_of(accepted_.begin() + 1, accepted_.end(),
                       [](const auto& accepted) { return accepted.has_value(); });
  }

  void poll(const TcpSocket& listener) {
    while (callers_.size() < kMaxCallers) {
      TcpSocket socket = accept_from(listener);
      if (!socket.is_open()) break;
      const Challenge challenge{kVersion, make_nonce()};
      BlobWriter writer;
      writer.write(challenge.version);
      writer.write(challenge.nonce);
      send_frame(socket, FrameKind::kChallenge, writer.take());
      callers_.push_back(
          {{std::move(socket), FrameReader(kMaxHello)}, challenge, read_monotonic_clock()});
    }
    std::erase_if(callers_, [this](Caller& caller) { return is_done(caller); });
  }

  SocketTransport welcome() {
    std::vector<Connection> connections;
    for (std::size_t rank = 1; rank < accepted_.size(); ++rank) {
      AcceptedRank& accepted = *accepted_[rank];
      send_frame(accepted.connection.socket, FrameKind::kWelcome,
                 blob_of(sign(server_.secret, End::kFirst, accepted.handshake)));
      connections.push_back(std::move(accepted.connection));
    }
    return {{0, static_cast<std::int32_t>(accepted_.size())}, std::move(connections)};
  }

  std::string describe_missing() const {
    std::string text;
    for (std::size_t rank = 1; rank < accepted_.size(); ++rank)
      if (!accepted_[rank]) text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
    if (refused_ > 0)
      text +=
          " (" + counted(refused_, "connection") + " rejected, the last because " + reason_ + ")";
    return text;
  }

 private:
  /// Whether a caller has been accepted or refused.
  bool is_done(Caller& caller) {
    try {
      const std::optional<Frame> frame = receive(caller.connection);
      const Nanos max_wait = callers_.size() < kMaxCallers ? kHelloTime : kCrowdedHelloTime;
      if (!frame && read_monotonic_clock() - caller.since > max_wait)
        throw Error(Fault::kMachine, "it did not identify itself");
      if (!frame) return false;
      accept_hello(caller, *frame);
    } catch (const Error& error) {
      ++refused_;
      reason_ = error.what();
      BlobWriter writer;
      writer.write_text(reason_.substr(0, kMaxFailureText));
      send_frame(caller.connection.socket, FrameKind::kRefusal, writer.take());
    }
    return true;
  }

  void accept_hello(Caller& caller, const Frame& frame) {
    if (frame.kind != FrameKind::kHello || frame.payload.size() != sizeof(Hello))
      throw Error(Fault::kMachine, "it did not begin with a hello");
    const auto hello = BlobReader(frame.payload).read<Hello>();
    const Handshake handshake{caller.challenge, hello.rank_info, hello.nonce};
    expect_secret(caller, hello.signature, handshake);
    const auto count = static_cast<std::int32_t>(accepted_.size());
    const std::string rank = "rank " + std::to_string(hello.rank_info.rank);
    if (hello.rank_info.count != count)
      throw Error(Fault::kMachine, rank + " was started as one of " +
                                       counted(hello.rank_info.count, "process") +
                                       ", rank 0 as one of " + std::to_string(count) +
                                       "; start all by one launcher");
    if (hello.rank_info.rank < 1 || hello.rank_info.rank >= count)
      throw Error(Fault::kMachine, "rank 0 expects no " + rank);
    std::optional<AcceptedRank>& place = accepted_[static_cast<std::size_t>(hello.rank_info.rank)];
    if (place) throw Error(Fault::kMachine, rank + " is already connected");
    place.emplace(AcceptedRank{std::move(caller.connection), handshake});
  }

  /// Checks the signature. This must come before any other use of the hello.
  void expect_secret(const Caller& caller, const Digest& signature, const Handshake& handshake) {
    if (are_equal(signature, sign(server_.secret, End::kCaller, handshake))) return;
    if (server_.warn && !std::exchange(has_warned_, true))
      server_.warn("a connection from " + peer_of(caller.connection.socket) +
                   " does not have this run's secret and was rejected; further ones are rejected "
                   "silently");
    throw Error(Fault::kMachine, "its secret is not that of rank 0");
  }

  const RendezvousServer& server_;
  bool has_warned_ = false;
  std::vector<std::optional<AcceptedRank>> accepted_;  ///< by rank
  std::vector<Caller> callers_;
  std::int32_t refused_ = 0;
  std::string reason_;
};

/// The pauses between attempts. A host name that cannot be resolved may be known later, when a
/// container has started; it is tried less often.
constexpr int kNextAttemptMilliseconds = 20;
constexpr int kNextLookupMilliseconds = 200;

Connection connect_until_deadline(const Address& address, const Connect& connect,
                                  WaitDeadline& waiting) {
  for (;;) {
    std::string obstacle = "rank 0 does not answer at " + to_string(address) +
                           "; is it started, with the same MASTER_ADDR and MASTER_PORT?";
    int pause_ms = kNextAttemptMilliseconds;
    try {
      TcpSocket socket = connect(address);
      if (socket.is_open()) return {std::move(socket), FrameReader(kSmallGather)};
    } catch (const Error& error) {
      obstacle = error.what();
      pause_ms = kNextLookupMilliseconds;
    }
    if (waiting.has_passed()) throw Error(Fault::kMachine, obstacle);
    poll(nullptr, 0, pause_ms);
  }
}

std::optional<Frame> receive_from(const std::string& where, Connection& connection) {
  try {
    return receive(connection);
  } catch (const Error& error) {
    throw Error(Fault::kMachine, where + " rejected this process: " + error.what());
  }
}

/// Returns the next frame of rank 0. Throws Error if it refuses this process, or sends nothing in
/// time.
Frame await_frame(const std::string& where, Connection& connection, WaitDeadline& waiting) {
  while (!waiting.has_passed()) {
    std::optional<Frame> frame = receive_from(where, connection);
    if (frame && frame->kind == FrameKind::kRefusal)
      throw Error(Fault::kMachine,
                  where + " rejected this process: " + BlobReader(frame->payload).read_text());
    if (frame) return std::move(*frame);
    poll(nullptr, 0, 2);
  }
  throw Error(Fault::kMachine,
              where + " did not report within `timeout` that all ranks are connected");
}

Challenge read_challenge(const std::string& where, const Frame& frame) {
  if (frame.kind != FrameKind::kChallenge)
    throw Error(Fault::kMachine, where + " does not answer like bubblescope");
  BlobReader reader(frame.payload);
  Challenge challenge{reader.read<std::uint32_t>(), {}};
  if (challenge.version != kVersion)
    throw Error(Fault::kMachine, where + " runs another version of bubblescope");
  challenge.nonce = reader.read<Nonce>();
  return challenge;
}

}  // namespace

SocketTransport accept_ranks(const TcpSocket& listener, std::int32_t count, const Limits& limits,
                             const RendezvousServer& server) {
  RankAcceptor acceptor(count, server);
  WaitDeadline waiting(limits);
  for (acceptor.poll(listener); !acceptor.is_full(); acceptor.poll(listener)) {
    if (waiting.has_passed())
      throw Error(Fault::kMachine, "of " + counted(count, "process") +
                                       ", these did not connect to rank 0 within "
                                       "`timeout`: " +
                                       acceptor.describe_missing());
    poll(nullptr, 0, 2);
  }
  return acceptor.welcome();
}

SocketTransport connect_to_rank_0(const Address& address, const RankInfo& rank_info,
                                  const Limits& limits, const RendezvousClient& client) {
  WaitDeadline waiting(limits);
  Connection connection = connect_until_deadline(address, client.connect, waiting);
  const std::string where = "rank 0 at " + to_string(address);
  const Challenge challenge = read_challenge(where, await_frame(where, connection, waiting));
  const Secret secret = client.find_secret();
  const Handshake handshake{challenge, rank_info, make_nonce()};
  send_frame(connection.socket, FrameKind::kHello,
             blob_of(Hello{rank_info, handshake.nonce, sign(secret, End::kCaller, handshake)}));
  const Frame answer = await_frame(where, connection, waiting);
  if (answer.kind != FrameKind::kWelcome || answer.payload.size() != sizeof(Digest))
    throw Error(Fault::kMachine, where + " does not answer like bubblescope");
  if (!are_equal(BlobReader(answer.payload).read<Digest>(), sign(secret, End::kFirst, handshake)))
    throw Error(Fault::kMachine,
                where + " does not have this run's secret; the connection is closed");
  std::vector<Connection> connections;
  connections.push_back(std::move(connection));
  return {rank_info, std::move(connections)};
}

}  // namespace bubblescope::exec
