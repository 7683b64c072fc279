// Hello and welcome.
#include "exec/nccl/meeting.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "exec/waiting.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kLargestHello = 1024;
/// How long someone who has called may take to say who it is.
constexpr Nanos kHelloTime = 5'000'000'000;

struct Hello {
  std::uint32_t version = kVersion;
  Seat seat;
};

struct Guest {
  Connection connection;
  Nanos since = 0;
};

/// A short frame, at once: what does not go then is not waited for.
void say(const TcpSocket& socket, Line line, Blob payload) {
  const Blob bytes = to_bytes({line, 0, std::move(payload)});
  socket.write(bytes);
}

/// What a guest has said; empty while it has not. Throws Error for anything but a whole frame.
std::optional<Frame> hear(Connection& connection) {
  const std::optional<Blob> bytes = connection.socket.read();
  if (!bytes) throw Error(Fault::kMachine, "it left without a word");
  connection.reader.take(*bytes);
  return connection.reader.next();
}

class Reception {
 public:
  explicit Reception(std::int32_t count) : seated_(static_cast<std::size_t>(count)) {}

  bool is_full() const {
    return std::all_of(seated_.begin() + 1, seated_.end(),
                       [](const auto& connection) { return connection.has_value(); });
  }

  void look(const TcpSocket& listener) {
    for (TcpSocket socket = accept_from(listener); socket.is_open(); socket = accept_from(listener))
      guests_.push_back({{std::move(socket), FrameReader(kLargestHello)}, read_monotonic_clock()});
    std::erase_if(guests_, [this](Guest& guest) { return is_done(guest); });
  }

  ProcessLink welcome() {
    std::vector<Connection> connections;
    for (std::size_t rank = 1; rank < seated_.size(); ++rank) {
      say(seated_[rank]->socket, Line::kWelcome, {});
      connections.push_back(std::move(*seated_[rank]));
    }
    return {{0, static_cast<std::int32_t>(seated_.size())}, std::move(connections)};
  }

  std::string describe_missing() const {
    std::string text;
    for (std::size_t rank = 1; rank < seated_.size(); ++rank)
      if (!seated_[rank]) text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
    if (refused_ > 0)
      text += " (" + std::to_string(refused_) + " caller(s) turned away, the last because " +
              reason_ + ")";
    return text;
  }

 private:
  /// Whether a guest has a seat, or was turned away.
  bool is_done(Guest& guest) {
    try {
      const std::optional<Frame> frame = hear(guest.connection);
      if (!frame && read_monotonic_clock() - guest.since > kHelloTime)
        throw Error(Fault::kMachine, "it did not say who it is");
      if (!frame) return false;
      seat(guest, *frame);
    } catch (const Error& error) {
      ++refused_;
      reason_ = error.what();
      BlobWriter writer;
      writer.write_text(reason_);
      say(guest.connection.socket, Line::kRefusal, writer.take());
    }
    return true;
  }

  void seat(Guest& guest, const Frame& frame) {
    if (frame.line != Line::kHello || frame.payload.size() != sizeof(Hello))
      throw Error(Fault::kMachine, "it did not begin with a hello");
    const auto hello = BlobReader(frame.payload).read<Hello>();
    const auto count = static_cast<std::int32_t>(seated_.size());
    const std::string rank = "rank " + std::to_string(hello.seat.rank);
    if (hello.version != kVersion)
      throw Error(Fault::kMachine, rank + " is of another version of bubblescope");
    if (hello.seat.count != count)
      throw Error(Fault::kMachine, rank + " counts " + std::to_string(hello.seat.count) +
                                       " processes and rank 0 " + std::to_string(count));
    if (hello.seat.rank < 1 || hello.seat.rank >= count)
      throw Error(Fault::kMachine, "there is no seat for " + rank);
    std::optional<Connection>& place = seated_[static_cast<std::size_t>(hello.seat.rank)];
    if (place) throw Error(Fault::kMachine, rank + " is there already");
    place.emplace(std::move(guest.connection));
  }

  std::vector<std::optional<Connection>> seated_;  ///< by rank
  std::vector<Guest> guests_;
  std::int32_t refused_ = 0;
  std::string reason_;
};

/// A name may be known later, as that of a container that starts: it is sought less often.
constexpr int kNextCallMilliseconds = 20;
constexpr int kNextLookupMilliseconds = 200;

Connection reach(const Address& address, const Caller& caller, Waiting& waiting) {
  for (;;) {
    std::string obstacle = "rank 0 does not answer at " + to_string(address) +
                           "; is it started, with the same MASTER_ADDR and MASTER_PORT?";
    int nap = kNextCallMilliseconds;
    try {
      TcpSocket socket = caller(address);
      if (socket.is_open()) return {std::move(socket), FrameReader(kSmallShare)};
    } catch (const Error& error) {
      obstacle = error.what();
      nap = kNextLookupMilliseconds;
    }
    if (waiting.is_over()) throw Error(Fault::kMachine, obstacle);
    poll(nullptr, 0, nap);
  }
}

std::optional<Frame> hear_from(const std::string& where, Connection& connection) {
  try {
    return hear(connection);
  } catch (const Error& error) {
    throw Error(Fault::kMachine, where + " does not take this process: " + error.what());
  }
}

}  // namespace

ProcessLink receive_others(const TcpSocket& listener, std::int32_t count, const Limits& limits) {
  Reception reception(count);
  Waiting waiting(limits);
  for (reception.look(listener); !reception.is_full(); reception.look(listener)) {
    if (waiting.is_over())
      throw Error(Fault::kMachine, "of " + std::to_string(count) +
                                       " processes, these have not come to rank 0 within "
                                       "--timeout: " +
                                       reception.describe_missing());
    poll(nullptr, 0, 2);
  }
  return reception.welcome();
}

ProcessLink call_first(const Address& address, const Seat& seat, const Limits& limits,
                       const Caller& caller) {
  Waiting waiting(limits);
  Connection connection = reach(address, caller, waiting);
  BlobWriter writer;
  writer.write(Hello{kVersion, seat});
  say(connection.socket, Line::kHello, writer.take());
  const std::string where = "rank 0 at " + to_string(address);
  while (!waiting.is_over()) {
    const std::optional<Frame> frame = hear_from(where, connection);
    if (!frame) {
      poll(nullptr, 0, 2);
      continue;
    }
    if (frame->line == Line::kRefusal)
      throw Error(Fault::kMachine,
                  where + " turned this process away: " + BlobReader(frame->payload).read_text());
    if (frame->line != Line::kWelcome)
      throw Error(Fault::kMachine, where + " answers as no bubblescope would");
    std::vector<Connection> connections;
    connections.push_back(std::move(connection));
    return {seat, std::move(connections)};
  }
  throw Error(Fault::kMachine, where + " has not said within --timeout that all are there");
}

}  // namespace bubblescope
